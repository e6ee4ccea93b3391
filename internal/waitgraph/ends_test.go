package waitgraph

import (
	"strings"
	"testing"
	"time"

	"stackshot/internal/waits"
	"stackshot/kcdata"
)

// Threads of the stories: process n has the threads 2n and 2n+1, but the second is there only if it is named.
const (
	a, a2, b, b2, c, d = 0, 1, 2, 3, 4, 6
)

// reads lets thread n read from a pipe or socket that others have.
func (w *world) reads(n int, age time.Duration, owners ...waits.Owner) *waits.Wait {
	x := at(w.waits(n, waits.Socket, age, owners...), kcdata.FileSocket, kcdata.FileToRead)
	x.AnyOwner = len(owners) > 1
	return x
}

// writes lets thread n wait for room.
func (w *world) writes(n int, age time.Duration, owners ...waits.Owner) *waits.Wait {
	return at(w.waits(n, waits.Pipe, age, owners...), kcdata.FilePipe, kcdata.FileToWrite)
}

// polls lets thread n wait for any of several.
func (w *world) polls(n int, age time.Duration, owners ...waits.Owner) *waits.Wait {
	x := at(w.waits(n, waits.Poll, age, owners...), kcdata.FileSocket, kcdata.FileToRead|kcdata.FilePolled)
	x.File.File.Op, x.File.Of, x.AnyOwner = kcdata.FileOpPoll, 2, true
	return x
}

func serves(x *waits.Wait) *waits.Wait { x.File.Says = waits.Serves; return x }

// TestI10 holds the verdict on small machines of processes, each made by hand.
func TestI10(t *testing.T) {
	for name, c := range map[string]struct {
		make func(w *world)
		want string
	}{
		"requests of two": {func(w *world) {
			w.reads(a, old, w.owes(waits.OtherEnd, b))
			w.reads(b, old, w.owes(waits.OtherEnd, a))
		}, "sure deadlock 0 2"},
		"requests of three, one behind": {func(w *world) {
			w.reads(a, old, w.whole(waits.OtherEnd, b))
			w.reads(b, old, w.whole(waits.OtherEnd, c))
			w.reads(c, old, w.whole(waits.OtherEnd, a))
			w.reads(d, old, w.whole(waits.OtherEnd, b))
		}, "sure deadlock 0 2 4 behind 6"},
		"the other thread sleeps": {func(w *world) {
			w.reads(a, old, w.whole(waits.OtherEnd, b))
			w.reads(b, old, w.whole(waits.OtherEnd, a))
			w.waits(b2, waits.Timer, old)
		}, ""},
		"the other thread runs": {func(w *world) {
			w.reads(a, old, w.whole(waits.OtherEnd, b))
			w.reads(b, old, w.whole(waits.OtherEnd, a))
			w.running(b2)
		}, ""},
		"the other thread has ended": {func(w *world) {
			w.reads(a, old, w.whole(waits.OtherEnd, b))
			w.reads(b, old, w.whole(waits.OtherEnd, a))
			w.in(b2, kcdata.StateDead)
		}, "sure deadlock 0 2"},
		"the other thread waits for the first": {func(w *world) {
			w.reads(a, old, w.whole(waits.OtherEnd, b))
			w.reads(b, old, w.whole(waits.OtherEnd, a))
			w.waits(b2, waits.UserJoin, old, w.by(waits.Joined, b))
		}, "sure deadlock 0 2 of 0 2 3"},
		"the other thread is at rest": {func(w *world) {
			w.reads(a, old, w.whole(waits.OtherEnd, b))
			w.reads(b, old, w.whole(waits.OtherEnd, a))
			serves(w.reads(b2, old))
		}, ""},
		"a futex's owner reads what its waiter would write": {func(w *world) {
			w.reads(a, old, w.whole(waits.OtherEnd, b))
			w.waits(b, waits.UserMutex, old, w.holds(a))
		}, "sure deadlock 0 2"},
		"a full pipe, its reader waits for the writer's end": {func(w *world) {
			w.writes(a, old, w.owes(waits.OtherEnd, b))
			w.waits(b, waits.ChildEnd, old, w.by(waits.Child, a))
		}, "sure deadlock 0 2"},
		"three writers, one can": {func(w *world) {
			w.reads(a, old, w.whole(waits.OtherEnd, b), w.whole(waits.OtherEnd, c), w.whole(waits.OtherEnd, d))
			w.reads(b, old, w.whole(waits.OtherEnd, a))
			w.reads(c, old, w.whole(waits.OtherEnd, a))
			w.waits(d, waits.Timer, old)
		}, ""},
		"three writers, none can": {func(w *world) {
			w.reads(a, old, w.whole(waits.OtherEnd, b), w.whole(waits.OtherEnd, c), w.whole(waits.OtherEnd, d))
			for _, n := range []int{b, c, d} {
				w.reads(n, old, w.whole(waits.OtherEnd, a))
			}
		}, "sure deadlock 0 2 of 0 2 4 6"},
		"polls are never sure": {func(w *world) {
			w.polls(a, old, w.owes(waits.OtherEnd, b))
			w.reads(b, old, w.owes(waits.OtherEnd, a))
		}, "likely deadlock 0 2"},
		"polls with another way on": {func(w *world) {
			w.polls(a, old, w.owes(waits.OtherEnd, b)).File.Others = 1
			w.reads(b, old, w.owes(waits.OtherEnd, a))
		}, ""},
		"polls with another way on, and the one that owes runs": {func(w *world) {
			unread(w.polls(b, old, w.owes(waits.OtherEnd, a))).File.Others = 1
			w.running(a)
			w.polls(c, old, w.whole(waits.OtherEnd, a)).File.Others = 1
		}, "culprit 0 running: 2"},
		"a FIFO is never sure": {func(w *world) {
			w.reads(a, old, w.owes(waits.OtherEnd, b)).File.File.Kind = kcdata.FileFIFO
			w.reads(b, old, w.owes(waits.OtherEnd, a))
		}, "likely deadlock 0 2"},
		"who catches signals is never sure": {func(w *world) {
			w.reads(a, old, w.owes(waits.OtherEnd, b)).File.File.Flags |= kcdata.FileCatches
			w.reads(b, old, w.owes(waits.OtherEnd, a))
		}, "likely deadlock 0 2"},
		"a timeout, and nothing is owed": {func(w *world) {
			w.reads(a, old, w.whole(waits.OtherEnd, b)).Timed = true
			w.reads(b, old, w.whole(waits.OtherEnd, a))
		}, ""},
		"a timeout, and an answer is owed": {func(w *world) {
			w.reads(a, old, w.owes(waits.OtherEnd, b)).Timed = true
			w.reads(b, old, w.whole(waits.OtherEnd, a))
		}, "likely deadlock 0 2"},
		"its own end": {func(w *world) { w.reads(a, old, w.whole(waits.OtherEnd, a)) }, "likely deadlock 0"},
		"its own end, another thread": {func(w *world) {
			w.reads(a, old, w.whole(waits.OtherEnd, a))
			w.waits(a2, waits.Timer, old)
		}, ""},
		"its own end, polled":      {func(w *world) { w.polls(a, old, w.whole(waits.OtherEnd, a)) }, ""},
		"its own end, by a signal": {func(w *world) { w.reads(a, old, w.whole(waits.OtherEnd, a)).File.File.Flags |= kcdata.FileCatches }, ""},
		"its own FIFO": {func(w *world) {
			f := w.reads(a, old, w.whole(waits.OtherEnd, a)).File.File
			f.Kind, f.OFlags = kcdata.FileFIFO, readWrite
		}, ""},
		"an idle pool": {func(w *world) { // each reads the next request; the clients wait for nothing
			serves(w.reads(a, old, w.whole(waits.OtherEnd, c)))
			serves(w.reads(b, old, w.whole(waits.OtherEnd, c)))
			w.reads(c, old, w.whole(waits.OtherEnd, a), w.whole(waits.OtherEnd, b))
		}, ""},
		"accept, nobody connects": {func(w *world) { serves(w.reads(a, old)) }, ""},

		"a server that is busy": {func(w *world) {
			w.running(a)
			unread(w.reads(b, old, w.owes(waits.OtherEnd, a)))
			w.reads(c, old, w.whole(waits.OtherEnd, b))
		}, "culprit 0 running: 2 4"},
		"a subscriber of a server that is busy": {func(w *world) {
			w.running(a)
			w.reads(b, old, w.owes(waits.OtherEnd, a))
		}, ""},
		"a subscriber of a server that waits for a CPU": {func(w *world) {
			w.waits(a, waits.CPU, young)
			w.waits(a2, waits.UserCondvar, old)
			w.reads(b, old, w.owes(waits.OtherEnd, a))
		}, ""},
		"a server that is busy, of a client that sends all the time": {func(w *world) {
			w.running(a)
			unread(w.reads(b, old, w.owes(waits.OtherEnd, a)))
			w.waits(b2, waits.Timer, young)
		}, ""},
		"a server that is busy, of a client with a thread that has ended": {func(w *world) {
			w.running(a)
			unread(w.reads(b, old, w.owes(waits.OtherEnd, a)))
			w.in(b2, kcdata.StateDead)
		}, "culprit 0 running: 2"},
		"jobs behind a file lock": {func(w *world) { // flock(1) waits for the job, which works
			w.waits(a, waits.ChildEnd, old, w.by(waits.Child, b))
			w.running(b)
			at(w.waits(c, waits.FileLock, old, w.whole(waits.Holds, a)), kcdata.FileRegular, 0)
			w.waits(d, waits.Timer, old)
			at(w.waits(8, waits.FileLock, old, w.whole(waits.Holds, d)), kcdata.FileRegular, 0)
		}, "starved 4 8"},
		"a pool takes turns at its socket": {func(w *world) {
			accept := func(n int) { serves(w.reads(n, old)).File.File.Op = kcdata.FileOpAccept }
			accept(a)
			for n := b; n <= 10; n += 2 {
				w.waits(n, waits.UserMutex, old, w.holds(a)).Resource = waits.Resource{Kind: waits.UserMutex, ID: 9}
				at(w.waits(n+1, waits.FileLock, old, w.whole(waits.Holds, a)), kcdata.FileRegular, 0).Resource = waits.Resource{Kind: waits.FileLock, ID: 9}
			}
			for _, task := range w.tasks {
				task.Linux.Ppid = 99
			}
		}, ""},
		"threads take turns": {func(w *world) {
			x := serves(w.polls(a, old))
			x.Thread.Sockets = []kcdata.LinuxSocket{{}, {Flags: kcdata.SocketListens}}
			w.waits(a2, waits.UserMutex, old, w.holds(a))
		}, ""},
		"who waits for a connection has a stranger's lock": {func(w *world) {
			serves(w.reads(c, old)).File.File.Op = kcdata.FileOpAccept
			w.waits(d, waits.UserMutex, old, w.holds(c))
			w.task(c).Linux.Ppid, w.task(d).Linux.Ppid = 1, 1
		}, "culprit 4 asleep: 6"},
		"a listener that is busy": {func(w *world) {
			w.running(a)
			w.writes(b, old, w.owes(waits.Listener, a)).File.File.Op = kcdata.FileOpConnect
		}, "culprit 0 running: 2"},
		"a reader of which one writer of three is free has a lock": {func(w *world) {
			w.reads(a, old, w.whole(waits.OtherEnd, b), w.whole(waits.OtherEnd, c), w.whole(waits.OtherEnd, d))
			w.waits(b, waits.UserMutex, old, w.holds(a))
			w.waits(c, waits.UserMutex, old, w.holds(a))
			w.waits(d, waits.Timer, old)
		}, "culprit 0 asleep: 2 4"},
		"a file lock over a stalled FUSE server": {func(w *world) {
			w.waits(a, waits.Timer, old)
			w.d(b, waits.FUSE, old, w.owes(waits.Server, a))
			w.waits(c, waits.FileLock, old, w.owes(waits.Holds, b))
		}, "culprit 0 asleep: 2 4"},
		"a server that is busy and owes nothing": {func(w *world) {
			w.running(a)
			w.reads(b, old, w.whole(waits.OtherEnd, a))
		}, ""},
		"a server that has owed for a moment": {func(w *world) {
			w.running(a)
			w.reads(b, young, w.owes(waits.OtherEnd, a))
		}, ""},
		"a server that sleeps for a time and has not read": {func(w *world) {
			w.waits(a, waits.Timer, old)
			unread(w.reads(b, old, w.owes(waits.OtherEnd, a)))
		}, "culprit 0 asleep: 2"},
		"a server that sends news at intervals": {func(w *world) {
			w.waits(a, waits.UserCondvar, old).Timed = true
			w.waits(a2, waits.Timer, old)
			w.reads(b, old, w.owes(waits.OtherEnd, a))
		}, ""},
		"a server that sleeps and owes": {func(w *world) {
			w.waits(a, waits.UserCondvar, old)
			w.reads(b, old, w.owes(waits.OtherEnd, a))
		}, "culprit 0 asleep: 2"},
		"a server at rest that owes": {func(w *world) {
			serves(w.reads(a, old))
			w.reads(b, old, w.owes(waits.OtherEnd, a))
		}, ""},
		"a server that polls and owes": {func(w *world) {
			w.polls(a, old)
			w.reads(b, old, w.owes(waits.OtherEnd, a))
		}, ""},
		"a server that waits for another machine": {func(w *world) {
			w.reads(a, old).File.Says = waits.Elsewhere
			w.reads(b, old, w.owes(waits.OtherEnd, a))
		}, "culprit 0 asleep: 2"},
		"a server that owes and is stopped, or in D, or owes nothing and is": {func(w *world) {
			w.in(a, kcdata.StateStopped)
			w.waits(a, waits.Stopped, old)
			w.reads(b, old, w.whole(waits.OtherEnd, a))
			w.d(c, waits.NFS, old)
			w.reads(d, old, w.whole(waits.OtherEnd, c))
		}, "culprit 4 blocked: 6; culprit 0 stopped: 2"},
		"one thread of a server is in D": {func(w *world) {
			w.d(a2, waits.BlockIO, old)
			w.reads(b, old, w.owes(waits.OtherEnd, a))
			w.waits(a, waits.UserJoin, old, w.by(waits.Joined, a2))
		}, "culprit 1 blocked: 0 2"},
		"a server's thread waits for a lock": {func(w *world) {
			w.waits(a, waits.UserMutex, old, w.holds(c))
			w.waits(a2, waits.UserMutex, old, w.holds(c))
			w.running(c)
			w.reads(b, old, w.whole(waits.OtherEnd, a))
		}, "culprit 4 running: 0 1 2"},
		"room at a slow reader": {func(w *world) { // a | b | c, and c computes
			w.writes(a, old, w.owes(waits.OtherEnd, b))
			w.writes(b, old, w.owes(waits.OtherEnd, c))
			w.running(c)
		}, "starved 0 2"},
		"room at a pager": {func(w *world) {
			w.writes(a, old, w.owes(waits.OtherEnd, b))
			w.waits(b, waits.Terminal, old)
		}, "starved 0"},
		"room at a stopped reader": {func(w *world) {
			w.writes(a, old, w.owes(waits.OtherEnd, b))
			w.writes(b, old, w.owes(waits.OtherEnd, c))
			w.in(c, kcdata.StateStopped)
			w.waits(c, waits.Stopped, old)
		}, "culprit 4 stopped: 0 2"},
		"who holds a lock waits for an idle server": {func(w *world) {
			w.reads(a, old, w.owes(waits.OtherEnd, b))
			w.polls(b, old)
			w.waits(c, waits.UserMutex, old, w.holds(a))
		}, "culprit 0 asleep: 4"},

		"a stalled FUSE server": {func(w *world) {
			w.waits(a, waits.Timer, old)
			serves(w.reads(a2, young))
			for n := b; n < 6; n++ {
				w.d(n, waits.FUSE, old, w.whole(waits.Server, a))
			}
		}, "culprit 0 asleep: 2 3 4 5"},
		"a FUSE server that goes on": {func(w *world) { // its only thread was free a moment ago
			serves(w.reads(a, young))
			w.d(b, waits.FUSE, old, w.whole(waits.Server, a))
		}, "culprit 2 blocked"},
		"a FUSE server that waits for its own file system": {func(w *world) {
			w.d(a, waits.FUSE, old, w.whole(waits.Server, a))
			w.d(b, waits.FUSE, old, w.whole(waits.Server, a))
		}, "likely deadlock 0 behind 2"},
		"a FUSE server's thread waits for whom it serves": {func(w *world) {
			w.waits(a, waits.UserMutex, old, w.holds(b))
			serves(w.reads(a2, old))
			w.d(b, waits.FUSE, old, w.whole(waits.Server, a))
			w.waits(c, waits.UserMutex, old, w.holds(b))
		}, "culprit 2 blocked: 0 4"},
		"a page that a server would give": {func(w *world) {
			w.d(a, waits.Mutex, old, w.holds(b))
			w.waits(b, waits.Userfault, old, w.whole(waits.Pager, c))
			w.reads(c, old, w.whole(waits.OtherEnd, a))
		}, "sure deadlock 0 2 4"},
		"flock behind a stopped holder": {func(w *world) {
			w.in(a, kcdata.StateStopped)
			w.waits(a, waits.Stopped, old)
			for n := b; n < 7; n++ {
				at(w.waits(n, waits.FileLock, old, w.whole(waits.Holds, a)), kcdata.FileRegular, 0).Resource = waits.Resource{Kind: waits.FileLock, ID: 9}
			}
		}, "culprit 0 stopped: 2 3 4 5 6; convoy 2 3 4 5 6"},
		"OFD locks across processes": {func(w *world) {
			at(w.waits(a, waits.FileLock, old, w.whole(waits.Holds, b)), kcdata.FileRegular, 0)
			at(w.waits(b, waits.FileLock, old, w.whole(waits.Holds, a)), kcdata.FileRegular, 0)
		}, "sure deadlock 0 2"},
		"a process that the file lacks": {func(w *world) {
			w.reads(a, old, waits.Owner{Tid: 9, Pid: 9, Relation: waits.OtherEnd, Whole: true, Owes: true})
			w.d(b, waits.FUSE, old, waits.Owner{Tid: 9, Pid: 9, Relation: waits.Server, Whole: true})
		}, "culprit outside outside: 2"},
		"our own process has the end": {func(w *world) {
			w.running(a).Linux.Present |= kcdata.ThreadIsSelf
			w.reads(b, old, w.owes(waits.OtherEnd, a))
		}, ""},
	} {
		w := newWorld()
		c.make(w)
		v := Judge(w.w, Options{})
		if len(w.threads) <= 4 && !strings.Contains(name, "lacks") && dense(w) {
			if err := checkCulprits(w, v); err != nil {
				t.Errorf("%s: by brute force: %v", name, err)
			}
		}
		if got := said(v); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// dense: the threads are numbered without a gap, as brute force wants them.
func dense(w *world) bool {
	for n := range len(w.threads) {
		if w.threads[n] == nil {
			return false
		}
	}
	return true
}
