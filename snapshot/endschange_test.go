package snapshot

import (
	"slices"
	"testing"
	"time"

	"stackshot/internal/bpf"
	"stackshot/internal/ends"
	"stackshot/internal/testfiles"
	"stackshot/internal/testneed"
	"stackshot/internal/testtask"
	"stackshot/internal/waits"
	"stackshot/kcdata"
)

// meddler does something after the release, before the pass over open files.
type meddler struct {
	ends.Pass
	before func()
}

func (m *meddler) Look(e []bpf.WantedEnd, threads []bpf.WantedThread, until time.Time) (*bpf.FoundEnds, error) {
	m.before()
	return m.Pass.Look(e, threads, until)
}

// meddled opens a session whose pass has a meddler. In a guest the trap takes a minute to
// load, and the pass is the same with every engine.
func meddled(t *testing.T) (*Session, *meddler) {
	t.Helper()
	options := Options{UserStacks: UserStacksOff}
	if testneed.Guest() {
		options.Engine = EnginePull
	}
	o := session(t, options)
	if o.ends == nil || o.ends.Pass == nil {
		t.Fatal("the session has no pass over open files")
	}
	m := &meddler{Pass: o.ends.Pass}
	o.ends.Pass = m
	return o, m
}

// between captures a fixture that does something between release and pass.
func between(t *testing.T, o *Session, m *meddler, do func(f *testfiles.Fixture)) *standing {
	t.Helper()
	s := &standing{Fixture: testfiles.Start(t)}
	once := false
	m.before = func() {
		if !once {
			do(s.Fixture)
		}
		once = true
	}
	_, s.snap, _ = captureOnce(t, o, Request{Pids: s.pids()})
	s.threads = threadsByID(s.snap)
	if !once {
		t.Fatal("no pass was made")
	}
	wantLooked(t, s.snap)
	return s
}

// file is the record of the first file of a wait.
func (s *standing) file(t *testing.T, name string) *kcdata.LinuxFile {
	t.Helper()
	w := s.Wait(name)
	th := s.threads[uint64(w.Tid)]
	if th == nil || len(th.Files) == 0 || int(th.Files[0].Fd) != w.File[0].Fd {
		t.Fatalf("%s: no record of its file: %+v", name, th)
	}
	return &th.Files[0]
}

// wantUsers wants these at the other end of a wait's file, and no others.
func (s *standing) wantUsers(t *testing.T, name string, want ...testfiles.User) {
	t.Helper()
	file := s.file(t, name)
	flags := uint32(kcdata.EndWrites)
	if file.Kind == kcdata.FileSocket {
		flags = kcdata.EndPeer
	}
	if got := s.ends(file, flags); file.Flags&kcdata.FileStill == 0 || !slices.Equal(got, sorted(want)) {
		t.Errorf("%s: ends %v, want %v: %+v", name, got, want, *file)
	}
}

// wantUnblamed wants nobody who could end the wait.
func (s *standing) wantUnblamed(t *testing.T, name string) {
	t.Helper()
	if x := waitsFor(waits.Of(s.snap), s.Wait(name).Tid); x != nil && len(x.Owners) > 0 {
		t.Errorf("%s: %+v are said to keep it", name, x.Owners)
	}
}

// Between the release and the pass the world goes on. Found is who has an end then, and only
// if the thread still waits.
func TestEndsChangeBeforeThePass(t *testing.T) {
	testneed.Live(t)
	requireBPF(t)
	testneed.Slow(t)
	o, m := meddled(t)
	end := func(f *testfiles.Fixture, name string, i int) testfiles.User {
		e := f.Wait(name).File[0].Ends[i]
		return testfiles.User{Pid: e.Process.Pid, Fd: e.Fd}
	}
	t.Run("closed", func(t *testing.T) {
		s := between(t, o, m, func(f *testfiles.Fixture) { f.B.Do(t, "close", end(f, "pipe-writers", 1).Fd) })
		s.wantUsers(t, "pipe-writers", end(s.Fixture, "pipe-writers", 0))
	})
	t.Run("reused", func(t *testing.T) {
		s := between(t, o, m, func(f *testfiles.Fixture) { f.B.Do(t, "dup", 0, end(f, "pipe-writers", 1).Fd) })
		s.wantUsers(t, "pipe-writers", end(s.Fixture, "pipe-writers", 0))
	})
	t.Run("passed", func(t *testing.T) {
		var got int
		s := between(t, o, m, func(f *testfiles.Fixture) {
			fd := end(f, "unix-client", 0).Fd
			f.B.Do(t, "send", fd, f.Link.B)
			f.B.Do(t, "close", fd)
			got = f.A.Do(t, "receive", f.Link.A)
		})
		s.wantUsers(t, "unix-client", testfiles.User{Pid: s.A.Pid, Fd: got})
	})
	t.Run("in flight", func(t *testing.T) {
		s := between(t, o, m, func(f *testfiles.Fixture) {
			fd := end(f, "fifo", 0).Fd
			f.B.Do(t, "send", fd, f.Link.B)
			f.B.Do(t, "close", fd)
		})
		s.wantUsers(t, "fifo")
		s.wantUnblamed(t, "fifo")
		if x := waitsFor(waits.Of(s.snap), s.Wait("fifo").Tid); x.File == nil || x.File.Says == waits.NoEnd || x.File.Says == waits.NotOpened {
			t.Errorf("of a FIFO whose writer is on its way to somebody it is said that there is none: %+v", x.File)
		}
	})
	t.Run("moved", func(t *testing.T) {
		s := between(t, o, m, func(f *testfiles.Fixture) {
			f.A.Do(t, "close", end(f, "pipe", 0).Fd)
			left := func() (bool, error) { return !f.Wait("pipe").Waits(), nil }
			if err := testtask.WaitFor(10*time.Second, left); err != nil {
				t.Error(err)
			}
		})
		file := s.file(t, "pipe")
		if file.Flags&kcdata.FileMoved == 0 || file.Flags&kcdata.FileStill != 0 || len(s.ends(file, ^uint32(0))) > 0 || s.snap.FilesTaken.Moved == 0 {
			t.Errorf("a thread that has gone on: %+v, %+v", *file, *s.snap.FilesTaken)
		}
		s.wantUnblamed(t, "pipe")
	})
}

// Processes with one table of descriptors both have the end.
func TestEndsOfASharedTable(t *testing.T) {
	testneed.Live(t)
	requireBPF(t)
	twin := 0
	o, m := meddled(t)
	s := between(t, o, m, func(f *testfiles.Fixture) { twin = f.A.Do(t, "share") })
	e := s.Wait("pipe").File[0].Ends[0]
	s.wantUsers(t, "pipe", testfiles.User{Pid: s.A.Pid, Fd: e.Fd}, testfiles.User{Pid: twin, Fd: e.Fd})
}

// Tables of processes that end during the pass do not matter to what others have.
func TestEndsWhileProcessesEnd(t *testing.T) {
	testneed.Lab(t, testneed.Scheduler)
	requireBPF(t)
	testneed.Slow(t)
	f := testfiles.Start(t)
	testtask.SpawnExitStorm(t, testtask.Storm{})
	o := session(t, Options{UserStacks: UserStacksOff})
	for range testneed.Length(3, 100) {
		s := &standing{Fixture: f}
		_, s.snap, _ = captureOnce(t, o, Request{Pids: s.pids()})
		s.threads = threadsByID(s.snap)
		wantLooked(t, s.snap)
		for _, w := range f.Waits {
			s.wantFiles(t, w)
		}
	}
}
