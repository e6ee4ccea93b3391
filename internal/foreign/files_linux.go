package foreign

import (
	"errors"
	"io"
	"io/fs"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"stackshot/internal/procfs"
)

// Files reads other people's files. Safe to call concurrently.
type Files struct {
	options   Options         // constant, nothing zero but Command
	pool      *procfs.Readers // own: what hangs here keeps nobody from reading /proc
	processes processes
	fsType    func(handle) (uint32, error)
}

// New makes one. No thread or process is started before the first file.
func New(o Options) *Files {
	o = o.withDefaults()
	return &Files{options: o, pool: procfs.NewReaders(o.Helpers, o.Limit), processes: processes{command: o.Command}, fsType: handle.fsType}
}

// Close waits for nobody: helpers that hang end when they come loose.
func (f *Files) Close() {
	f.pool.Close()
	f.processes.rest(true)
}

// Rest ends processes that have nothing to do, until there is another file.
func (f *Files) Rest() { f.processes.rest(false) }

// Hanging is the number of files that hang now.
func (f *Files) Hanging() int { return f.pool.WrittenOff() }

// Load opens a file and gives its bytes to load, on a helper; what load returns
// is the result. size is in bytes, as of the opening. load may run on after
// its time: it must share nothing with the caller that the caller goes on to
// change, and keep r no longer than it runs.
func (f *Files) Load(path string, load func(r io.ReaderAt, size int64) (any, error)) (any, error) {
	return f.LoadFrom(Where{Path: path}, load)
}

// LoadOwned is Load of a file that its owner could have made for us to trip
// over, a perf map: below root, owned by uid, not a symbolic link.
func (f *Files) LoadOwned(root, path string, uid uint32, load func(r io.ReaderAt, size int64) (any, error)) (any, error) {
	return f.LoadFrom(Where{Root: root, Path: path, Owner: &uid, NoFollow: true}, load)
}

// ReadSmall reads a whole file of at most limit bytes.
func (f *Files) ReadSmall(path string, limit int64) ([]byte, error) {
	v, err := f.LoadFrom(Where{Path: path, MaxSize: limit}, func(r io.ReaderAt, size int64) (any, error) {
		// Read to the end: a file of /proc or /sys gives 0 for its size, and
		// any may have grown.
		b, err := io.ReadAll(io.NewSectionReader(r, 0, limit+1))
		if err == nil && int64(len(b)) > limit {
			err = ErrTooLarge
		}
		return b, err
	})
	if err != nil {
		return nil, err
	}
	return v.([]byte), nil
}

// Stat opens a file only so far as to say what it is.
func (f *Files) Stat(w Where) (Stat, error) {
	return do(f, w, func(h handle, _ *atomic.Bool) (Stat, error) { return f.find(h, w) })
}

// LoadFrom is Load of a file that has to meet conditions.
func (f *Files) LoadFrom(w Where, load func(r io.ReaderAt, size int64) (any, error)) (any, error) {
	return do(f, w, func(h handle, late *atomic.Bool) (any, error) {
		st, err := f.open(h, w)
		if err != nil {
			return nil, err
		}
		return load(&reader{h, late}, st.Size)
	})
}

// do runs job on a helper. The result travels in a box of its own: after a time
// limit nobody but the helper looks at it again.
func do[T any](f *Files, w Where, job func(h handle, late *atomic.Bool) (T, error)) (T, error) {
	type box struct {
		value T
		err   error
	}
	var zero T
	if f.options.Refuse != nil {
		return zero, at("read", w, f.options.Refuse)
	}
	result, late := new(box), new(atomic.Bool)
	_, err := f.pool.Do(func(buf []byte) ([]byte, error) {
		h := f.handle()
		defer h.close() // of a process that hangs it waits for the end
		result.value, result.err = job(h, late)
		return buf[:0], nil
	})
	if err != nil {
		late.Store(true)
		var te *procfs.TimeoutError
		if errors.As(err, &te) {
			return zero, &procfs.TimeoutError{Path: w.String(), Limit: te.Limit}
		}
		return zero, at("read", w, err)
	}
	if result.err != nil {
		return zero, f.named(w, result.err)
	}
	return result.value, nil
}

// handle gives a helper its hand: on a process where that is asked for and one
// can be started.
func (f *Files) handle() handle {
	if p := f.processes.take(f.options.Limit); p != nil {
		return p
	}
	return newLocal()
}

// named gives an error the file's name, unless it has one.
func (f *Files) named(w Where, err error) error {
	var pe *fs.PathError
	switch {
	case errors.Is(err, procfs.ErrTimeout): // a process was slower than the pool's own clock
		return &procfs.TimeoutError{Path: w.String(), Limit: f.options.Limit}
	case errors.As(err, &pe):
		return err
	}
	return at("read", w, err)
}

// reader is the callback's view of the file. It ends with the caller's
// patience, so that a late callback comes to its end.
type reader struct {
	in   handle
	late *atomic.Bool // set by the caller once it has gone on
}

// ReadAt reads until p is full or the file ends.
func (r *reader) ReadAt(p []byte, off int64) (n int, err error) {
	if off < 0 {
		return 0, unix.EINVAL
	}
	for n < len(p) {
		if r.late.Load() {
			return n, procfs.ErrTimeout
		}
		m, err := r.in.pread(p[n:], off+int64(n))
		if err != nil {
			return n, err
		}
		if m == 0 {
			return n, io.EOF
		}
		n += m
	}
	return n, nil
}
