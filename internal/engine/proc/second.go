package proc

import (
	"context"
	"sync"

	"stackshot/internal/capture"
	"stackshot/internal/clock"
	"stackshot/internal/procfs"
	"stackshot/kcdata"
)

// secondPass is this engine's second pass: it reads the run time of every recorded thread
// again. Nothing was stopped, so some threads usually have run. The file says how many.
func (e *Engine) secondPass(ctx context.Context, readers []*reader, began int64) *capture.Second {
	x := &capture.Second{Method: kcdata.AtomicityAfter, Threads: map[uint32]capture.Activity{}, Rest: capture.RestGone}
	from := clock.Nanotime()
	var mu sync.Mutex // guards x.Threads
	var wg sync.WaitGroup
	for _, r := range readers {
		wg.Go(func() {
			again := r.again(ctx)
			mu.Lock()
			defer mu.Unlock()
			for tid, c := range again {
				x.Threads[tid] = c
			}
		})
	}
	wg.Wait()
	if ctx.Err() != nil {
		x.Rest = capture.RestMissed
	}
	to := clock.Nanotime()
	x.Span, x.Verify = to-began, to-from
	return x
}

// again reads the threads of the tasks that this reader recorded.
func (r *reader) again(ctx context.Context) map[uint32]capture.Activity {
	out := map[uint32]capture.Activity{}
	threads := procfs.NewThreadReader(r.engine.proc, procfs.ReadSchedstat)
	for _, p := range r.Parts {
		if ctx.Err() != nil {
			break
		}
		tgid := int(p.Item.Tgid)
		tids, err := r.engine.proc.Threads(tgid)
		if err != nil {
			continue // ended
		}
		for t := range threads.Threads(tgid, tids) {
			if t != nil && t.Have&procfs.ReadSchedstat != 0 {
				out[uint32(t.Tid)] = capture.Activity{Switches: t.Schedstat.Timeslices, Runtime: t.Schedstat.RunNs}
			}
		}
	}
	return out
}
