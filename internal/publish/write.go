package publish

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"stackshot/internal/show"
)

// Everybody may be allowed to write to a directory. Whoever can guess a name there can take it
// first, so no name that the writing needs can be guessed. If the file system knows files
// without a name (O_TMPFILE), the snapshot is one until it is whole, and a crash leaves
// nothing. Otherwise, and to replace a file, it has a random name until then.

// nameTries bounds how often a random name is found taken. That cannot happen by chance: such
// a file system lies.
const nameTries = 8

// cameBetween bounds how often somebody makes, or removes, the target while it is
// being written.
const cameBetween = 3

// errNamed says that this file system wants a name from the beginning.
var errNamed = errors.New("no file without a name")

// write makes the file: its bytes, fsync, then the final name, whole or not at all
// (invariant 3).
func (t *target) write(data *os.File) error {
	err := t.writeUnnamed(data)
	if errors.Is(err, errNamed) {
		err = t.writeNamed(data)
	}
	if err != nil {
		t.abandon()
		return err
	}
	return t.syncDir()
}

func (t *target) writeUnnamed(data *os.File) error {
	fd, err := unix.Openat(t.dir, ".", unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return errNamed // which says what else may be wrong
	}
	out := os.NewFile(uintptr(fd), t.base)
	defer out.Close()
	if err := t.fill(out, data); err != nil {
		return err
	}
	return t.link(fmt.Sprintf("/proc/self/fd/%d", fd))
}

// link gives the open file its name. A link never replaces a file, so to replace one it gets a
// random name first and is renamed.
func (t *target) link(open string) error {
	for range cameBetween {
		taken, err := t.vacant()
		switch {
		case err != nil:
			return err
		case taken:
			if _, err := t.newTemp(func(name string) (int, error) { return 0, linkAt(open, t.dir, name) }); err != nil {
				return errNamed
			}
			return t.rename(true)
		case t.late.Load():
			return t.failed("link to it", unix.ECANCELED)
		}
		switch err := linkAt(open, t.dir, t.base); {
		case err == nil:
			close(t.named)
			return nil
		case !errors.Is(err, unix.EEXIST):
			return errNamed
		}
	}
	return t.refuse("others keep making and removing it")
}

func linkAt(open string, dir int, name string) error {
	return unix.Linkat(unix.AT_FDCWD, open, dir, name, unix.AT_SYMLINK_FOLLOW)
}

// newTemp calls make with a name that nobody can guess, and notes the name.
func (t *target) newTemp(make func(name string) (int, error)) (fd int, err error) {
	for range nameTries {
		name := ".stackshot-" + rand.Text() + ".tmp"
		if fd, err = make(name); !errors.Is(err, unix.EEXIST) {
			if err == nil {
				t.temp.Store(&name)
				if t.late.Load() {
					t.abandon()
				}
			}
			return fd, err
		}
	}
	return -1, err
}

func (t *target) writeNamed(data *os.File) error {
	fd, err := t.newTemp(func(name string) (int, error) {
		return unix.Openat(t.dir, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	})
	if err != nil {
		return t.failed("create a file beside it", err)
	}
	out := os.NewFile(uintptr(fd), t.base)
	defer out.Close()
	if err := t.fill(out, data); err != nil {
		return err
	}
	if err := out.Close(); err != nil {
		return t.failed("close", show.WithoutPath(err))
	}
	taken, err := t.vacant()
	if err != nil {
		return err
	}
	return t.rename(taken)
}

func (t *target) fill(out, data *os.File) error {
	st, err := data.Stat()
	if err != nil {
		return t.failed("snapshot in memory", err)
	}
	if n, err := io.Copy(out, io.NewSectionReader(data, 0, st.Size())); err != nil {
		return t.failed(fmt.Sprintf("write at byte %d of %d", n, st.Size()), show.WithoutPath(err))
	}
	if err := out.Chmod(0o600); err != nil { // whatever the directory's default ACL made of it
		return t.failed("chmod", show.WithoutPath(err))
	}
	if err := out.Sync(); err != nil {
		return t.failed("fsync", show.WithoutPath(err))
	}
	return nil
}

// rename gives the file its final name. With replace, another file may have that name. A
// symbolic link there is not followed.
func (t *target) rename(replace bool) error {
	temp := t.temp.Load()
	if temp == nil {
		return t.failed("rename to it", unix.ECANCELED) // abandoned
	}
	err := error(unix.EINVAL)
	if !replace {
		err = unix.Renameat2(t.dir, *temp, t.dir, t.base, unix.RENAME_NOREPLACE)
	}
	if errors.Is(err, unix.EINVAL) { // to replace, or on a file system without the flag
		err = unix.Renameat(t.dir, *temp, t.dir, t.base)
	}
	switch {
	case errors.Is(err, unix.EEXIST):
		return t.refuse("somebody made it in the meantime")
	case err != nil:
		return t.failed("rename "+*temp+" to it", err)
	}
	close(t.named)
	t.temp.Store(nil)
	return nil
}

// syncDir brings the name to the disk. Some file systems cannot, and say EINVAL.
func (t *target) syncDir() error {
	fd, err := unix.Openat(t.dir, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil // a directory we may write but not read
	}
	defer unix.Close(fd)
	if err := unix.Fsync(fd); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOTSUP) {
		return t.failed("fsync its directory", err)
	}
	return nil
}

// cancel makes a write that another thread has begun fail, unless the file has its name
// already.
func (t *target) cancel() {
	t.late.Store(true)
	t.abandon()
}

// abandon removes the unfinished file.
func (t *target) abandon() {
	if temp := t.temp.Swap(nil); temp != nil {
		unix.Unlinkat(t.dir, *temp, 0)
	}
}
