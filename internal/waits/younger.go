package waits

import (
	"fmt"
	"time"

	"stackshot/kcdata"
)

// startSlack is how much younger than all waits for a lock its owner must be to be doubted. An age may be
// too long by the time that the thread ran before it slept.
const startSlack = uint64(100 * time.Millisecond)

// doubtYounger takes the certainty from owners that began after everybody had begun to wait
// for their lock. Who lets a lock go wakes one who waits, and who does not get it waits anew:
// so a lock that a new thread took has a younger wait. A word that names a thread which ended
// with the lock held has none, and its number may be another thread's by now.
func (f *finder) doubtYounger(all []*Wait) {
	if f.s.Machine.BoottimeNs == 0 {
		return
	}
	youngest := map[Resource]uint64{}
	for _, w := range all {
		if !isWord(w) {
			continue
		}
		age := uint64(0) // not known
		if w.Age.Known {
			age = w.Age.Ns
		}
		if y, ok := youngest[w.Resource]; !ok || age < y {
			youngest[w.Resource] = age
		}
	}
	for _, w := range all {
		if !isWord(w) || w.Evidence != Word || len(w.Owners) != 1 || w.Owners[0].Thread == nil {
			continue
		}
		l := &w.Owners[0].Thread.Linux
		if l.Present&kcdata.ThreadHasStart == 0 || l.StartBoottime > f.s.Machine.BoottimeNs {
			continue
		}
		if age := f.s.Machine.BoottimeNs - l.StartBoottime; age+startSlack < youngest[w.Resource] {
			w.Confidence = Likely
			w.note(fmt.Sprintf("thread %d, which its word names, began after the wait: another one may have had its number, and have ended with it held", w.Owners[0].Tid))
		}
	}
}

// isWord reports whether w is for a lock that keeps its owner in user memory alone.
func isWord(w *Wait) bool {
	return w.Resource.ID != 0 && (w.Kind == UserMutex || w.Kind == UserRWLock)
}
