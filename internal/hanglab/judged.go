package hanglab

import (
	"bytes"

	"stackshot/internal/waitgraph"
	"stackshot/internal/waits"
)

// Judged is a verdict as the command would write it, of what package waitgraph found.
func Judged(v *waitgraph.Verdict) *Verdict {
	out := &Verdict{Format: "stackshot-hang", Version: 1, OneInstant: v.Waits.OneInstant}
	for _, d := range v.Deadlocks {
		out.Deadlocks = append(out.Deadlocks, Deadlock{d.Confidence, len(d.Cycle), threadsOf(d.Cycle), listOf(d.Behind)})
	}
	for _, w := range v.Waits.All {
		f := FoundWait{Thread: threadOf(w), Kind: w.Kind, Evidence: w.Evidence, Confidence: w.Confidence, When: w.When}
		if w.File != nil {
			f.File = &FoundFile{Says: w.File.Says, Remote: w.File.Remote}
			if m := w.File.Mount; m != nil {
				f.File.Mount = &FoundMount{Point: string(bytes.TrimRight(m.Point[:], "\x00"))}
			}
		}
		for _, o := range w.Owners {
			f.Owners = append(f.Owners, ownerOf(o))
		}
		out.Waits = append(out.Waits, f)
	}
	for _, c := range v.Culprits {
		out.Culprits = append(out.Culprits, FoundCulprit{ownerOf(c.Owner), c.Reason, listOf(c.Victims)})
	}
	return out
}

func threadOf(w *waits.Wait) Thread {
	return Thread{Tid: int(w.Thread.ID), Pid: int(w.Task.ID), Name: w.Thread.Name}
}

func threadsOf(all []*waits.Wait) (ts []Thread) {
	for _, w := range all {
		ts = append(ts, threadOf(w))
	}
	return ts
}

func listOf(all []*waits.Wait) Threads { return Threads{len(all), tidsOf(threadsOf(all))} }

func ownerOf(o waits.Owner) Thread {
	t := Thread{Tid: int(o.Tid), Pid: int(o.Pid)}
	if o.Thread != nil {
		t.Name = o.Thread.Name
	}
	return t
}
