package arm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"stackshot/internal/bpf"
	"stackshot/internal/clock"
	"stackshot/internal/panicregion"
)

// Event is something that Next reports.
type Event struct {
	Capture bool     // a SysRq wants an ordinary capture
	Image   *Image   // of a SysRq's walk; nil: none
	Notes   []string // what people should know, a sentence each
}

// Image is a copy of the region as a walk left it: what extraction reads, at the same places. The list
// of frames is not in it. Free it.
type Image struct{ Region []byte }

// Free gives the memory back.
func (m *Image) Free() error { return unix.Munmap(m.Region) }

// How often the machine is looked at.
const (
	lookEvery  = time.Second
	shapeEvery = 10 // looks
)

// maxDrift is how far the clock may drift from that of the description, ns.
const maxDrift = uint64(time.Second)

// looks is what was seen last.
type looks struct {
	next    time.Time
	n       int
	shape   uint64
	epoch   uint64 // clock.BootEpoch of the description
	mask    uint32
	nested  uint64
	refused uint64
	crowded bool
	told    map[string]bool // errors that were said
}

// Next waits for the next event. Meanwhile it keeps the words for the hook and the description
// current. Errors: the context's cause; the reader's.
func (a *Armed) Next(ctx context.Context) (Event, error) {
	stop := context.AfterFunc(ctx, func() { a.panic.Interrupt() })
	defer stop()
	for {
		if ctx.Err() != nil {
			return Event{}, context.Cause(ctx)
		}
		err := a.panic.AwaitUntil(a.looks.next)
		var e Event
		switch {
		case err == nil:
			e, err = a.requested()
		case errors.Is(err, os.ErrDeadlineExceeded):
			e, err = a.look()
		case errors.Is(err, bpf.ErrInterrupted):
			continue // our context has ended, or that of a call before
		}
		if err != nil || e.Capture || e.Image != nil || len(e.Notes) > 0 {
			return e, err
		}
	}
}

// requested: a SysRq was ours. The hook wakes us for each request, also for one that found the region
// taken.
func (a *Armed) requested() (e Event, err error) {
	if a.Wakes {
		return Event{Capture: true}, nil
	}
	run := a.panic.Run
	if atomic.LoadUint64(&run.State) == bpf.PanicDone {
		if e.Image, err = a.copyOut(); err != nil {
			return Event{Notes: a.once(fmt.Errorf("a SysRq's records are not saved yet: %w", err))}, nil
		}
		a.tally.Captures++
		if !atomic.CompareAndSwapUint64(&run.State, bpf.PanicDone, bpf.PanicFree) {
			e.Notes = append(e.Notes, "a panic took the region while it was copied")
		}
	}
	if n := atomic.LoadUint64(&run.Nested); n > a.looks.nested {
		e.Notes = append(e.Notes, fmt.Sprintf("%d requests came while the last one was not saved yet: they have no file (%d so far)", n-a.looks.nested, n))
		a.looks.nested = n
	}
	return e, nil
}

// copyOut copies what a walk left: head, description, records. Memory that is not used stays
// untouched, and takes none.
func (a *Armed) copyOut() (*Image, error) {
	to, err := unix.Mmap(-1, 0, a.layout.bytes(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, fmt.Errorf("memory for a copy of the region (%d bytes): %w", a.layout.bytes(), err)
	}
	from := a.panic.Region
	copy(to, from[:panicregion.PageSize])
	for _, s := range a.static.Sections {
		n := s.Len
		if s.Kind == panicregion.SectionRecords {
			n = min(n, a.panic.Run.Bytes)
		}
		copy(to[s.Off:], from[s.Off:s.Off+n])
	}
	return &Image{to}, nil
}

// look reads what may have changed, and says what people should know of it. A region that could
// not be saved is tried again.
func (a *Armed) look() (e Event, err error) {
	l := &a.looks
	l.next = time.Now().Add(lookEvery)
	if !a.Wakes {
		if e, err = a.requested(); err != nil {
			return e, err
		}
	}
	e.Notes = append(e.Notes, a.once(a.lookAtMask())...)
	if n := atomic.LoadUint64(&a.panic.Ask.Refused); n > l.refused {
		if l.refused == 0 {
			e.Notes = append(e.Notes, fmt.Sprintf("SysRq %c came by keyboard or serial line, and kernel.sysrq is %d, which refuses it (want 1, or bit 8): nothing was recorded; this is said once", a.options.Key, l.mask))
		}
		l.refused = n
	}
	if l.n++; l.n%shapeEvery == 0 && a.Walks() {
		e.Notes = append(e.Notes, a.once(a.lookAtShape())...)
		e.Notes = append(e.Notes, a.lookAtThreads()...)
	}
	return e, nil
}

// once is the text of an error, the first time that it comes.
func (a *Armed) once(err error) []string {
	if err == nil || a.looks.told[err.Error()] || len(a.looks.told) > 100 {
		return nil
	}
	if a.looks.told == nil {
		a.looks.told = map[string]bool{}
	}
	a.looks.told[err.Error()] = true
	return []string{err.Error()}
}

// lookAtMask keeps the words of the programs current: kernel.sysrq, and when the machine was booted
// by its clock, which somebody may set.
func (a *Armed) lookAtMask() error {
	atomic.StoreUint64(&a.panic.Control.BootEpochNs, clock.BootEpoch())
	mask, err := a.watch.mask()
	if err != nil {
		return fmt.Errorf("kernel.sysrq: %w; the last value stays", err)
	}
	a.looks.mask = mask
	atomic.StoreUint32(&a.panic.Ask.Mask, mask)
	return nil
}

// Mask is kernel.sysrq as it was seen last.
func (a *Armed) Mask() int { return int(a.looks.mask) }

func (a *Armed) lookAtShape() error {
	shape, err := a.watch.shape()
	if err != nil {
		return err
	}
	epoch := clock.BootEpoch()
	if set := epoch > a.looks.epoch+maxDrift || a.looks.epoch > epoch+maxDrift; shape == a.looks.shape && !set {
		return nil
	}
	a.looks.shape, a.looks.epoch = shape, epoch // after an error too: it would come again
	if err := a.refresh(); err != nil {
		return fmt.Errorf("modules or CPUs have changed, and the region does not say so: %w", err)
	}
	return nil
}

// lookAtThreads says once when the machine has outgrown the region, and again after it had not.
func (a *Armed) lookAtThreads() []string {
	n, err := a.watch.threads()
	if err != nil {
		return nil
	}
	was := a.looks.crowded
	if a.looks.crowded = n > a.Threads; !a.looks.crowded || was {
		return nil
	}
	return []string{fmt.Sprintf("the machine has %d threads, and the region is made for %d: a walk may end for want of room (arm again, or with --buffer)", n, a.Threads)}
}
