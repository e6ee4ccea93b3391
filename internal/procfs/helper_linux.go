package procfs

import (
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Values of helper.step: opening the directory, then reading file 0, 1, …; one
// past the last file: ended.
const (
	stepOpen  uint32 = 0
	stepFirst uint32 = 1
	abandoned uint32 = 1 << 31
)

// keepBuffer is the largest buffer a helper keeps for its next reads.
const keepBuffer = 1 << 20

// helper is a goroutine with a thread of its own. It is in one hand at a time:
// idle (the pool's), reading (one caller's), or written off (its own).
type helper struct {
	pool  *Readers
	start chan struct{} // one token per job, by the caller; closed by the pool
	ended chan struct{} // one token per job that was not written off, by the helper
	timer *time.Timer   // the caller's

	// The job. Written by the caller before start, constant until ended. A
	// copy, since the caller's own Files are used again after a write-off.
	dir   string
	files []File

	// The results. Written by the helper; result i belongs to the caller once
	// step is past i+stepFirst.
	buf []byte
	out []result

	// step is moved on by the helper and marked abandoned by the caller, both
	// by compare-and-swap: who comes first decides whether the read under way
	// ended in time.
	step atomic.Uint32
	// since is when the read under way began, ns since the pool's epoch.
	// Written by the caller before start, then by the helper.
	since atomic.Int64
}

type result struct {
	data      []byte // part of buf, or of an older and smaller one
	truncated bool
	err       error
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
		h.files[i].Data = nil // the caller's memory is none of ours
	}
}

// begin sets the helper going. The time it takes to be scheduled counts.
func (h *helper) begin(now time.Duration) {
	h.step.Store(stepOpen)
	h.since.Store(int64(now))
	h.timer.Reset(h.pool.limit)
	h.start <- struct{}{}
}

// results is how many files have a result at a step.
func (h *helper) results(step uint32) int {
	return int(max(step, stepFirst) - stepFirst)
}

// copyOut copies the results of the first len(files) files.
func (h *helper) copyOut(files []File) {
	for i := range files {
		f, res := &files[i], &h.out[i]
		f.Data = append(f.Data[:0], res.data...)
		f.Truncated, f.Err = res.truncated, res.err
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

// work does the job. It says false once it finds itself written off.
func (h *helper) work() bool {
	if cap(h.buf) > keepBuffer {
		h.buf = nil
	}
	h.buf, h.out = h.buf[:0], append(h.out[:0], make([]result, len(h.files))...)
	fd := unix.AT_FDCWD
	if h.dir != "" {
		var err error
		if fd, err = openDir(h.dir); err != nil {
			for i := range h.out {
				h.out[i].err = err
			}
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

// advance ends a step; false: the caller gave it up before.
func (h *helper) advance(step uint32) bool {
	h.since.Store(int64(h.pool.now()))
	return h.step.CompareAndSwap(step, step+1)
}

func (h *helper) readFile(i, dirfd int) {
	f, res := &h.files[i], &h.out[i]
	start := len(h.buf)
	if f.fn != nil {
		res.data, res.err = f.fn(h.buf[start:start])
		if res.err != nil {
			res.data = nil
		}
		return
	}
	h.buf, res.truncated, res.err = f.read(h.dir, dirfd, h.buf)
	res.data = h.buf[start:]
}
