package verdict

import (
	"cmp"

	"stackshot/internal/model"
	"stackshot/internal/waitgraph"
	"stackshot/internal/waits"
)

// Weight is how much a finding says of an incident: the first screen and `hang` tell of the heaviest
// first.
type Weight struct {
	Threads int       // that cannot go on until somebody acts
	Unsure  bool      // the file cannot prove it
	Asleep  bool      // they sleep at what is not a lock of the kernel
	OwnEnd  bool      // a program waits for its own pipe, and nobody for it: that is mostly meant so
	Age     model.Age // of the longest wait
}

// sureWorth is how many threads of an unsure finding weigh as much as one of a sure one: of those
// of like size the sure come first, and one thread in D does not hide sixty behind a server.
const sureWorth = 4

// Compare sorts the heavier first: the number of threads, D and locks of the kernel, the age.
func (a Weight) Compare(b Weight) int {
	mass := func(w Weight) int {
		switch {
		case w.OwnEnd:
			return -1
		case w.Unsure:
			return w.Threads
		}
		return sureWorth * w.Threads
	}
	if c := cmp.Compare(mass(b), mass(a)); c != 0 {
		return c
	}
	if a.Asleep != b.Asleep {
		if a.Asleep {
			return 1
		}
		return -1
	}
	return model.LongestFirst(a.Age, b.Age)
}

func (x *Words) weigh(f Finding) (w Weight) {
	switch {
	case f.Deadlock != nil:
		d := f.Deadlock
		w.Threads = max(len(d.Part), len(d.Cycle)) + len(d.Behind)
		w.Unsure = d.Confidence != waits.Sure
		w.Age = Latest(d.Cycle)
		w.OwnEnd = w.Threads == 1 && len(d.Cycle) == 1 && d.Cycle[0].File != nil && d.Cycle[0].File.Says == waits.OwnEnd
		w.Asleep = sleeps(d.Cycle)
	case f.Culprit != nil:
		c := f.Culprit
		w.Threads = 1 + len(Victims(c)) + len(f.Others)
		if first := Longest(Victims(c)); first != nil {
			w.Unsure, w.Age = !x.Sure(c), first.Age
			w.Asleep = sleeps([]*waits.Wait{first})
		} else if c.Wait != nil {
			w.Age = c.Wait.Age
		}
	default:
		k := f.Convoy
		w.Threads = len(k.Waiters)
		w.Unsure = len(k.Owners) > 0 && !x.Sure(&waitgraph.Culprit{Owner: k.Owners[0], Victims: k.Waiters})
		if c := x.behind(k); c != nil { // the cause goes before what it causes
			w.Unsure = w.Unsure || !x.Sure(c)
		}
		w.Asleep = sleeps(k.Waiters)
		if len(k.Waiters) > 0 {
			w.Age = k.Waiters[0].Age
		}
	}
	return w
}

// sleeps reports whether none of some waits is in D or for a lock of the kernel.
func sleeps(list []*waits.Wait) bool {
	for _, w := range list {
		if w.Kind.IsKernelLock() || w.State.Class == model.Blocked {
			return false
		}
	}
	return true
}
