package snapshot

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"stackshot/internal/testfiles"
	"stackshot/internal/testneed"
	"stackshot/kcdata"
)

// fileOps is what each call of the fixture does.
var fileOps = map[string]uint32{"fifo-open": kcdata.FileOpOpen, "poll": kcdata.FileOpPoll, "select": kcdata.FileOpPoll, "pidfd": kcdata.FileOpPoll,
	"epoll": kcdata.FileOpEpoll, "flock": kcdata.FileOpFlock, "posix": kcdata.FileOpPOSIX, "ofd": kcdata.FileOpOFD,
	"pipe-full": kcdata.FileOpWrite, "unix-full": kcdata.FileOpWrite, "unix-accept": kcdata.FileOpAccept, "tcp-accept": kcdata.FileOpAccept}

// standing is a capture of the fixture of open files.
type standing struct {
	*testfiles.Fixture
	snap    *kcdata.Snapshot
	threads map[uint64]*kcdata.Thread
}

// wantLooked wants a pass that looked at everything.
func wantLooked(t *testing.T, s *kcdata.Snapshot) {
	t.Helper()
	const not = kcdata.FilesTimeUp | kcdata.FilesTooMany | kcdata.FilesNoPass | kcdata.FilesHung | kcdata.FilesTooWanted | kcdata.FilesNoLocks
	if s.FilesTaken == nil || s.FilesTaken.Sources&kcdata.FilesHasPass == 0 || s.FilesTaken.Flags&not != 0 {
		t.Fatalf("no whole pass over open files: %+v", s.FilesTaken)
	}
}

func (s *standing) pids() (pids []int) {
	for _, p := range s.Processes() {
		pids = append(pids, p.Pid)
	}
	return pids
}

// ends are those of a file that one of the flags says, as users.
func (s *standing) ends(file *kcdata.LinuxFile, flags uint32) (out []testfiles.User) {
	for _, e := range s.snap.Ends {
		if e.Of == file.Object && e.Flags&flags != 0 {
			out = append(out, testfiles.User{Pid: int(e.Tgid), Fd: int(e.Fd)})
		}
	}
	return sorted(out)
}

func sorted(u []testfiles.User) []testfiles.User {
	slices.SortFunc(u, func(a, b testfiles.User) int { return (a.Pid-b.Pid)<<20 + a.Fd - b.Fd })
	return slices.Compact(u)
}

// TestFilesOfTheFixture: each thread that waits at a file has its descriptors, with their kind
// and what the call does; whoever is known to have the other end is found there, and nobody else of
// the fixture. Redacted, the file has the same without addresses and names.
func TestFilesOfTheFixture(t *testing.T) {
	testneed.Live(t)
	requireBPF(t)
	f := testfiles.Start(t)
	forEngines(t, func(t *testing.T, engine string) {
		for _, redact := range []bool{false, true} {
			if redact && engine == EnginePull {
				continue // as of trap
			}
			s := &standing{Fixture: f}
			var res *Result
			res, s.snap, _ = takeWhole(t, Options{Engine: engine, Redact: redact}, Request{Pids: s.pids()})
			s.threads = threadsByID(s.snap)
			wantLooked(t, s.snap)
			for _, w := range f.Waits {
				s.wantFiles(t, w)
			}
			k := s.snap.FilesTaken
			if want := uint32(kcdata.FilesHasTable | kcdata.FilesHasPass | kcdata.FilesHasLocks | kcdata.FilesHasMounts); res.Files == nil || *res.Files != *k ||
				k.Sources&want != want || int(k.Threads) < len(f.Waits) || k.Moved != 0 || k.DelayNs == 0 || len(s.snap.FileLocks) == 0 || len(s.snap.Mounts) == 0 || s.snap.Mounts[0].FSType == [32]byte{} {
				t.Errorf("redacted %v: %+v, %d locks, %d mounts", redact, k, len(s.snap.FileLocks), len(s.snap.Mounts))
			}
			s.wantLocks(t)
			redactedEnds(t, redact, s.snap)
		}
	})
}

func (s *standing) wantFiles(t *testing.T, w *testfiles.Wait) {
	t.Helper()
	th := s.threads[uint64(w.Tid)]
	if th == nil {
		t.Errorf("%s: not in the file", w.Name)
		return
	}
	op, named := fileOps[w.Name]
	if !named {
		op = kcdata.FileOpRead
	}
	if op != kcdata.FileOpOpen && len(th.Files) != len(w.File) {
		t.Errorf("%s: %d files, want %d: %+v", w.Name, len(th.Files), len(w.File), th.Files)
	}
	for _, want := range w.File {
		i := slices.IndexFunc(th.Files, func(f kcdata.LinuxFile) bool { return int(f.Fd) == want.Fd })
		if i < 0 {
			t.Errorf("%s: no descriptor %d", w.Name, want.Fd)
			continue
		}
		got := &th.Files[i]
		const bad = kcdata.FileClosed | kcdata.FileUnread | kcdata.FileMoved
		if got.Op != op || got.Kind != want.Kind || got.Flags&bad != 0 || got.Flags&kcdata.FileStill == 0 {
			t.Errorf("%s: descriptor %d: %+v, want kind %d, op %d", w.Name, want.Fd, *got, want.Kind, op)
		}
		if got.Flags&kcdata.FileOpaque == 0 {
			s.wantEnds(t, w, got, want.Ends)
		}
	}
}

// wantLocks wants the locks of each file that is waited for: the holder's, the waiter's and, of
// flock's file, a lease. The kernel names nobody for a lock of an open file description (OFD).
func (s *standing) wantLocks(t *testing.T) {
	t.Helper()
	const eof = math.MaxUint64
	type row struct {
		kind, flags, tgid uint32
		start, end        uint64
	}
	const held, waits = kcdata.FileLockWrite, kcdata.FileLockWrite | kcdata.FileLockWaits
	a, b, waiter := uint32(s.A.Pid), uint32(s.B.Pid), uint32(s.Waiter.Pid)
	for name, want := range map[string][]row{
		"flock": {{kcdata.FileLockFlock, held, a, 0, eof}, {kcdata.FileLockFlock, waits, waiter, 0, eof}, {kcdata.FileLockLease, 0, b, 0, eof}},
		"posix": {{kcdata.FileLockPOSIX, held, a, 3, 3}, {kcdata.FileLockPOSIX, waits, waiter, 3, 3}},
		"ofd":   {{kcdata.FileLockOFD, held, 0, 3, 3}, {kcdata.FileLockOFD, waits, 0, 3, 3}},
	} {
		w := s.Wait(name)
		th := s.threads[uint64(w.Tid)]
		if th == nil || len(th.Files) != 1 {
			continue // wantFiles has said it
		}
		var got []row
		for _, l := range s.snap.FileLocks {
			if l.Inode == th.Files[0].Inode && l.Dev == th.Files[0].Dev {
				got = append(got, row{l.Kind, l.Flags, l.Tgid, l.Start, l.End})
			}
		}
		less := func(x, y row) int { return cmp.Or(cmp.Compare(x.kind, y.kind), cmp.Compare(x.flags, y.flags)) }
		slices.SortFunc(got, less)
		slices.SortFunc(want, less)
		if !slices.Equal(got, want) {
			t.Errorf("%s: locks %v, want %v", name, got, want)
		}
	}
}

// wantEnds wants these ends, with their flags.
func (s *standing) wantEnds(t *testing.T, w *testfiles.Wait, file *kcdata.LinuxFile, want []testfiles.End) {
	t.Helper()
	for _, e := range want {
		found := slices.ContainsFunc(s.snap.Ends, func(x kcdata.LinuxEnd) bool {
			return x.Of == file.Object && int(x.Tgid) == e.Process.Pid && int(x.Fd) == e.Fd && x.Flags&e.Flags == e.Flags
		})
		if !found || file.Object == 0 {
			t.Errorf("%s: descriptor %d of %s (%d) is not found at its other end with flags %#x: %+v", w.Name, e.Fd, e.Process.Name, e.Process.Pid, e.Flags, *file)
			for _, x := range s.snap.Ends {
				if x.Of == file.Object || int(x.Tgid) == e.Process.Pid && int(x.Fd) == e.Fd {
					t.Logf("but %+v", x)
				}
			}
		}
	}
	for _, x := range s.snap.Ends {
		is := func(e testfiles.End) bool { return int(x.Tgid) == e.Process.Pid && int(x.Fd) == e.Fd }
		if x.Of == file.Object && x.Flags&kcdata.EndListens == 0 && int(x.Tgid) != w.Pid && slices.Contains(s.pids(), int(x.Tgid)) && !slices.ContainsFunc(want, is) {
			t.Errorf("%s: %+v is no end of %+v", w.Name, x, *file)
		}
	}
}

// redactedEnds: addresses, ports, paths and names are in the file just if it is not redacted.
func redactedEnds(t *testing.T, redacted bool, s *kcdata.Snapshot) {
	t.Helper()
	address, port, point, object := false, false, false, false
	for _, e := range s.Ends {
		address = address || e.Local != [16]byte{} || e.Remote != [16]byte{}
		port = port || e.Port != 0 || e.PeerPort != 0
		object = object || e.Object > 1<<40 || e.Peer > 1<<40 || e.Of > 1<<40 || e.File > 1<<40
	}
	for _, m := range s.Mounts {
		point = point || m.Point != [256]byte{} || m.Source != [128]byte{} || m.Root != [64]byte{}
	}
	if address == redacted || port == redacted || point == redacted || object == redacted || redacted && len(s.Devices) > 0 {
		t.Errorf("redacted %v: address %v, port %v, mount point %v, addresses of the kernel %v, %d devices", redacted, address, port, point, object, len(s.Devices))
	}
}
