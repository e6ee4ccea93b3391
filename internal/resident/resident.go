// Package resident has the file by which whoever has armed this machine (stackshot arm) is known:
// to a second one, to doctor, and to captures, which tell the resident's programs of their stop.
// Its holder keeps it locked; its text is
//
//	pid N      of the process
//	since NS   CLOCK_REALTIME
//	live ID    of the BPF map panic_live
//	region NS  panicregion.Static.Region; 0: no program records
package resident

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"stackshot/internal/lockfile"
)

// Path is where the file is.
const Path = "/run/stackshot.armed"

// ErrArmed says that the machine is armed already.
var ErrArmed = errors.New("the machine is armed already")

// Holder is who has armed the machine.
type Holder struct {
	Pid    int
	Since  time.Time
	Live   uint32 // id of the BPF map panic_live
	Region uint64
}

func (h Holder) String() string {
	return fmt.Sprintf("pid %d since %s", h.Pid, h.Since.UTC().Format(time.RFC3339))
}

func (h Holder) text() string {
	return fmt.Sprintf("pid %d\nsince %d\nlive %d\nregion %d\n", h.Pid, h.Since.UnixNano(), h.Live, h.Region)
}

var errUnnamed = errors.New("empty, and locked: the machine is being armed, or disarmed")

// parse reads the text. A line that is not a name and a number, or that is missing, is an error.
func parse(text string) (h Holder, err error) {
	if text == "" {
		return h, errUnnamed
	}
	met := map[string]bool{}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		n, err := strconv.ParseUint(value, 10, 63)
		if err != nil || name == "live" && n > math.MaxUint32 {
			return Holder{}, fmt.Errorf("%.40q: want a name and a number", line)
		}
		met[name] = true
		switch name {
		case "pid":
			h.Pid = int(n)
		case "since":
			h.Since = time.Unix(0, int64(n))
		case "live":
			h.Live = uint32(n)
		case "region":
			h.Region = n
		}
	}
	if h.Pid == 0 || h.Live == 0 || !met["since"] || !met["region"] {
		return Holder{}, errors.New("lacks pid, since, live or region")
	}
	return h, nil
}

// Take makes this process the one that arms. Errors: ErrArmed, which names the other one.
func Take(path string) (*os.File, error) {
	f, err := lockfile.Open(unix.AT_FDCWD, path, path, 0o600, -1)
	if err != nil {
		return nil, err
	}
	if err := lockfile.Lock(f); err != nil {
		defer f.Close()
		if !errors.Is(err, lockfile.ErrHeld) {
			return nil, err
		}
		h, err := parse(lockfile.Text(f))
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrArmed, path, err)
		}
		return nil, fmt.Errorf("%w: %s is held by %v", ErrArmed, path, h)
	}
	return f, lockfile.Write(f, "")
}

// Sign writes into a file of Take who has it.
func Sign(f *os.File, h Holder) error {
	if err := lockfile.Write(f, h.text()); err != nil {
		return fmt.Errorf("%s: %w", f.Name(), err)
	}
	return nil
}

// Drop gives up a file of Take, and leaves it empty: a name that others may have open is not removed.
func Drop(f *os.File) error {
	return errors.Join(lockfile.Write(f, ""), f.Close())
}

// Running says who has armed the machine; nil: nobody. It follows no link, waits for nobody, makes no
// file, and believes only one that root alone may write.
func Running(path string) (*Holder, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) {
		return nil, nil
	}
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG || st.Nlink != 1 || st.Uid != 0 || st.Mode&0o022 != 0 {
		return nil, fmt.Errorf("%s: type and mode %#o, %d names, owner %d: want a regular file of one name that root alone may write", path, st.Mode, st.Nlink, st.Uid)
	}
	lock := unix.Flock_t{Type: unix.F_WRLCK}
	if err := unix.FcntlFlock(uintptr(fd), unix.F_OFD_GETLK, &lock); err != nil {
		return nil, &fs.PathError{Op: "lock", Path: path, Err: err}
	}
	if lock.Type == unix.F_UNLCK {
		return nil, nil
	}
	h, err := parse(lockfile.Text(f))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &h, nil
}
