//go:build linux

package userlab

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"stackshot/internal/testfuse"
	"stackshot/internal/testneed"

	"golang.org/x/sys/unix"
)

// A StalledFS is a FUSE file system of one directory whose files can be looked
// up and opened, but whose reads wait for [StalledFS.Release]. The test process
// serves it, so it ends with that one.
//
// Never read a file of it from the test process itself.
type StalledFS struct {
	Dir string // where it is mounted

	server *testfuse.Server
	valid  uint64        // constant; seconds for which the kernel keeps names and attributes
	files  []stalledFile // constant after the mount; node id is index + 2

	mu      sync.Mutex
	free    bool               // under mu: reads are answered at once
	dead    bool               // under mu: nothing is answered
	waiting []testfuse.Request // under mu: reads that wait
	stalled map[string]bool    // under mu: files that were read, by name
}

type stalledFile struct {
	name string
	data []byte
	mode uint32
	open uint32 // FOPEN flags
	from uint64 // reads that end before this do not wait
}

// A StalledFile is one for [NewStalledFS].
type StalledFile struct {
	Name   string
	Data   []byte
	Mode   os.FileMode // permission bits
	Direct bool        // FOPEN_DIRECT_IO: mmap gives up the cached pages first
	From   uint64      // reads that end before this offset do not wait
}

// NewStalledFS mounts one until the test's cleanup. Needs root and /dev/fuse.
func NewStalledFS(tb testing.TB, files ...StalledFile) *StalledFS {
	tb.Helper()
	return newStalledFS(tb, fuseValid, files)
}

// NewDyingFS is NewStalledFS of files that can be read, until [StalledFS.Die]. The
// kernel keeps no names: whoever looks one up asks.
func NewDyingFS(tb testing.TB, files ...StalledFile) *StalledFS {
	tb.Helper()
	fs := newStalledFS(tb, 0, files)
	fs.Release()
	return fs
}

func newStalledFS(tb testing.TB, valid uint64, files []StalledFile) *StalledFS {
	tb.Helper()
	testneed.Root(tb)
	fs := &StalledFS{valid: valid, stalled: map[string]bool{}}
	for _, f := range files {
		s := stalledFile{name: f.Name, data: f.Data, mode: unix.S_IFREG | uint32(f.Mode.Perm()), open: testfuse.OpenKeepCache, from: f.From}
		if f.Direct {
			s.open |= testfuse.OpenDirectIO
		}
		fs.files = append(fs.files, s)
	}
	tb.Cleanup(func() {
		if err := fs.Close(); err != nil {
			tb.Error(err)
		}
	})
	if err := fs.mount(); Guest() && errors.Is(err, os.ErrNotExist) {
		tb.Skipf("userlab: the guest's kernel has no FUSE built in: %v", err)
	} else if err != nil {
		tb.Fatal(err)
	}
	return fs
}

// A mount that dies has a name that sweep, of whatever test, does not go to.
const mountPattern, dyingPattern = "userlab-fuse-", "userlab-dying-"

// sweep unmounts what test processes that were killed have left. Such a one has
// no server, which its error says.
func sweep() {
	dirs, _ := filepath.Glob(filepath.Join(os.TempDir(), mountPattern+"*"))
	for _, dir := range dirs {
		var st unix.Stat_t
		if errors.Is(unix.Stat(dir, &st), unix.ENOTCONN) && unix.Unmount(dir, unix.MNT_DETACH) == nil {
			unix.Rmdir(dir)
		}
	}
}

func (fs *StalledFS) mount() error {
	sweep()
	// Not tb.TempDir: nothing may ever walk into it.
	var err error
	pattern := mountPattern
	if fs.valid == 0 {
		pattern = dyingPattern
	}
	if fs.Dir, err = os.MkdirTemp("", pattern); err != nil {
		return fmt.Errorf("userlab: %w", err)
	}
	if fs.server, err = testfuse.Mount(fs.Dir, "userlab", fs.answer); err != nil {
		return errors.Join(fmt.Errorf("userlab: %w", err), unix.Rmdir(fs.Dir))
	}
	return nil
}

// Path of a file in it.
func (fs *StalledFS) Path(name string) string { return filepath.Join(fs.Dir, name) }

// Stalls says whether somebody waits, or has waited, for this file's content.
func (fs *StalledFS) Stalls(name string) bool {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	return fs.stalled[name]
}

// Release answers all reads, those that wait and those to come.
func (fs *StalledFS) Release() {
	fs.mu.Lock()
	fs.free, fs.dead = true, false
	waiting := fs.waiting
	fs.waiting = nil
	fs.mu.Unlock()
	for _, r := range waiting {
		if r.Opcode == testfuse.Read {
			fs.server.Reply(r, 0, fs.content(r))
		} else {
			body, errno := fs.answerAtOnce(r)
			fs.server.Reply(r, errno, body)
		}
	}
}

// Die has nothing answered, until Release.
func (fs *StalledFS) Die() {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.dead = true
}

// Stall undoes Release for reads to come.
func (fs *StalledFS) Stall() {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.free = false
}

// Close releases, unmounts, and ends the server, which fails all that still
// waits. A second call does nothing.
func (fs *StalledFS) Close() error {
	if fs.server == nil {
		return nil
	}
	fs.Release()
	err := errors.Join(unix.Unmount(fs.Dir, unix.MNT_DETACH), fs.server.Close())
	fs.server = nil
	err = errors.Join(err, unix.Rmdir(fs.Dir)) // never recursive
	if err != nil {
		return fmt.Errorf("userlab: end of %s: %w", fs.Dir, err)
	}
	return nil
}
