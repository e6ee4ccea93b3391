package foreign

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"sync/atomic"
	"time"

	"stackshot/internal/procfs"
)

// Files reads other people's files. Safe to call concurrently.
type Files struct {
	options   Options         // constant, nothing zero but Command
	pool      *procfs.Readers // its own: a file that hangs takes no helper from readers of /proc
	views     *views
	devices   *devices
	processes processes
	fsType    func(*attempt) (uint32, error) // constant but in tests
}

// New makes one. It starts no thread and no process before the first file.
func New(o Options) *Files {
	o = o.withDefaults()
	f := &Files{
		options: o, pool: procfs.NewReaders(o.Helpers+maxStuck, o.Limit), fsType: (*attempt).fsType,
		views: newViews(o.Limit), devices: newDevices(o.Helpers),
	}
	f.processes = processes{command: o.Command, slots: f.devices.slots}
	return f
}

// Close does not wait: helpers that hang end when they come loose.
func (f *Files) Close() {
	f.devices.close()
	f.pool.Close()
	f.views.readers.Close()
	f.processes.rest(true)
}

// EndIdle ends idle reader processes. The next file starts one again.
func (f *Files) EndIdle() { f.processes.rest(false) }

// Hanging is the number of readers that hang now.
func (f *Files) Hanging() int { return f.devices.stuck() }

// RetryLate lets files be read again on devices that were late since then, but not where
// a reader still hangs.
func (f *Files) RetryLate(since time.Time) { f.devices.forgive(since) }

// Stat finds a file, without opening it for reading, and says what it is.
func (f *Files) Stat(w Where) (Stat, error) {
	return do(f, w, func(a *attempt) (Stat, error) { return f.find(a, w) })
}

// LoadFrom opens a file and calls load on a helper; what load returns is the result.
// size is the file's size when it was opened, bytes. load may still run when the time
// limit has passed and LoadFrom has returned. So load must not share with the caller
// what the caller goes on to change, and must not keep r when it returns.
func (f *Files) LoadFrom(w Where, load func(r io.ReaderAt, size int64) (any, error)) (any, error) {
	return do(f, w, func(a *attempt) (any, error) {
		st, err := f.open(a, w)
		if err != nil {
			return nil, err
		}
		return load(&reader{in: a}, st.Size)
	})
}

// attempt is one file being read, by one helper.
type attempt struct {
	handle
	visit   *visit
	unknown bool        // no mountinfo says what file system it is on
	guarded bool        // the kernel follows no symbolic link: look does, when it knows where the link leads
	inside  atomic.Bool // a request is under way
	slow    atomic.Bool // the process did not answer a request in time
	late    atomic.Bool // set by the caller when it has given up
}

// ask makes one request of the handle.
func (a *attempt) ask(r request, buf []byte) (answer, error) {
	a.inside.Store(true)
	got, err := a.do(r, buf)
	if errors.Is(err, procfs.ErrTimeout) {
		a.slow.Store(true) // before inside is cleared: the pool's limit may end now, too
	}
	a.inside.Store(false)
	return got, err
}

// fsType is statfs's f_type of the file.
func (a *attempt) fsType() (uint32, error) {
	got, err := a.ask(request{Op: opFSType}, nil)
	return got.FSType, err
}

// do runs job on a helper. The result is in a box of its own: after the time limit only
// the helper uses that.
func do[T any](f *Files, w Where, job func(a *attempt) (T, error)) (zero T, err error) {
	if f.options.Refuse != nil {
		return zero, at("read", w, f.options.Refuse)
	}
	a, err := f.attempt(w)
	if err != nil {
		return zero, at("open", w, err)
	}
	type box struct {
		value T
		err   error
	}
	result := new(box)
	_, err = f.pool.Do(func(buf []byte) ([]byte, error) {
		defer a.visit.end()
		defer a.close() // waits for the end of a process that hangs
		result.value, result.err = job(a)
		return buf[:0], nil
	})
	var te *procfs.TimeoutError
	switch {
	case errors.As(err, &te):
		a.late.Store(true)
		a.visit.giveUp(!a.inside.Load() && !a.slow.Load(), a.mark)
		return zero, &procfs.TimeoutError{Path: w.String(), Limit: te.Limit}
	case err != nil: // no helper has begun
		a.close()
		a.visit.end()
		return zero, at("read", w, err)
	case a.slow.Load():
		a.visit.giveUp(false, nil)
	case !errors.Is(result.err, ErrGone):
		a.visit.answered()
	}
	if result.err != nil {
		return zero, f.named(w, result.err)
	}
	return result.value, nil
}

// attempt finds out where a file is, waits until it may be read, and gives it a handle:
// of a process if Options.Command is set and a process can be started.
func (f *Files) attempt(w Where) (*attempt, error) {
	way, guarded := f.way(w, w.Path)
	if err := f.refuseRemote(way); err != nil {
		return nil, err
	}
	v, err := f.devices.enter(way)
	if err != nil {
		return nil, err
	}
	a := &attempt{visit: v, unknown: !way[len(way)-1].seen, guarded: guarded}
	p, why := f.processes.take(f.options.Limit)
	switch {
	case p != nil:
		a.handle = p
	case why != nil && slices.ContainsFunc(way, func(w where) bool { return w.risky() }):
		v.end()
		return nil, fmt.Errorf("%w: %w", ErrNoReader, why)
	default:
		a.handle = newLocal(f.devices.slots)
	}
	return a, nil
}

// named gives an error the file's name, unless it has one.
func (f *Files) named(w Where, err error) error {
	var pe *fs.PathError
	var hung *HungError
	switch {
	case errors.As(err, &hung):
		return at("open", w, err)
	case errors.Is(err, procfs.ErrTimeout): // a process was late, and the pool has not noticed yet
		return &procfs.TimeoutError{Path: w.String(), Limit: f.options.Limit}
	case errors.As(err, &pe):
		return err
	}
	return at("read", w, err)
}
