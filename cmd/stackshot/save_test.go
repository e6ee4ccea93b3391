package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"stackshot/internal/testneed"

	"golang.org/x/sys/unix"
)

// Targets that are refused, at once and before anything is captured.
func TestRefusedTargets(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	t.Parallel()
	needRoot(t)
	dir := t.TempDir()
	sub, link, fifo, foreign := dir+"/sub", dir+"/link", dir+"/fifo", dir+"/foreign"
	victim := filepath.Join(t.TempDir(), "victim")
	for _, err := range []error{
		os.Mkdir(sub, 0o755), os.Symlink(victim, link), unix.Mkfifo(fifo, 0o600),
		os.WriteFile(foreign, []byte("theirs"), 0o644), os.Chown(foreign, 65534, 65534),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		path  string
		words []string
	}{
		{sub, []string{sub, "directory"}},
		{sub + "/", []string{sub, "directory"}},
		{dir + "/.", []string{"directory"}},
		{"/", []string{"directory"}},
		{link, []string{link, "symbolic link"}},
		{fifo, []string{fifo, "not a regular file"}},
		{"/dev/null", []string{"not a regular file", "-o -"}},
		{foreign, []string{foreign, "uid 65534"}},
		{dir + "/none/x", []string{dir + "/none", "no such file or directory"}},
		{foreign + "/x", []string{foreign, "not a directory"}},
		{dir + "/" + strings.Repeat("n", 300), []string{"file name too long"}},
		{"/proc/x", []string{"/proc/x"}},
	} {
		o := stackshot(t, "take", "-o", c.path)
		if c.path == "/proc/x" { // it looks well until it is written
			o.want(t, exitIncomplete, c.words...)
			mode0600(t, o.spared(t))
			continue
		}
		if o.want(t, exitFailed, c.words...); o.stdout != "" {
			t.Errorf("%s: captured all the same", c.path)
		}
	}
	onlyFile(t, dir, "fifo", "foreign", "link", "sub")
	if _, err := os.Stat(victim); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the symbolic link was followed: %v", err)
	}
}

// A file of ours under the name given is replaced, never written through. -q says nothing.
func TestReplace(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	t.Parallel()
	dir := t.TempDir()
	file, other := dir+"/file", dir+"/other"
	if err := errors.Join(os.WriteFile(file, []byte("old"), 0o644), os.Link(file, other)); err != nil {
		t.Fatal(err)
	}
	o := stackshot(t, "take", "-q", "-o", file)
	if taken(t, o); o.stdout != "" || o.code == 0 && o.stderr != "" {
		t.Errorf("-q: stdout %.100q, stderr %.100q", o.stdout, o.stderr)
	}
	mode0600(t, file)
	if b, err := os.ReadFile(other); string(b) != "old" {
		t.Errorf("its other name now holds %.20q, %v", b, err)
	}
	onlyFile(t, dir, "file", "other")
}

// A full disk: nothing under the name, nothing unfinished, and the snapshot is
// kept elsewhere.
func TestFullDisk(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	t.Parallel()
	dir := t.TempDir()
	withMounts(t, func(t *testing.T) {
		mount(t, "none", dir, "tmpfs", 0, "size=4k")
		o := stackshot(t, "take", "-o", dir+"/file")
		o.want(t, exitIncomplete, dir+"/file: write at byte", "no space left on device", "/dev/shm/stackshot-")
		if !strings.Contains(o.stdout, "threads in") {
			t.Error("no report")
		}
		mode0600(t, o.spared(t))
		onlyFile(t, dir)
	})
}

// A directory without the right to write refuses early. A file system that is read-only does not
// keep the snapshot from being taken, nor does either as the current directory, where we chose the name ourselves.
func TestUnwritableDirectory(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	t.Parallel()
	dir, closed := t.TempDir(), openDir(t)
	withMounts(t, func(t *testing.T) {
		mount(t, "none", dir, "tmpfs", unix.MS_RDONLY, "size=4k")
		if err := os.Chmod(closed, 0o555); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			dir, why string
			bend     func(*exec.Cmd)
		}{{dir, "read-only file system", func(*exec.Cmd) {}}, {closed, "permission denied", asNobody}} {
			o := invocation{bend: c.bend}.run(t, "take", "-o", c.dir+"/file")
			if c.dir == closed {
				if o.want(t, exitFailed, c.dir, c.why); o.stdout != "" {
					t.Error("captured all the same")
				}
			} else {
				o.want(t, exitIncomplete, c.dir, c.why, "/dev/shm/stackshot-")
				mode0600(t, o.spared(t))
			}
			o = invocation{bend: func(cmd *exec.Cmd) { c.bend(cmd); cmd.Dir = c.dir }}.run(t, "take")
			o.want(t, exitIncomplete, c.why, "/dev/shm/stackshot-")
			mode0600(t, o.spared(t))
		}
		o := stackshot(t, "hang", "--pid", strconv.Itoa(os.Getpid()), "-o", dir+"/file") // others may hang, as tests do
		o.want(t, exitIncomplete, "read-only file system")
		mode0600(t, o.spared(t))
		for _, path := range []string{dir + "/", dir + "/file"} {
			o := stackshot(t, "take", "--count", "2", "-o", path)
			o.want(t, exitIncomplete, "read-only file system", "2 of 2 snapshots were saved somewhere else")
			for _, o.stderr = range strings.SplitAfter(o.stderr, " instead")[:2] {
				mode0600(t, o.spared(t))
			}
		}
	})
}

// No place at all: exit code 1, and the report is there all the same.
func TestNowhereToWrite(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	t.Parallel()
	dir := t.TempDir()
	withMounts(t, func(t *testing.T) {
		for _, place := range []string{dir, "/dev/shm", os.TempDir()} {
			if place != os.TempDir() {
				mount(t, "none", place, "tmpfs", unix.MS_RDONLY, "")
			}
		}
		in := invocation{bend: func(c *exec.Cmd) { c.Dir, c.Env = dir, []string{"TMPDIR=" + dir} }}
		o := in.run(t, "take")
		o.want(t, exitFailed, "read-only file system", "the snapshot is lost")
		if !strings.Contains(o.stdout, "threads in") {
			t.Error("no report")
		}
	})
}
