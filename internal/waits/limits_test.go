package waits

import (
	"strings"
	"testing"

	"stackshot/internal/golden"
	"stackshot/kcdata"
)

// The sentences say what this file cannot tell, and nothing else; no other file is of one
// instant than one that nothing ran in.
func TestLimits(t *testing.T) {
	all := uint32(1<<7 - 1)
	for _, c := range []struct {
		name string
		do   func(s *kcdata.Snapshot)
		want string
		one  bool
	}{
		{"whole", func(s *kcdata.Snapshot) {}, "", true},
		{"preemptoff", func(s *kcdata.Snapshot) { s.Isolation = "preemptoff" }, "", true},
		{"fifo", func(s *kcdata.Snapshot) { s.Isolation = "fifo" }, "not of one instant", false},
		{"fifo, nothing ran", func(s *kcdata.Snapshot) {
			s.Isolation, s.Atomicity = "fifo", &kcdata.LinuxAtomicity{Compared: 5}
		}, "", true},
		{"fifo, nothing compared", func(s *kcdata.Snapshot) { s.Isolation, s.Atomicity = "fifo", &kcdata.LinuxAtomicity{} }, "not of one instant", false},
		{"fifo, one missed", func(s *kcdata.Snapshot) {
			s.Isolation, s.Atomicity = "fifo", &kcdata.LinuxAtomicity{Compared: 5, Missed: 1}
		}, "not of one instant", false},
		{"irqoff, one ran", func(s *kcdata.Snapshot) { s.Atomicity = &kcdata.LinuxAtomicity{Compared: 5, Ran: 1} }, "not of one instant", false},
		{"broken", func(s *kcdata.Snapshot) { s.Capture.StopBroken = 1 }, "not of one instant", false},
		{"missed CPU", func(s *kcdata.Snapshot) { s.CPUs[1].Flags |= kcdata.CPUMissed }, "CPU 1 did not come", false},
		{"left CPU", func(s *kcdata.Snapshot) { s.CPUs[0].Flags |= kcdata.CPULeft }, "CPU 0 was left", false},
		{"procfs", func(s *kcdata.Snapshot) { s.Engine, s.Isolation, s.WaitTaken = "procfs", "none", nil }, "engine procfs", false},
		{"--wait off", func(s *kcdata.Snapshot) { s.WaitTaken = nil }, "--wait off", true},
		{"--wait off, D", func(s *kcdata.Snapshot) { s.WaitTaken, s.Tasks[0].Threads[0].Linux.State = nil, blocked }, "whom 1 thread in uninterruptible sleep (D) waits for", true},
		{"cut", func(s *kcdata.Snapshot) { s.WaitTaken, s.Tasks[0].Threads[0].Wait = nil, &kcdata.LinuxWait{} }, "the file breaks off before", true},
		{"no fields", func(s *kcdata.Snapshot) {
			s.WaitTaken.Sources = all &^ (kcdata.WaitHasBlockedOn | kcdata.WaitHasBlocker)
		}, "interruptible waits for a kernel lock", true},
		{"no scan", func(s *kcdata.Snapshot) { s.WaitTaken.Sources = all &^ kcdata.WaitHasScan }, "killable", true},
		{"neither", func(s *kcdata.Snapshot) {
			s.WaitTaken.Sources = all &^ (kcdata.WaitHasScan | kcdata.WaitHasBlocker)
		}, "are not seen: there is no field", true},
		{"no words", func(s *kcdata.Snapshot) { s.WaitTaken.Sources = all &^ kcdata.WaitHasWords }, "owners of futexes", true},
		{"scans", func(s *kcdata.Snapshot) { s.WaitTaken.Unsound = 1 }, "1 scan of a kernel stack met", true},
		{"absent", func(s *kcdata.Snapshot) {
			s.Tasks[0].Threads[0].Futexes = []kcdata.LinuxFutex{{Flags: kcdata.FutexAbsent}, {Flags: kcdata.FutexAbsent, OwnerTid: 7}, {}}
		}, "1 futex word had", true},
		{"absent, with an owner", func(s *kcdata.Snapshot) {
			s.Tasks[0].Threads[0].Futexes = []kcdata.LinuxFutex{{Flags: kcdata.FutexAbsent, OwnerTid: 7}}
		}, "", true},
		{"no files", func(s *kcdata.Snapshot) { s.FilesTaken = nil }, "open files were not recorded", true},
		{"no files, --wait off", func(s *kcdata.Snapshot) { s.FilesTaken, s.WaitTaken = nil, nil }, "--wait off", true},
		{"no table", func(s *kcdata.Snapshot) { s.FilesTaken.Sources = 0 }, "descriptors could not be followed", true},
		{"nobody looked", func(s *kcdata.Snapshot) { s.FilesTaken.Sources &^= kcdata.FilesHasPass }, "was not looked for", true},
		{"no unix", func(s *kcdata.Snapshot) { s.FilesTaken.Sources &^= kcdata.FilesHasUnix }, "what unix sockets lead to", true},
		{"no epoll", func(s *kcdata.Snapshot) { s.FilesTaken.Sources &^= kcdata.FilesHasEpoll }, "sets of epolls", true},
		{"no ttys", func(s *kcdata.Snapshot) { s.FilesTaken.Sources &^= kcdata.FilesHasTTY }, "sides of terminals", true},
		{"/proc", func(s *kcdata.Snapshot) {
			s.FilesTaken.Sources ^= kcdata.FilesHasPass | kcdata.FilesHasProc
		}, "is from /proc", true},
		{"pass failed", func(s *kcdata.Snapshot) { s.FilesTaken.Flags = kcdata.FilesNoPass }, "failed", true},
		{"time up", func(s *kcdata.Snapshot) { s.FilesTaken.Flags = kcdata.FilesTimeUp }, "its time was up", true},
		{"too many", func(s *kcdata.Snapshot) { s.FilesTaken.Flags = kcdata.FilesTooMany }, "more ends", true},
		{"too many wanted", func(s *kcdata.Snapshot) { s.FilesTaken.Flags = kcdata.FilesTooWanted }, "than were looked for", true},
		{"hung", func(s *kcdata.Snapshot) { s.FilesTaken.Flags = kcdata.FilesHung }, "did not end in time", true},
		{"no locks", func(s *kcdata.Snapshot) { s.FilesTaken.Flags = kcdata.FilesNoLocks }, "/proc/locks could not", true},
		{"no locks wanted", func(s *kcdata.Snapshot) { s.FilesTaken.Sources &^= kcdata.FilesHasLocks }, "", true},
		{"no mounts", func(s *kcdata.Snapshot) { s.FilesTaken.Sources &^= kcdata.FilesHasMounts }, "file systems have no names", true},
		{"moved", func(s *kcdata.Snapshot) { s.FilesTaken.Moved = 2 }, "2 threads went on before", true},
		{"more", func(s *kcdata.Snapshot) { s.FilesTaken.More = 1 }, "1 descriptor beyond the first 16", true},
		{"unread", func(s *kcdata.Snapshot) { s.FilesTaken.Unread = 3 }, "3 open files could not", true},
		{"unsettled", func(s *kcdata.Snapshot) { s.FilesTaken.Unsettled = 3 }, "descriptors of 3 processes", true},
		{"redacted", func(s *kcdata.Snapshot) { s.Machine.Redacted = 1 }, "redacted", true},
		{"part", func(s *kcdata.Snapshot) { s.Request = "--pid 7" }, "part of the machine", true},
		{"left out", func(s *kcdata.Snapshot) { s.LeftOut = make([]kcdata.LinuxLeftOut, 3) }, "3 tasks", true},
		{"namespace", func(s *kcdata.Snapshot) { s.Machine.PidNSIsFirst = 0 }, "one pid namespace", true},
	} {
		w := newWorld()
		w.task(10, 1, asleep, inPipe...)
		c.do(w.s)
		got := w.of()
		text := strings.Join(got.Limits, "\n")
		golden.Showable(t, []byte(text))
		if got.OneInstant != c.one || c.want == "" && text != "" || !strings.Contains(text, c.want) {
			t.Errorf("%s: one instant %v, limits %q; want %v, %q", c.name, got.OneInstant, text, c.one, c.want)
		}
		if got.Unrecorded != strings.Contains(text, "no wait records") {
			t.Errorf("%s: unrecorded %v: %q", c.name, got.Unrecorded, text)
		}
		if len(got.CPUs) == 0 || &got.CPUs[0] != &w.s.CPUs[0] {
			t.Errorf("%s: the CPUs that package waitgraph asks are not those of the file", c.name)
		}
		for _, l := range got.Limits {
			if strings.HasSuffix(l, ".") {
				t.Errorf("%s: %q ends in a full stop", c.name, l)
			}
		}
	}
}

// The words that were read at other moments say so.
func TestWhen(t *testing.T) {
	w := newWorld()
	th := w.task(10, 1, asleep, inPipe...)
	hidden := w.task(11, 1, asleep, inPipe...)
	hidden.Linux.Present &^= kcdata.ThreadHasOnCPU
	all := w.of()
	if all.Of[th].When != Window || all.Of[hidden].When != Later {
		t.Errorf("%s, %s", all.Of[th].When, all.Of[hidden].When)
	}
	w.s.Engine, th.Kernel, th.Wchan = "procfs", nil, "do_epoll_wait"
	hidden.Kernel = nil
	all = w.of()
	if got := all.Of[th]; got.When != NotAtOne || got.Kind != Poll {
		t.Errorf("procfs: %+v", got)
	}
	if got := all.Of[hidden]; got.Kind != Other {
		t.Errorf("no stack: %+v", got)
	}
	wantNote(t, "no stack", all.Of[hidden], "no kernel stack")
}
