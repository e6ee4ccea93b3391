package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Requests of the FUSE protocol (include/uapi/linux/fuse.h).
const (
	fuseLookup  = 1
	fuseForget  = 2
	fuseGetattr = 3
	fuseSetattr = 4
	fuseUnlink  = 10
	fuseRename  = 12
	fuseWrite   = 16
	fuseRelease = 18
	fuseFsync   = 20
	fuseFlush   = 25
	fuseInit    = 26
	fuseAccess  = 34
	fuseCreate  = 35
	fuseRename2 = 45

	fuseNever = 0 // stalls nowhere
	fuseAll   = -1
)

// stallingFS is a file system with an empty root that takes a file's bytes and
// drops them, until the request at which it says nothing any more.
type stallingFS struct {
	dev     *os.File
	at      int // opcode, fuseAll: everything, fuseNever: nothing
	renamed bool
}

// newStallingFS mounts one. The thread must have a mount namespace of its own.
func newStallingFS(t *testing.T, dir string, at int) *stallingFS {
	t.Helper()
	fd, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatalf("/dev/fuse: %v", err)
	}
	mount(t, "stalled", dir, "fuse", unix.MS_NOSUID|unix.MS_NODEV, fmt.Sprintf("fd=%d,rootmode=40755,user_id=0,group_id=0", fd))
	// Known to the poller only now: before the mount poll says error.
	fs := &stallingFS{dev: os.NewFile(uintptr(fd), "/dev/fuse"), at: at}
	go fs.serve()
	t.Cleanup(func() { fs.dev.Close() }) // the last one: ends the connection and every wait on it
	return fs
}

func (fs *stallingFS) serve() {
	buf := make([]byte, 1<<20+4096)
	for {
		n, err := fs.dev.Read(buf)
		if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EINTR) {
			continue // a request that was taken back
		}
		if err != nil || n < 40 {
			return
		}
		opcode := int(binary.LittleEndian.Uint32(buf[4:]))
		if opcode == fuseForget || opcode != fuseInit && (fs.at == fuseAll || fs.at == opcode) {
			continue
		}
		errno, body := fs.answer(opcode, buf[40:n])
		out := binary.LittleEndian.AppendUint32(nil, uint32(16+len(body)))
		out = binary.LittleEndian.AppendUint32(out, uint32(-int32(errno)))
		out = append(append(out, buf[8:16]...), body...)
		fs.dev.Write(out)
	}
}

func (fs *stallingFS) answer(opcode int, in []byte) (unix.Errno, []byte) {
	le := binary.LittleEndian
	switch opcode {
	case fuseInit:
		out := make([]byte, 64)
		le.PutUint32(out[0:], 7)
		le.PutUint32(out[4:], 31)
		le.PutUint32(out[20:], 64<<10) // max_write
		return 0, out
	case fuseLookup:
		return unix.ENOENT, nil
	case fuseGetattr, fuseSetattr:
		return 0, append(make([]byte, 16), attr(opcode == fuseGetattr)...)
	case fuseCreate:
		out := make([]byte, 40, 144)
		le.PutUint64(out, 2)         // nodeid
		le.PutUint64(out[16:], 1000) // entry_valid, s: rename finds it without asking
		return 0, append(append(out, attr(false)...), make([]byte, 16)...)
	case fuseWrite:
		return 0, append(le.AppendUint32(nil, le.Uint32(in[16:])), 0, 0, 0, 0)
	case fuseRename, fuseRename2:
		fs.renamed = true
		return 0, nil
	case fuseFsync, fuseFlush, fuseRelease, fuseUnlink:
		return 0, nil
	}
	return unix.ENOSYS, nil
}

// attr is struct fuse_attr of the root or of the file.
func attr(root bool) []byte {
	out := make([]byte, 88)
	ino, mode := uint64(2), uint32(unix.S_IFREG|0o600)
	if root {
		ino, mode = 1, unix.S_IFDIR|0o755
	}
	binary.LittleEndian.PutUint64(out, ino)
	binary.LittleEndian.PutUint32(out[60:], mode)
	binary.LittleEndian.PutUint32(out[64:], 1)
	return out
}

// stall runs f beside a mounted stalling file system, and sees to it that
// nothing of it stays.
func stall(t *testing.T, at int, f func(t *testing.T, dir string)) {
	dir := filepath.Join(t.TempDir(), "mnt")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	withMounts(t, func(t *testing.T) {
		fs := newStallingFS(t, dir, at)
		f(t, dir)
		unix.Unmount(dir, unix.MNT_DETACH)
		fs.dev.Close()
	})
	noHelperLeft(t, dir)
}

// noHelperLeft waits for the helper processes that were given up on dir: once
// the file system is gone, so are they.
func noHelperLeft(t *testing.T, dir string) {
	t.Helper()
	for range 100 {
		left := helpersOf(dir)
		if len(left) == 0 {
			return
		}
		time.Sleep(30 * time.Millisecond)
	}
	t.Errorf("helpers %v are left", helpersOf(dir))
}

func helpersOf(dir string) (pids []int) {
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range all {
		b, _ := os.ReadFile(file)
		if strings.Contains(string(b), saveVerb) && strings.Contains(string(b), dir) {
			pid, _ := strconv.Atoi(strings.Split(file, "/")[2])
			pids = append(pids, pid)
		}
	}
	return pids
}

// The check of the test's own file system: where nothing stalls, take writes.
func TestFUSEWithoutStall(t *testing.T) {
	t.Parallel()
	stall(t, fuseNever, func(t *testing.T, dir string) {
		taken(t, stackshot(t, "take", "-o", dir+"/x"))
	})
}

// With the default limits, on a mount where nothing answers: the whole report
// within 15 s, the process ends, and the ways out are named.
func TestStalledMount(t *testing.T) {
	t.Parallel()
	stall(t, fuseAll, func(t *testing.T, dir string) {
		o := invocation{limit: 15 * time.Second}.run(t, "take", "-o", dir+"/x")
		o.want(t, exitIncomplete, dir+"/x", "does not answer", "10s", "-o -", "/dev/shm/")
		if !strings.Contains(o.stdout, "threads in") || !strings.Contains(o.stdout, "task") {
			t.Errorf("no whole report: %.300s", o.stdout)
		}
		mode0600(t, o.spared(t))
	})
}

// Whichever step hangs, the end is the same.
func TestStallAtEachStep(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]int{
		"lookup": fuseLookup, "access": fuseAccess, "create": fuseCreate, "write": fuseWrite,
		"chmod": fuseSetattr, "fsync": fuseFsync, "close": fuseFlush, "rename": fuseRename,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stall(t, at, func(t *testing.T, dir string) {
				o := stackshot(t, "take", "-o", dir+"/x", "--write-timeout", "500ms", "--lock-wait", "20s")
				o.want(t, exitIncomplete, "does not answer", "500ms")
				mode0600(t, o.spared(t))
			})
		})
	}
}

// The current directory is the stalled one: nothing waits for it either.
func TestStalledCurrentDirectory(t *testing.T) {
	t.Parallel()
	stall(t, fuseCreate, func(t *testing.T, dir string) {
		// A shell goes there: were it our fork, this process, which serves the
		// file system, would wait for itself.
		in := invocation{bend: func(c *exec.Cmd) {
			c.Path, c.Args = "/bin/sh", append([]string{"sh", "-c", `cd "$0" && exec "$@"`, dir}, c.Args...)
		}}
		o := in.run(t, "take", "--write-timeout", "500ms", "--lock-wait", "20s")
		o.want(t, exitIncomplete, "does not answer")
		mode0600(t, o.spared(t))
	})
}

// ^C while the file system stalls: at once, exit code 1.
func TestInterruptWhileStalled(t *testing.T) {
	t.Parallel()
	stall(t, fuseAll, func(t *testing.T, dir string) {
		o := interrupt(t, "threads in", unix.SIGINT, "take", "-o", dir+"/x", "--lock-wait", "20s")
		o.want(t, exitFailed, dir+"/x", "interrupted")
	})
}
