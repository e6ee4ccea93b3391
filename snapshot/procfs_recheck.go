package snapshot

import (
	"context"
	"sync"

	"stackshot/internal/procfs"
	"stackshot/kcdata"
)

// secondLook reads the run time of every recorded thread again. Nothing was
// stopped, so most of the time something has run: the file says how much.
func (e *procfsEngine) secondLook(ctx context.Context, readers []*reader, began int64) *recheck {
	x := &recheck{method: kcdata.AtomicityAfter, threads: map[uint32]activity{}, rest: restGone}
	from := nanotime()
	var mu sync.Mutex // holds x.threads
	var wg sync.WaitGroup
	for _, r := range readers {
		wg.Go(func() {
			again := r.again(ctx)
			mu.Lock()
			defer mu.Unlock()
			for tid, c := range again {
				x.threads[tid] = c
			}
		})
	}
	wg.Wait()
	if ctx.Err() != nil {
		x.rest = restMissed
	}
	to := nanotime()
	x.span, x.verify = to-began, to-from
	return x
}

// again reads the threads of the tasks that this reader recorded.
func (r *reader) again(ctx context.Context) map[uint32]activity {
	out := map[uint32]activity{}
	threads := procfs.NewThreadReader(r.engine.proc, procfs.ReadSchedstat)
	for _, p := range r.parts {
		if ctx.Err() != nil {
			break
		}
		tgid := int(p.item.Tgid)
		tids, err := r.engine.proc.Threads(tgid)
		if err != nil {
			continue // ended
		}
		for t := range threads.Threads(tgid, tids) {
			if t != nil && t.Have&procfs.ReadSchedstat != 0 {
				out[uint32(t.Tid)] = activity{t.Schedstat.Timeslices, t.Schedstat.RunNs}
			}
		}
	}
	return out
}
