package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"stackshot/internal/show"
)

// target is a name that a snapshot is to be written under. Its methods touch
// the file system and may hang there; they run in the helper process (C2).
type target struct {
	path    string
	replace bool // a regular file of ours that is there already may go

	dir  int // O_PATH of its directory
	base string
	temp atomic.Pointer[string] // name of the unfinished file; nil: none
}

var errTarget = errors.New("cannot be a snapshot's target")

func (t *target) refuse(format string, args ...any) error {
	return fmt.Errorf("%s: %w: %s", t.path, errTarget, fmt.Sprintf(format, args...))
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
	if err := t.vacant(); err != nil {
		return err
	}
	if err := unix.Faccessat(fd, ".", unix.W_OK|unix.X_OK, 0); err != nil {
		return t.failed("directory "+dir, err)
	}
	return nil
}

// vacant says whether the final name can be taken.
func (t *target) vacant() error {
	var st unix.Stat_t
	err := unix.Fstatat(t.dir, t.base, &st, unix.AT_SYMLINK_NOFOLLOW)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return t.failed("stat", err)
	}
	switch kind := st.Mode & unix.S_IFMT; {
	case kind == unix.S_IFDIR:
		return t.refuse("it is a directory")
	case kind == unix.S_IFLNK:
		return t.refuse("it is a symbolic link (-o - writes to standard output)")
	case kind != unix.S_IFREG:
		return t.refuse("it is not a regular file (-o - writes to standard output)")
	case !t.replace:
		return t.refuse("it exists")
	case int(st.Uid) != unix.Geteuid():
		return t.refuse("it exists and belongs to uid %d", st.Uid)
	}
	return nil
}

// write makes the file: a temporary name in the same directory, the bytes,
// fsync, then the final name, whole or not at all (C4).
func (t *target) write(data *os.File) error {
	temp := fmt.Sprintf(".stackshot-%d.tmp", os.Getpid())
	fd, err := unix.Openat(t.dir, temp, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return t.failed("create "+temp+" beside it", err)
	}
	t.temp.Store(&temp)
	out := os.NewFile(uintptr(fd), temp)
	defer out.Close()
	if err := t.fill(out, data); err != nil {
		t.abandon()
		return err
	}
	if err := t.publish(temp); err != nil {
		t.abandon()
		return err
	}
	t.temp.Store(nil)
	return t.syncDir()
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
	if err := out.Close(); err != nil {
		return t.failed("close", show.WithoutPath(err))
	}
	return nil
}

// publish renames. Rename never follows a symbolic link in the final name.
func (t *target) publish(temp string) error {
	if err := t.vacant(); err != nil {
		return err
	}
	flags := uint(unix.RENAME_NOREPLACE)
	if t.replace {
		flags = 0
	}
	err := unix.Renameat2(t.dir, temp, t.dir, t.base, flags)
	if errors.Is(err, unix.EINVAL) && flags != 0 { // a file system without the flag
		err = unix.Renameat(t.dir, temp, t.dir, t.base)
	}
	if err != nil {
		return t.failed("rename "+temp+" to it", err)
	}
	return nil
}

// syncDir makes the name last. Some file systems cannot, and say EINVAL.
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

// abandon removes the unfinished file. It may be called from another thread
// while write is under way.
func (t *target) abandon() {
	if temp := t.temp.Swap(nil); temp != nil {
		unix.Unlinkat(t.dir, *temp, 0)
	}
}
