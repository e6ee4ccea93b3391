package ends

import (
	"errors"
	"sync/atomic"
	"time"

	"stackshot/internal/bpf"
	"stackshot/internal/capture"
	"stackshot/internal/procfs"
	"stackshot/kcdata"
)

// Budget is the time for all that is read after the release.
const Budget = time.Second

// margin is what the pass is told to end before its time is up, so that what it found arrives.
const margin = 100 * time.Millisecond

// Pass looks once through all open files of the machine: bpf.EndPass.
type Pass interface {
	Look(ends []bpf.WantedEnd, threads []bpf.WantedThread, until time.Time) (*bpf.FoundEnds, error)
	Close() error
}

// Looker looks for the other ends. It is for one caller at a time.
type Looker struct {
	Proc   procfs.FS // with time limits
	Pass   Pass      // nil: there is none, and /proc tells what it can
	Budget time.Duration
	busy   atomic.Bool // the pass of an earlier Look has not come back
}

// Result is what was found, and why the pass was not made (nil: it was).
type Result struct {
	*capture.Ends
	PassErr error
}

// errStuck says that a pass did not come back.
var errStuck = errors.New("an earlier pass over all open files has not come back")

// ErrNoPass says that no program for the pass was loaded.
var ErrNoPass = errors.New("no program for it is loaded")

// found is a piece of the result. It is made by who reads, and used by who waits for it.
type found func(*Result)

// Look finds what is wanted. It ends within l.Budget, and what comes later is dropped.
func (l *Looker) Look(w *Wants) *Result {
	began := time.Now()
	until := began.Add(l.Budget)
	r := &Result{Ends: &capture.Ends{Waiters: map[capture.WaiterID]capture.Waiter{}}}
	r.Taken.Wanted = uint32(len(w.Ends))
	if w.TooMany {
		r.Taken.Flags |= kcdata.FilesTooWanted
	}
	// No send ever waits: each reader sends fewer pieces than fit.
	pieces, ended := make(chan found, 32), make(chan struct{}, 2)
	go func() { l.files(w, until, pieces); ended <- struct{}{} }()
	go func() { l.around(w, until, pieces); ended <- struct{}{} }()
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	for left := 2; left > 0; {
		select {
		case <-ended:
			left--
		case <-timer.C:
			r.Taken.Flags |= kcdata.FilesTimeUp | kcdata.FilesHung
			left = 0
		}
	}
	for {
		select {
		case put := <-pieces:
			put(r)
			continue
		default:
		}
		break
	}
	r.missing(w)
	r.Taken.Ends, r.Taken.TotalNs = uint32(len(r.Ends.Ends)), uint64(time.Since(began))
	return r
}

// missing says what was to be read, and was not.
func (r *Result) missing(w *Wants) {
	t := &r.Taken
	if len(w.Locks) > 0 && t.Sources&kcdata.FilesHasLocks == 0 {
		t.Flags |= kcdata.FilesNoLocks
	}
	if t.Sources&kcdata.FilesHasMounts == 0 {
		t.Flags |= kcdata.FilesNoMounts
	}
	if !w.Empty() && t.Sources&kcdata.FilesHasPass == 0 {
		t.Flags |= kcdata.FilesNoPass
		if r.PassErr == nil {
			r.PassErr = errStuck
		}
	}
}

// files finds out who has the other ends: by the pass, else by /proc.
func (l *Looker) files(w *Wants, until time.Time, pieces chan<- found) {
	if w.Empty() {
		return
	}
	got, err := l.pass(w, until.Add(-margin))
	if err == nil {
		pieces <- func(r *Result) { r.passed(got) }
		return
	}
	pieces <- func(r *Result) { r.PassErr = err }
	p := l.scan(w, until.Add(-margin))
	pieces <- func(r *Result) { r.scanned(p) }
}

func (l *Looker) pass(w *Wants, until time.Time) (*bpf.FoundEnds, error) {
	if l.Pass == nil {
		return nil, ErrNoPass
	}
	if !l.busy.CompareAndSwap(false, true) {
		return nil, errStuck
	}
	defer l.busy.Store(false)
	return l.Pass.Look(w.Ends, w.Threads, until)
}

// passed takes over what a pass found.
func (r *Result) passed(f *bpf.FoundEnds) {
	t := &r.Taken
	t.Sources |= kcdata.FilesHasPass | kcdata.FilesHasFUSE
	t.Looked, t.PassNs = f.Looked, f.Ns
	if f.TimeUp {
		t.Flags |= kcdata.FilesTimeUp
	}
	if f.TooMany {
		t.Flags |= kcdata.FilesTooMany
	}
	r.Ends.Ends, r.Waiters = f.Ends, f.Waiters
	r.FUSE = append(r.FUSE, f.FUSE...)
}

// Close unloads the pass, unless that has not come back: then it stays until the process ends.
func (l *Looker) Close() error {
	if l.Pass == nil || !l.busy.CompareAndSwap(false, true) {
		return nil
	}
	closed := make(chan error, 1)
	go func() { closed <- l.Pass.Close() }()
	select {
	case err := <-closed:
		return err
	case <-time.After(margin): // the kernel still runs it
		return nil
	}
}
