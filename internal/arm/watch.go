package arm

import (
	"bytes"
	"errors"
	"hash/maphash"
	"io"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// watch reads what may change, again and again, into one buffer.
type watch struct {
	sysrq, modules, online, loadavg *os.File // sysrq, modules: nil where the kernel has none
	buf                             []byte
	seed                            maphash.Seed
}

func openWatch() (*watch, error) {
	w := &watch{buf: make([]byte, 64<<10), seed: maphash.MakeSeed()}
	var err error
	open := func(name string) *os.File {
		f, openErr := os.Open(name)
		err = errors.Join(err, openErr)
		return f
	}
	w.online = open("/sys/devices/system/cpu/online")
	w.loadavg = open("/proc/loadavg")
	for name, f := range map[string]**os.File{"/proc/sys/kernel/sysrq": &w.sysrq, "/proc/modules": &w.modules} {
		if _, why := os.Stat(name); !errors.Is(why, unix.ENOENT) {
			*f = open(name)
		}
	}
	if err != nil {
		w.close()
		return nil, err
	}
	return w, nil
}

func (w *watch) close() {
	for _, f := range []*os.File{w.sysrq, w.online, w.loadavg, w.modules} {
		if f != nil {
			f.Close()
		}
	}
}

// text is the first line of a small file. It is valid until the next call.
func (w *watch) text(f *os.File) ([]byte, error) {
	n, err := f.ReadAt(w.buf, 0)
	if err != nil && err != io.EOF {
		return nil, err
	}
	return bytes.TrimSpace(w.buf[:n]), nil
}

// mask is kernel.sysrq. With sysrq_always_enabled on the command line the kernel shows 1
// (sysrq_mask, "sysctl/sysrq: Remove __sysrq_enabled copy", 5.8).
func (w *watch) mask() (uint32, error) {
	if w.sysrq == nil {
		return 0, nil
	}
	b, err := w.text(w.sysrq)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(string(b), 10, 32)
	return uint32(n), err
}

// threads is how many the machine has.
func (w *watch) threads() (int, error) {
	b, err := w.text(w.loadavg)
	if err != nil {
		return 0, err
	}
	return threadsOf(string(b))
}

// shape is a number that changes when a module or a CPU comes or goes: of the modules' names, sizes, states
// and addresses, without their counts of users, which change all the time.
func (w *watch) shape() (uint64, error) {
	var h maphash.Hash
	h.SetSeed(w.seed)
	b, err := w.text(w.online)
	if err != nil {
		return 0, err
	}
	h.Write(b)
	if w.modules == nil {
		return h.Sum64(), nil
	}
	field, blank := 0, false
	for at := int64(0); ; {
		n, err := w.modules.ReadAt(w.buf, at)
		for _, c := range w.buf[:n] {
			switch {
			case c == '\n':
				field, blank = 0, false
			case c == ' ':
				blank = true
				continue
			case blank:
				field, blank = field+1, false
			}
			if field != 2 && field != 3 { // users: their number and their names
				h.WriteByte(c)
			}
		}
		at += int64(n)
		if err == io.EOF {
			return h.Sum64(), nil
		}
		if err != nil {
			return 0, err
		}
	}
}
