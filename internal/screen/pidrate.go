package screen

import (
	"cmp"
	"slices"

	"stackshot/kcdata"
)

// Times between which the rate of new pids is taken, in ns.
const (
	rateLeast = 100e6
	rateMost  = 2e9
)

// born is the number of a thread and when it was made.
type born struct{ at, tid uint64 }

// pidRate is how many processes and threads the machine makes a second, those that have ended
// among them: the kernel counts tids upwards, so that the numbers of two threads tell how many
// were made between them. All threads of the file count here, this program's own too. known is
// false if no two threads are of the last seconds, if the numbers began anew, or if the file is of
// a pid namespace, which counts for itself.
func (v *view) pidRate() (perSecond float64, known bool) {
	now := v.s.Machine.BoottimeNs
	if now == 0 || v.s.Machine.PidNSIsFirst != 1 {
		return 0, false
	}
	var last []born
	for _, t := range v.s.Tasks {
		for _, th := range t.Threads {
			at := th.Linux.StartBoottime
			if th.Linux.Present&kcdata.ThreadHasStart != 0 && at <= now && now-at <= rateMost {
				last = append(last, born{at, uint64(th.Linux.Tid)})
			}
		}
	}
	if len(last) < 2 {
		return 0, false
	}
	slices.SortFunc(last, func(a, b born) int { return cmp.Compare(a.at, b.at) })
	older, newer := middle(last[:len(last)/2]), middle(last[len(last)/2:])
	if newer.at-older.at < rateLeast || newer.tid < older.tid {
		return 0, false
	}
	return float64(newer.tid-older.tid) * 1e9 / float64(newer.at-older.at), true
}

// middle is the median of each. A thread that lost its CPU while it made another has given it a
// number some time before the stamp: medians do not mind.
func middle(list []born) born {
	tids := make([]uint64, len(list))
	for i, b := range list {
		tids[i] = b.tid
	}
	slices.Sort(tids)
	return born{list[len(list)/2].at, tids[len(tids)/2]}
}
