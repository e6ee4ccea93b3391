package procfs

import (
	"cmp"
	"fmt"
	"sync"
	"time"
)

// Limits of a pool that is not told otherwise.
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
	room       sync.Cond // of mu: reading or writtenOff fell, or all is over
	idle       []*helper // by mu; last in, first out, so that few threads stay warm
	reading    int       // by mu; helpers in a caller's hand
	writtenOff int       // by mu
	closed     bool      // by mu
}

// NewReaders makes a pool of which at most max reads run at once, hung ones
// included, each with a time limit. Zero means the default of either. No
// thread is started before the first read.
func NewReaders(max int, limit time.Duration) *Readers {
	r := &Readers{max: cmp.Or(max, DefaultMaxWrittenOff), limit: cmp.Or(limit, DefaultLimit), epoch: time.Now()}
	r.room.L = &r.mu
	return r
}

// WrittenOff is the number of reads that hang now.
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

// Read reads files of one directory, each under the pool's limit, by one helper
// as long as none hangs. What hangs gets a *TimeoutError; the files after it
// are read by another helper. If opening dir hangs, all of them get the error.
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

// Do runs fn on a helper, under the limit. fn may append to buf, the helper's
// own, and return it; the bytes are copied before the next use. After a timeout
// fn still runs: it must share nothing with the caller that the caller goes on
// to change.
func (r *Readers) Do(fn func(buf []byte) ([]byte, error)) ([]byte, error) {
	files := []File{{fn: fn}}
	r.Read("", files)
	return files[0].Data, files[0].Err
}

// take waits for room and gives a helper into the caller's hand.
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
		r.room.Wait() // ends: every read under way ends or is written off
	}
}

// anyHelper is called with mu held.
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

// give takes back a helper that ended in time.
func (r *Readers) give(h *helper) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reading--
	r.shelve(h)
}

// reclaim takes back a written-off helper that came loose; called by itself.
func (r *Readers) reclaim(h *helper) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.writtenOff--
	r.shelve(h)
}

// shelve is called with mu held.
func (r *Readers) shelve(h *helper) {
	if r.closed {
		close(h.start)
	} else {
		r.idle = append(r.idle, h)
	}
	r.room.Signal()
}

// attend starts a loaded helper, waits for it, and copies its results. It
// returns how many files are dealt with: all, or those up to the hung one.
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
			h.timer.Reset(r.limit) // it has ended and is about to say so
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
			h.timer.Reset(r.limit) // it moved on in this very moment
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
		r.room.Broadcast() // everyone who waits has to hear it
	}
	return true
}

// blame gives the error to the file that hung at step, or to all of them if
// that was the opening of their directory. The helper is its own already, or
// another caller's.
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
