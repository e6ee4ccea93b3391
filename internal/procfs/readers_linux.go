package procfs

import (
	"cmp"
	"fmt"
	"sync"
	"time"
)

// Limits of a pool for which NewReaders gets none.
const (
	DefaultMaxWrittenOff = 8
	DefaultLimit         = 250 * time.Millisecond
)

// Readers is a pool of helpers that read under a time limit. See the package's
// invariants 1 to 5. Safe to call concurrently.
type Readers struct {
	max   int           // constant
	limit time.Duration // constant
	epoch time.Time     // constant; helpers note times as ns since then

	mu         sync.Mutex
	room       sync.Cond // of mu: reading or writtenOff fell, or no call can succeed any more
	idle       []*helper // by mu; last in, first out, so that few threads stay warm
	reading    int       // by mu; helpers that belong to a caller
	writtenOff int       // by mu
	closed     bool      // by mu
}

// NewReaders makes a pool that does at most max reads at once, hung ones
// included, each under a time limit; 0 means the default. It starts no thread
// before the first read.
func NewReaders(max int, limit time.Duration) *Readers {
	r := &Readers{max: cmp.Or(max, DefaultMaxWrittenOff), limit: cmp.Or(limit, DefaultLimit), epoch: time.Now()}
	r.room.L = &r.mu
	return r
}

// WrittenOff is the number of reads that were written off and still hang.
func (r *Readers) WrittenOff() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.writtenOff
}

// Close ends the pool without waiting: idle helpers end now, reading ones after
// their read, written-off ones whenever they come loose.
func (r *Readers) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	r.closed = true
	for _, h := range r.idle {
		close(h.start)
	}
	r.idle = nil
	r.room.Broadcast()
}

// Read reads files of one directory, each under the pool's limit. One helper reads them
// until one hangs: that file gets a *TimeoutError, and another helper reads the files
// after it. If the opening of dir hangs, all files get the error.
func (r *Readers) Read(dir string, files []File) {
	for len(files) > 0 {
		h, err := r.take()
		if err != nil {
			fail(files, err)
			return
		}
		h.load(dir, files)
		files = files[r.attend(h, dir, files):]
	}
}

// Do runs fn on a helper, under the limit. fn may append to buf, which is the helper's
// own, and return it; Do returns a copy. After a timeout fn still runs, so it must not
// share with the caller what the caller goes on to change.
func (r *Readers) Do(fn func(buf []byte) ([]byte, error)) ([]byte, error) {
	files := []File{{fn: fn}}
	r.Read("", files)
	return files[0].Data, files[0].Err
}

// take waits for room and gives a helper to the caller.
func (r *Readers) take() (*helper, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		switch {
		case r.closed:
			return nil, ErrClosed
		case r.writtenOff >= r.max:
			return nil, fmt.Errorf("%w: %d written off", ErrExhausted, r.writtenOff)
		case r.reading+r.writtenOff < r.max:
			r.reading++
			return r.anyHelper(), nil
		}
		r.room.Wait() // ends: each read ends or is written off
	}
}

// anyHelper gives an idle helper, or a new one. Called with mu held.
func (r *Readers) anyHelper() *helper {
	if n := len(r.idle); n > 0 {
		h := r.idle[n-1]
		r.idle = r.idle[:n-1]
		return h
	}
	h := newHelper(r)
	go h.loop()
	return h
}

// give takes a helper back that ended in time.
func (r *Readers) give(h *helper) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reading--
	r.shelve(h)
}

// reclaim takes a written-off helper back that came loose; the helper calls it.
func (r *Readers) reclaim(h *helper) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.writtenOff--
	r.shelve(h)
}

// shelve makes a helper idle, or ends it after Close. Called with mu held.
func (r *Readers) shelve(h *helper) {
	if r.closed {
		close(h.start)
	} else {
		r.idle = append(r.idle, h)
	}
	r.room.Signal()
}

// attend starts a loaded helper, waits for it, and copies its results. It returns how
// many files have a result: all, or those up to and including the one that hangs.
func (r *Readers) attend(h *helper, dir string, files []File) int {
	h.begin(r.now())
	for {
		select {
		case <-h.ended:
			h.timer.Stop()
			h.copyOut(files)
			r.give(h)
			return len(files)
		case <-h.timer.C:
		}
		step := h.step.Load()
		if h.results(step) == len(files) {
			h.timer.Reset(r.limit) // the helper has ended, and is about to send on ended
			continue
		}
		if left := r.limit - (r.now() - time.Duration(h.since.Load())); left > 0 {
			h.timer.Reset(left)
			continue
		}
		// Copy before writing off: from then on the helper may come loose
		// and serve another caller.
		n := h.results(step)
		h.copyOut(files[:n])
		if !r.writeOff(h, step) {
			h.timer.Reset(r.limit) // the helper ended this step just now
			continue
		}
		return r.blame(h, dir, step, files)
	}
}

// writeOff succeeds only if the helper is still at step.
func (r *Readers) writeOff(h *helper, step uint32) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !h.step.CompareAndSwap(step, step|abandoned) {
		return false
	}
	r.reading--
	r.writtenOff++
	if r.writtenOff >= r.max {
		r.room.Broadcast() // every waiting call fails now
	}
	return true
}

// blame gives the error to the file that hung at step, or to all files if the opening of
// their directory hung. It does not use the helper's memory, which may be another
// caller's by now.
func (r *Readers) blame(h *helper, dir string, step uint32, files []File) int {
	if step == stepOpen {
		fail(files, &TimeoutError{Path: dir, Limit: r.limit})
		return len(files)
	}
	n := h.results(step)
	path := files[n].Name
	if dir != "" {
		path = dir + "/" + path
	}
	fail(files[n:n+1], &TimeoutError{Path: path, Limit: r.limit})
	return n + 1
}

func (r *Readers) now() time.Duration { return time.Since(r.epoch) }
