package procfs

import (
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Values of helper.step: the helper opens the directory, then reads file 0, 1, …; one
// past the last file it has ended.
const (
	stepOpen  uint32 = 0
	stepFirst uint32 = 1
	abandoned uint32 = 1 << 31
)

// keepBuffer is the largest buffer a helper keeps for its next reads.
const keepBuffer = 1 << 20

// helper is a goroutine with a thread of its own. At any time it belongs to the pool
// (idle), to one caller (reading), or to itself (written off).
type helper struct {
	pool  *Readers
	start chan struct{} // one token per job, by the caller; closed by the pool
	ended chan struct{} // one token per job that was not written off, by the helper
	timer *time.Timer   // the caller's

	// The job, written by the caller before start. files is a copy, since the
	// caller uses its own Files again after a write-off. The helper writes the
	// results there; those of file i belong to the caller once step is past
	// i+stepFirst.
	dir   string
	files []File

	buf []byte // holds the Data of files; the helper's

	// step is advanced by the helper and marked abandoned by the caller, both by
	// compare-and-swap: whoever succeeds first decides whether the current read
	// ended in time.
	step atomic.Uint32
	// since is when the current read began, ns since the pool's epoch.
	// Written by the caller before start, then by the helper.
	since atomic.Int64
}

func newHelper(r *Readers) *helper {
	h := &helper{
		pool:  r,
		start: make(chan struct{}, 1),
		ended: make(chan struct{}, 1),
		timer: time.NewTimer(time.Hour),
	}
	h.timer.Stop()
	return h
}

// load sets the job.
func (h *helper) load(dir string, files []File) {
	h.dir = dir
	h.files = append(h.files[:0], files...)
	for i := range h.files {
		h.files[i].Data = nil // the caller's memory
	}
}

// begin starts the helper. The limit includes the time until the helper is scheduled.
func (h *helper) begin(now time.Duration) {
	h.step.Store(stepOpen)
	h.since.Store(int64(now))
	h.timer.Reset(h.pool.limit)
	h.start <- struct{}{}
}

// results is the number of files that have a result at a step.
func (h *helper) results(step uint32) int {
	return int(max(step, stepFirst) - stepFirst)
}

// copyOut copies the results of the first len(files) files.
func (h *helper) copyOut(files []File) {
	for i, from := range h.files[:len(files)] {
		to := &files[i]
		to.Data = append(to.Data[:0], from.Data...)
		to.Truncated, to.Err = from.Truncated, from.Err
	}
}

// loop serves jobs until the pool closes start.
func (h *helper) loop() {
	runtime.LockOSThread() // not unlocked: the thread ends with the loop
	for range h.start {
		if h.work() {
			h.ended <- struct{}{}
		} else {
			h.pool.reclaim(h)
		}
	}
}

// work does the job; false: the helper was written off meanwhile.
func (h *helper) work() bool {
	if cap(h.buf) > keepBuffer {
		h.buf = nil
	}
	h.buf = h.buf[:0]
	fd := unix.AT_FDCWD
	if h.dir != "" {
		var err error
		if fd, err = openDir(h.dir); err != nil {
			fail(h.files, err)
			return h.step.CompareAndSwap(stepOpen, stepFirst+uint32(len(h.files)))
		}
		defer unix.Close(fd)
	}
	if !h.advance(stepOpen) {
		return false
	}
	for i := range h.files {
		h.readFile(i, fd)
		if !h.advance(stepFirst + uint32(i)) {
			return false
		}
	}
	return true
}

// advance ends a step; false: the caller wrote the helper off before.
func (h *helper) advance(step uint32) bool {
	h.since.Store(int64(h.pool.now()))
	return h.step.CompareAndSwap(step, step+1)
}

// readFile reads file i and stores its result in h.files.
func (h *helper) readFile(i, dirfd int) {
	f, start := &h.files[i], len(h.buf)
	if f.fn != nil {
		if f.Data, f.Err = f.fn(h.buf[start:start]); f.Err != nil {
			f.Data = nil
		}
		return
	}
	h.buf, f.Truncated, f.Err = f.read(h.dir, dirfd, h.buf)
	f.Data = h.buf[start:] // stays good when buf grows elsewhere
}
