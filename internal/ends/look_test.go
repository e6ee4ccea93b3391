package ends

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stackshot/internal/bpf"
	"stackshot/internal/capture"
	"stackshot/internal/procfs"
	"stackshot/internal/testneed"
	"stackshot/kcdata"
)

// fakePass answers as it is told, or not for a while.
type fakePass struct {
	found  *bpf.FoundEnds
	err    error
	block  chan struct{} // nil: it answers at once
	closed int
}

func (p *fakePass) Look([]bpf.WantedEnd, []bpf.WantedThread, time.Time) (*bpf.FoundEnds, error) {
	if p.block != nil {
		<-p.block
	}
	return p.found, p.err
}

func (p *fakePass) Close() error { p.closed++; return nil }

// proc is a /proc made of files; a content that begins with "->" is a link.
func proc(t *testing.T, files map[string]string) procfs.FS {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		at := filepath.Join(root, name)
		err := os.MkdirAll(filepath.Dir(at), 0o755)
		if to, isLink := strings.CutPrefix(text, "->"); isLink {
			err = errors.Join(err, os.Symlink(to, at))
		} else {
			err = errors.Join(err, os.WriteFile(at, []byte(text), 0o644))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	readers := procfs.NewReaders(4, 0)
	t.Cleanup(readers.Close)
	return procfs.FS{Root: root, Readers: readers}
}

// stat is that of a process that started as raw says.
func stat(pid int) string {
	return fmt.Sprintf("%d (x) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 %d 0 0%s\n", pid, uint64(pid)*startOf/1e7, strings.Repeat(" 0", 28))
}

func status(pid, switches int, caught uint64) string {
	return fmt.Sprintf("Tgid:\t%d\nPid:\t%d\nSigCgt:\t%016x\nvoluntary_ctxt_switches:\t%d\nnonvoluntary_ctxt_switches:\t2\n", pid, pid, caught, switches)
}

const (
	mountinfo = "22 1 254:0 / / rw - ext4 /dev/vda rw\n30 22 0:50 / /mnt/backup rw - fuse.sshfs host:/x rw\n31 22 0:51 /sub /bind rw - ext4 /dev/vdb rw\n"
	inside    = mountinfo + "40 22 0:60 / /data rw - nfs4 server:/export rw\n41 22 0:61 / /proc rw - proc proc rw\n"
)

var around = map[string]string{
	"self/mountinfo": mountinfo, "self/ns/mnt": "->mnt:[1]", "partitions": "major minor  #blocks  name\n\n 254        0  100 vda\n",
	"locks":        "1: FLOCK  ADVISORY  WRITE 20 fe:00:99 0 EOF\n1: -> FLOCK  ADVISORY  WRITE 21 fe:00:99 0 EOF\n2: POSIX  ADVISORY  WRITE 20 fe:00:98 0 EOF\n",
	"20/mountinfo": inside, "20/stat": stat(20), "21/stat": stat(22),
}

// What stands beside the descriptors is read, each thing from its file.
func TestLookAround(t *testing.T) {
	lock := kcdata.LinuxFile{Kind: kcdata.FileRegular, Op: kcdata.FileOpFlock, Object: 0x4000, Inode: 99, Dev: 254 << 32}
	w := Wanted(raw(t, 7, []sleeper{asleep(20, lock)}, []sleeper{asleep(21, lock)}))
	still := map[capture.WaiterID]capture.Waiter{{Tid: 20, Start: 20 * startOf}: {Still: true}}
	pass := &fakePass{found: &bpf.FoundEnds{Ends: []kcdata.LinuxEnd{{Tgid: 20}}, FUSE: []kcdata.LinuxFUSE{{Dev: 50}}, Waiters: still, Looked: 12, Ns: 5, TooMany: true}}
	l := &Looker{Proc: proc(t, around), Pass: pass, Budget: 10 * time.Second}
	r := l.Look(w)
	if r.PassErr != nil || len(r.Ends.Ends) != 1 || len(r.FUSE) != 1 || len(r.Waiters) != 1 {
		t.Errorf("%+v", r)
	}
	taken := r.Taken
	if taken.TotalNs == 0 || taken.TotalNs > uint64(l.Budget) {
		t.Errorf("%d ns", taken.TotalNs)
	}
	taken.TotalNs = 0
	if want := (kcdata.LinuxFilesTaken{Wanted: 1, Ends: 1, Looked: 12, PassNs: 5, Flags: kcdata.FilesTooMany,
		Sources: kcdata.FilesHasPass | kcdata.FilesHasFUSE | kcdata.FilesHasLocks | kcdata.FilesHasMounts | kcdata.FilesHasDevices}); taken != want {
		t.Errorf("%+v", taken)
	}
	const eof = ^uint64(0)
	if want := []kcdata.LinuxFileLock{
		{Number: 1, Kind: kcdata.FileLockFlock, Flags: kcdata.FileLockWrite, Tgid: 20, Dev: 254 << 32, Inode: 99, End: eof, Began: 20 * startOf},
		{Number: 1, Kind: kcdata.FileLockFlock, Flags: kcdata.FileLockWrite | kcdata.FileLockWaits, Tgid: 21, Dev: 254 << 32, Inode: 99, End: eof},
	}; !slices.Equal(r.Locks, want) {
		t.Errorf("%+v", r.Locks)
	}
	var mounts []string
	for _, m := range r.Mounts {
		mounts = append(mounts, fmt.Sprintf("%d:%d %d %d %d %s %s %s %s", m.Dev>>32, uint32(m.Dev), m.Flags, m.Tgid, m.NS, text(m.FSType[:]), text(m.Source[:]), text(m.Point[:]), text(m.Root[:])))
	}
	if want := []string{"254:0 0 0 0 ext4 /dev/vda / /", "0:50 0 0 0 fuse.sshfs host:/x /mnt/backup /", "0:51 0 0 0 ext4 /dev/vdb /bind /sub",
		"0:60 1 20 7 nfs4 server:/export /data /"}; !slices.Equal(mounts, want) {
		t.Errorf("%q", mounts)
	}
	if len(r.Devices) != 1 || r.Devices[0].Dev != 254<<32 || text(r.Devices[0].Name[:]) != "vda" {
		t.Errorf("%+v", r.Devices)
	}
	if err := l.Close(); err != nil || pass.closed != 1 {
		t.Errorf("%v, closed %d times", err, pass.closed)
	}
}

func text(b []byte) string { return strings.TrimRight(string(b), "\x00") }

// Without a pass /proc tells who has the same pipes and sockets, and which threads still wait.
func TestLookByProc(t *testing.T) {
	files := map[string]string{
		"30/fd/0": "->pipe:[77]", "30/fdinfo/0": "pos:\t0\nflags:\t00\n", "30/fd/1": "->/dev/null", "30/stat": stat(30), "30/status": status(30, 5, 0),
		"31/fd/7": "->pipe:[77]", "31/fdinfo/7": "flags:\t0100001\n", "31/stat": stat(31), "31/status": status(31, 6, 1<<14),
		"32/fd/3": "->socket:[88]", "32/fd/4": "->socket:[77]", "32/fdinfo/3": "flags:\t02\n",
		"33/stat": stat(34), "33/status": status(33, 5, 0),
	}
	socket := kcdata.LinuxFile{Kind: kcdata.FileSocket, Object: 0x2000, Inode: 88}
	w := Wanted(raw(t, 1, []sleeper{asleep(30, aPipe)}, []sleeper{asleep(31, socket)}, []sleeper{asleep(33, aPipe)}))
	l := &Looker{Proc: proc(t, files), Budget: 10 * time.Second}
	r := l.Look(w)
	var got []string
	for _, e := range r.Ends.Ends {
		got = append(got, fmt.Sprintf("%d/%d %#x of %#x, start %d", e.Tgid, e.Fd, e.Flags, e.Of, e.Start))
	}
	if want := []string{"30/0 0x21 of 0xffff888000001000, start 30000000000", "31/7 0x22 of 0xffff888000001000, start 31000000000", "32/3 0x23 of 0x2000, start 0"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	id := func(tid uint32) capture.WaiterID { return capture.WaiterID{Tid: tid, Start: uint64(tid) * startOf} }
	if len(r.Waiters) != 2 || r.Waiters[id(30)] != (capture.Waiter{Still: true}) || r.Waiters[id(31)] != (capture.Waiter{Catches: true}) {
		t.Errorf("%+v", r.Waiters)
	}
	taken := r.Taken
	if !errors.Is(r.PassErr, ErrNoPass) || taken.Processes != 3 || taken.Looked != 5 || taken.Sources != kcdata.FilesHasProc ||
		taken.Flags != kcdata.FilesNoPass|kcdata.FilesNoMounts {
		t.Errorf("%v, %+v", r.PassErr, taken)
	}
}

// Nothing hangs: a pass that does not come back, and files of /proc that do not answer (a FIFO
// without a writer). What was read before is there; the next Look does not wait for the pass again.
func TestLookInTime(t *testing.T) {
	testneed.Lab(t, testneed.Time)
	block := make(chan struct{})
	pass := &fakePass{block: block, found: &bpf.FoundEnds{}}
	fs := proc(t, map[string]string{"self/mountinfo": mountinfo, "30/stat": stat(30), "30/status": status(30, 5, 0)})
	for _, name := range []string{"partitions", "locks"} {
		if err := unix.Mkfifo(filepath.Join(fs.Root, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { // the readers' threads come loose
		for _, name := range []string{"partitions", "locks"} {
			if f, err := os.OpenFile(filepath.Join(fs.Root, name), os.O_WRONLY|unix.O_NONBLOCK, 0); err == nil {
				f.Close()
			}
		}
	})
	l := &Looker{Proc: fs, Pass: pass, Budget: Budget}
	lock := kcdata.LinuxFile{Kind: kcdata.FileRegular, Op: kcdata.FileOpFlock, Object: 0x4000, Inode: 99, Dev: 254 << 32}
	w := Wanted(raw(t, 0, []sleeper{asleep(30, lock, aPipe)}))
	began := time.Now()
	r := l.Look(w)
	if took := time.Since(began); took > Budget+500*time.Millisecond || took < Budget {
		t.Errorf("%v", took)
	}
	if flags := uint32(kcdata.FilesHung | kcdata.FilesTimeUp | kcdata.FilesNoPass | kcdata.FilesNoLocks); r.Taken.Flags != flags ||
		r.Taken.Sources != kcdata.FilesHasMounts || len(r.Mounts) != 3 || r.PassErr == nil {
		t.Errorf("%+v, %v", r.Taken, r.PassErr)
	}
	began = time.Now()
	r = l.Look(w)
	if took := time.Since(began); took > Budget+500*time.Millisecond || !errors.Is(r.PassErr, errStuck) ||
		r.Taken.Sources&kcdata.FilesHasProc == 0 || r.Taken.Flags&kcdata.FilesHung == 0 {
		t.Errorf("%v, %v, %+v", took, r.PassErr, r.Taken)
	}
	if err := l.Close(); err != nil || pass.closed != 0 {
		t.Errorf("a pass that is away was closed: %v, %d", err, pass.closed)
	}
	close(block)
}

// Where fusectl is mounted, it tells how many requests a connection has unanswered.
func TestLookFUSESums(t *testing.T) {
	ctl := proc(t, map[string]string{"50/waiting": "3\n", "51/waiting": "0\n", "266338305/waiting": "1\n"})
	own := mountinfo + "60 22 0:70 / " + ctl.Root + " rw - fusectl fusectl rw\n"
	l := &Looker{Proc: proc(t, map[string]string{"self/mountinfo": own}), Budget: 10 * time.Second}
	r := l.Look(&Wants{})
	want := []kcdata.LinuxFUSE{{Dev: 50, Flags: kcdata.FUSESums, Waiting: 3}, {Dev: 254<<32 | 1, Flags: kcdata.FUSESums, Waiting: 1}}
	slices.SortFunc(r.FUSE, func(a, b kcdata.LinuxFUSE) int { return int(a.Dev>>32) - int(b.Dev>>32) })
	if !slices.Equal(r.FUSE, want) || r.PassErr != nil || r.Taken.Flags != 0 {
		t.Errorf("%+v, %v, %+v", r.FUSE, r.PassErr, r.Taken)
	}
}

// The kernel's own files are read as well as made-up ones.
func TestLookHere(t *testing.T) {
	readers := procfs.NewReaders(4, 0)
	defer readers.Close()
	l := &Looker{Proc: procfs.FS{Readers: readers}, Budget: 10 * time.Second}
	r := l.Look(&Wants{Locks: map[FileID]bool{{1, 1}: true}})
	if want := uint32(kcdata.FilesHasLocks | kcdata.FilesHasMounts); r.Taken.Sources&want != want || r.Taken.Flags != 0 || len(r.Mounts) == 0 {
		t.Errorf("%+v", r.Taken)
	}
	if r.Mounts[0].Dev == 0 || text(r.Mounts[0].FSType[:]) == "" || text(r.Mounts[0].Point[:]) == "" {
		t.Errorf("%+v", r.Mounts[0])
	}
}
