package publish

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// target is a name that a snapshot is to be written under. Its methods touch
// the file system and may hang there; they run in the helper process (invariant 1).
type target struct {
	path    string
	replace bool // a regular file of the same user may be replaced

	dir   int // O_PATH of its directory; -1: not open yet
	base  string
	temp  atomic.Pointer[string] // name of the file before it has its own; nil: none
	late  atomic.Bool            // nobody waits for it any more: it is not to get its name
	named chan struct{}          // closed when it has its own name
}

func newTarget(path string, replace bool) *target {
	return &target{path: path, replace: replace, dir: -1, named: make(chan struct{})}
}

func (t *target) refuse(format string, args ...any) error {
	return fmt.Errorf("%s: %w: %s", t.path, ErrTarget, fmt.Sprintf(format, args...))
}

func (t *target) failed(op string, err error) error { return fmt.Errorf("%s: %s: %w", t.path, op, err) }

// open finds the directory and refuses what cannot be written: a directory, a
// symbolic link, a special file, somebody else's file, a directory without
// write permission.
func (t *target) open() error {
	dir, base := filepath.Split(t.path)
	if base == "" || base == "." || base == ".." || strings.ContainsRune(base, 0) {
		return t.refuse("it is a directory")
	}
	if dir == "" {
		dir = "."
	}
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return t.failed("open directory "+dir, err)
	}
	t.dir, t.base = fd, base
	if _, err := t.vacant(); err != nil {
		return err
	}
	if err := unix.Faccessat(fd, ".", unix.W_OK|unix.X_OK, 0); err != nil {
		return t.failed("directory "+dir, err)
	}
	return nil
}

// closeAfter closes the directory when whoever works on the target has ended. That may be never: it
// is not waited for.
func (t *target) closeAfter(ended <-chan struct{}) {
	closing := func() {
		if t.dir >= 0 {
			unix.Close(t.dir)
		}
	}
	select {
	case <-ended:
		closing()
	default:
		go func() { <-ended; closing() }()
	}
}

// vacant says whether the file may get its final name. taken: a file of the same user has it.
func (t *target) vacant() (taken bool, err error) {
	var st unix.Stat_t
	err = unix.Fstatat(t.dir, t.base, &st, unix.AT_SYMLINK_NOFOLLOW)
	if errors.Is(err, unix.ENOENT) {
		return false, nil
	}
	if err != nil {
		return false, t.failed("stat", err)
	}
	switch kind := st.Mode & unix.S_IFMT; {
	case kind == unix.S_IFDIR:
		return false, t.refuse("it is a directory")
	case kind == unix.S_IFLNK:
		return false, t.refuse("it is a symbolic link (-o - writes to standard output)")
	case kind != unix.S_IFREG:
		return false, t.refuse("it is not a regular file (-o - writes to standard output)")
	case !t.replace:
		return false, t.refuse("it exists")
	case int(st.Uid) != unix.Geteuid():
		return false, t.refuse("it exists and belongs to uid %d", st.Uid)
	}
	return true, nil
}

// remove removes the file. That there is none is no error.
func (t *target) remove() error {
	if taken, err := t.vacant(); err != nil || !taken {
		return err
	}
	if err := unix.Unlinkat(t.dir, t.base, 0); err != nil && !errors.Is(err, unix.ENOENT) {
		return t.failed("remove", err)
	}
	return nil
}
