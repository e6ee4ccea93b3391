package snapshot

import (
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

// TestFilesOfTheFixture: each thread that waits at a file has its descriptors, with their kind
// and what the call does, and whoever is known to have the other end is found there.
func TestFilesOfTheFixture(t *testing.T) {
	testneed.Live(t)
	requireBPF(t)
	f := testfiles.Start(t)
	forEngines(t, func(t *testing.T, engine string) {
		s := &standing{Fixture: f}
		_, s.snap, _ = takeWhole(t, Options{Engine: engine, UserStacks: UserStacksOff}, Request{Pids: s.pids()})
		s.threads = threadsByID(s.snap)
		wantLooked(t, s.snap)
		for _, w := range f.Waits {
			s.wantFiles(t, w)
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
}
