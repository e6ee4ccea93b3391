package waitgraph

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"stackshot/internal/model"
	"stackshot/internal/waits"
	"stackshot/kcdata"
)

var inLibc = map[string]bool{"?leaf": true, "?timed": true, "?lib": true, "wait": true, "pthread_mutex_lock": true}

// stacks gives threads their user stacks, leaf first: "read worker+4 start+8" is in read, called by
// worker. A "?" is a function without a name; all are in one file but those of libc.
func (w *world) stacks(of map[int]string) {
	var records []kcdata.LinuxUserSymbol
	text := "\x00app\x00libc\x00"
	base := map[string]uint64{}
	seen := map[uint64]bool{}
	for n, frames := range of {
		th := w.thread(n)
		for i, frame := range strings.Fields(frames) {
			name, at, _ := strings.Cut(frame, "+")
			offset := uint64(0)
			fmt.Sscan(at, &offset)
			if base[name] == 0 {
				base[name] = uint64(len(base)+1) << 20
			}
			r := kcdata.LinuxUserSymbol{Addr: base[name] + offset, Offset: offset, Module: 1, Flags: kcdata.UserSymbolReturn}
			if i == 0 {
				r.Addr, r.Flags = r.Addr+1<<40, kcdata.UserSymbolExact
			}
			if i == 0 || inLibc[name] {
				r.Module = 5
			}
			if th.User = append(th.User, r.Addr); seen[r.Addr] {
				continue
			}
			seen[r.Addr] = true
			if !strings.HasPrefix(name, "?") {
				r.Name = uint32(len(text))
				text += name + "\x00"
			}
			records = append(records, r)
		}
	}
	for _, task := range w.tasks {
		task.UserSymbols = kcdata.NewUserSymbolTable(records, text)
	}
}

// line lets threads wait for the mutex that the first holds; known: that it does is known.
func (w *world) line(known bool, first int, others ...int) {
	for _, n := range others {
		var by []waits.Owner
		if known {
			by = append(by, w.holds(first))
		}
		w.waits(n, waits.UserMutex, old, by...).Resource = waits.Resource{Kind: waits.Futex, ID: 7}
	}
}

// dispatcher adds a thread to n's process that may give its others something to do.
func (w *world) dispatcher(n int) {
	w.task(n).Threads = append(w.task(n).Threads, &kcdata.Thread{ID: 999, HasLinux: true, Linux: kcdata.LinuxThread{State: kcdata.StateInterruptible}})
}

// pools are the threads that a verdict has wait for their turn, and behind whom.
func pools(v *Verdict) string {
	var out []string
	for _, p := range v.Pools {
		var holders []int
		for _, o := range p.Owners {
			holders = append(holders, number(o.Thread))
		}
		out = append(out, fmt.Sprint(holders, " ", numbers(p.Waiters)))
	}
	return strings.Join(out, "; ")
}

// Pools take turns: of the holder counts what it waits for, and the stacks. The same with one
// thing changed is a lock that is held by mistake.
func TestTurns(t *testing.T) {
	const lock, job = "__lll_lock_wait pthread_mutex_lock+9 worker+40 start+8", "wait worker+60 start+8"
	condvar := func(w *world) {
		w.waits(a, waits.UserCondvar, old)
		w.line(true, a, a2)
		w.dispatcher(a)
	}
	accept := func(w *world) {
		serves(w.reads(a, old)).File.File.Op = kcdata.FileOpAccept
		w.line(true, a, a2)
	}
	fileLock := func(w *world) {
		serves(w.reads(a, old)).File.File.Op = kcdata.FileOpAccept
		w.waits(a2, waits.Futex, old)
		for n := b; n <= 8; n += 2 {
			at(w.waits(n, waits.FileLock, old, w.whole(waits.Holds, a)), kcdata.FileRegular, 0).Resource = waits.Resource{Kind: waits.FileLock, ID: 9}
		}
		for _, task := range w.tasks {
			task.Linux.Ppid = 99
		}
	}
	line := func(n int) map[int]string { // the stacks of a pool that waits for its file lock
		return map[int]string{n: job, b: "flock worker+40 start+8", c: "flock worker+40 start+8", d: "flock worker+40 start+8", 8: "flock worker+40 start+8"}
	}
	const silent, accused = "", "culprit 0 asleep: 1"
	for name, x := range map[string]struct {
		make   func(w *world)
		stacks map[int]string
		want   string
	}{
		"a condition":               {condvar, map[int]string{a: job, a2: lock}, silent},
		"called from another place": {condvar, map[int]string{a: "wait worker+60 start+16", a2: lock}, silent},
		"wrapped":                   {condvar, map[int]string{a: "wait queue_pop+3 worker+60 start+8", a2: "__lll_lock_wait ap_mutex_lock+9 accept_mutex_on+1 worker+40 start+8"}, silent},
		"without names":             {condvar, map[int]string{a: "wait ?worker+60 ?start+8", a2: "pthread_mutex_lock ?worker+40 ?start+8"}, silent},
		"without names, far away":   {condvar, map[int]string{a: "wait ?worker+6000 ?start+8", a2: "pthread_mutex_lock ?worker+40 ?start+8"}, accused},
		"without names, called from another place": {condvar, map[int]string{a: "wait ?worker+60 ?start+1600", a2: "pthread_mutex_lock ?worker+40 ?start+8"}, accused},
		"no stacks":                           {condvar, nil, accused},
		"no stack of the holder":              {condvar, map[int]string{a2: lock}, accused},
		"no stack of who waits":               {condvar, map[int]string{a: job}, accused},
		"no lock on the stack":                {condvar, map[int]string{a: job, a2: "worker+40 start+8"}, accused},
		"nothing but the lock":                {condvar, map[int]string{a: job, a2: "__lll_lock_wait pthread_mutex_lock+9"}, accused},
		"another function":                    {condvar, map[int]string{a: "wait reader+60 start+8", a2: lock}, accused},
		"called by another":                   {condvar, map[int]string{a: "wait worker+60 main+8", a2: lock}, accused},
		"forgotten in a loop":                 {condvar, map[int]string{a: job, a2: "__lll_lock_wait pthread_mutex_lock+9 log_line+4 worker+40 start+8"}, accused},
		"taken higher up":                     {condvar, map[int]string{a: job, a2: "__lll_lock_wait pthread_mutex_lock+9 worker+40 twice+2 start+8"}, accused},
		"a name with lock in it that is none": {condvar, map[int]string{a: "wait worker+60 start+8", a2: "pthread_mutex_lock block_until+4 worker+40 start+8"}, accused},
		"interpreted":                         {condvar, map[int]string{a: "wait call+6 _PyEval_EvalFrameDefault+60 start+8", a2: "pthread_mutex_lock call+3 _PyEval_EvalFrameDefault+40 start+8"}, accused},
		"one in line does something else": {func(w *world) {
			w.waits(a, waits.UserCondvar, old)
			w.line(true, a, a2, 8, 9)
			w.dispatcher(a)
		}, map[int]string{a: job, a2: lock, 8: lock, 9: "pthread_mutex_lock reload+4 main+8"}, "culprit 0 asleep: 1 8 9"},
		"one in line came just now, and does something else": {func(w *world) {
			w.waits(a, waits.UserCondvar, old)
			w.line(true, a, a2, 8)
			w.dispatcher(a)
			w.w.Of[w.thread(8)].Age.Ns = 1
		}, map[int]string{a: job, a2: lock, 8: "pthread_mutex_lock reload+4 main+8"}, accused},
		"a job's pipe": {func(w *world) {
			at(w.waits(a, waits.Pipe, old, w.whole(waits.OtherEnd, d)), kcdata.FilePipe, kcdata.FileToRead)
			w.line(true, a, a2)
		}, map[int]string{a: job, a2: lock}, silent},
		"the line writes the pipe": {func(w *world) {
			at(w.waits(a, waits.Pipe, old, w.whole(waits.OtherEnd, b), w.whole(waits.OtherEnd, d)), kcdata.FilePipe, kcdata.FileToRead).AnyOwner = true
			w.task(a).Linux.Ppid, w.task(b).Linux.Ppid = 99, 99
			w.line(true, a, b)
			w.waits(d, waits.Timer, old)
		}, map[int]string{a: job, b: lock}, "culprit 0 asleep: 2"},
		"room in a pipe": {func(w *world) {
			w.writes(a, old, w.whole(waits.OtherEnd, d))
			w.waits(d, waits.UserCondvar, old)
			w.line(true, a, a2)
		}, map[int]string{a: job, a2: lock}, accused},
		"nobody is left to signal": {func(w *world) {
			w.waits(a, waits.UserCondvar, old)
			w.line(true, a, a2)
		}, map[int]string{a: job, a2: lock}, accused},
		"who is left joins": {func(w *world) {
			w.waits(a, waits.UserCondvar, old)
			w.line(true, a, c)
			w.waits(a2, waits.UserJoin, old, w.by(waits.Joined, a))
			w.waits(c+1, waits.ChildEnd, old)
			w.task(a).Linux.Ppid, w.task(c).Linux.Ppid = 99, 99
		}, map[int]string{a: job, c: lock}, "culprit 0 asleep: 4"},
		"somebody's answer at a stream socket": {func(w *world) {
			w.reads(a, old, w.whole(waits.OtherEnd, c)).File.Socket = &kcdata.LinuxSocket{Kind: 1}
			w.line(true, a, a2)
		}, map[int]string{a: job, a2: lock}, accused},
		"a parent's job at a stream socket": {func(w *world) {
			w.reads(a, old, w.whole(waits.OtherEnd, c)).File.Socket = &kcdata.LinuxSocket{Kind: 1}
			w.line(true, a, a2)
			w.task(a).Linux.Ppid = uint32(w.task(c).ID)
		}, map[int]string{a: job, a2: lock}, silent},
		"a datagram": {func(w *world) {
			w.reads(a, old, w.whole(waits.OtherEnd, c)).File.Socket = &kcdata.LinuxSocket{Kind: 2}
			w.line(true, a, a2)
		}, map[int]string{a: job, a2: lock}, silent},
		"an event":                             {func(w *world) { w.waits(a, waits.Descriptor, old); w.line(true, a, a2) }, map[int]string{a: job, a2: lock}, silent},
		"a message":                            {func(w *world) { w.waits(a, waits.IPC, old); w.line(true, a, a2) }, map[int]string{a: job, a2: lock}, silent},
		"a semaphore":                          {func(w *world) { w.waits(a, waits.UserSemaphore, old); w.line(true, a, a2); w.dispatcher(a) }, map[int]string{a: job, a2: lock}, silent},
		"an unpark":                            {func(w *world) { w.waits(a, waits.UserPark, old); w.line(true, a, a2); w.dispatcher(a) }, map[int]string{a: job, a2: lock}, silent},
		"polled pipes":                         {func(w *world) { w.polls(a, old).File.File.Kind = kcdata.FilePipe; w.line(true, a, a2) }, map[int]string{a: job, a2: lock}, silent},
		"polled sockets of which some may owe": {func(w *world) { w.polls(a, old); w.line(true, a, a2) }, map[int]string{a: job, a2: lock}, accused},
		"its own pipe": {func(w *world) {
			at(w.waits(a, waits.Pipe, old, w.whole(waits.OtherEnd, a)), kcdata.FilePipe, kcdata.FileToRead).File.Says = waits.OwnEnd
			w.line(true, a, a2)
		}, map[int]string{a: job, a2: lock}, "likely deadlock 0 of 0 1"},
		"the next connection, without stacks":         {accept, nil, silent},
		"the next connection, in another function":    {accept, map[int]string{a: "accept main+6 start+2", a2: "pthread_mutex_lock handler+4 start+8"}, accused},
		"the next connection, interpreted":            {accept, map[int]string{a: "accept call+6 _PyEval_EvalFrameDefault+60", a2: "pthread_mutex_lock call+3 _PyEval_EvalFrameDefault+40"}, silent},
		"the next connection, no stack of the holder": {accept, map[int]string{a2: lock}, silent},
		"main leads": {func(w *world) {
			w.task(a).ID = 1000
			condvar(w)
		}, map[int]string{a: "wait worker+60 main+8", a2: lock}, silent},
		"main leads, in another function": {func(w *world) {
			w.task(a).ID = 1000
			condvar(w)
		}, map[int]string{a: "wait reader+60 main+8", a2: lock}, accused},
		"main stands in line": {func(w *world) {
			w.task(a).ID = 1001
			condvar(w)
		}, map[int]string{a: job, a2: "pthread_mutex_lock worker+40 main+8"}, silent},
		"the holder is known of one in line": {func(w *world) {
			condvar(w)
			w.line(false, a, b)
			w.task(a).Linux.Ppid, w.task(b).Linux.Ppid = 99, 99
		}, map[int]string{a: job, a2: lock, b: lock}, silent},
		"a parent that may signal": {func(w *world) {
			w.waits(a, waits.UserCondvar, old)
			w.line(true, a, b)
			w.polls(d, old)
			w.task(a).Linux.Ppid, w.task(b).Linux.Ppid = 4, 4
		}, map[int]string{a: job, b: lock}, silent},
		"a parent that waits for its children": {func(w *world) {
			w.waits(a, waits.UserCondvar, old)
			w.line(true, a, b)
			w.waits(d, waits.ChildEnd, old, w.whole(waits.Child, a))
			w.task(a).Linux.Ppid, w.task(b).Linux.Ppid = 4, 4
		}, map[int]string{a: job, b: lock}, "culprit 0 asleep: 2"},
		"the function calls itself": {func(w *world) {
			at(w.waits(a, waits.Pipe, old, w.whole(waits.OtherEnd, d)), kcdata.FilePipe, kcdata.FileToRead)
			w.line(false, a, a2)
		}, map[int]string{a: "wait worker+60 worker+20 worker+20", a2: "pthread_mutex_lock worker+40 worker+20 worker+20"}, silent},
		"functions of a library without names between":       {condvar, map[int]string{a: job, a2: "__lll_lock_wait pthread_mutex_lock+9 ?apr+3 apr_proc_mutex_lock+5 worker+40 start+8"}, silent},
		"a library's function without a name calls the lock": {condvar, map[int]string{a: "wait ?worker+90 start+8", a2: "pthread_mutex_lock ?lib+3 ?worker+40 start+8"}, silent},
		"a function without a name calls the lock":           {condvar, map[int]string{a: "wait ?worker+90 start+8", a2: "pthread_mutex_lock ?log+3 ?worker+40 start+8"}, accused},
		"two locks without a number": {func(w *world) {
			condvar(w)
			w.waits(b, waits.UserMutex, old, w.holds(a))
			w.w.Of[w.thread(a2)].Resource.ID = 0
		}, map[int]string{a: job, a2: lock, b: "pthread_mutex_lock reload+4 main+8"}, "culprit 0 asleep: 2"},
		"the next connection, by a process of one thread in another function": {func(w *world) {
			serves(w.reads(a, old)).File.File.Op = kcdata.FileOpAccept
			w.line(true, a, b)
			w.task(a).Linux.Ppid, w.task(b).Linux.Ppid = 99, 99
		}, map[int]string{a: "accept serve+6 main+2", b: "pthread_mutex_lock handle+4 main+8"}, "culprit 0 asleep: 2"},
		"one of two leaders waits for the line": {func(w *world) {
			fileLock(w)
			w.w.Of[w.thread(a)].File.File.Op = kcdata.FileOpRead
			x := w.w.Of[w.thread(a2)]
			x.Kind, x.Owners = waits.Pipe, []waits.Owner{w.whole(waits.OtherEnd, b), w.whole(waits.OtherEnd, 10)}
			at(x, kcdata.FilePipe, kcdata.FileToRead).AnyOwner = true
			w.waits(10, waits.UserCondvar, old)
		}, map[int]string{a: job, a2: job, b: "flock worker+40 start+8", c: "flock worker+40 start+8", d: "flock worker+40 start+8", 8: "flock worker+40 start+8"}, "convoy 2 4 6 8"},
		"the line writes the pipe, and so may the leader": {func(w *world) {
			at(w.waits(a, waits.Pipe, old, w.whole(waits.OtherEnd, b), w.whole(waits.OtherEnd, d)), kcdata.FilePipe, kcdata.FileToRead).AnyOwner = true
			w.w.Of[w.thread(a)].File.Own = true
			w.task(a).Linux.Ppid, w.task(b).Linux.Ppid = 99, 99
			w.line(true, a, b)
			w.waits(d, waits.Timer, old)
		}, map[int]string{a: job, b: lock}, silent},
		"nobody is left to signal in the process": {func(w *world) {
			w.waits(a, waits.UserCondvar, old)
			w.line(true, a, a2)
			w.polls(d, old)
			w.task(a).Linux.Ppid = 4
		}, map[int]string{a: job, a2: lock}, accused},
		"a file lock, and its process accepts in one of two threads": {fileLock, map[int]string{a: "accept main+6", a2: "wait cache+4 start+8",
			b: "flock cache+2 worker+40", c: "flock cache+2 worker+40", d: "flock cache+2 worker+40", 8: "flock cache+2 worker+40"}, "convoy 2 4 6 8"},
		"a file lock, and the thread that accepts takes it": {fileLock, line(a), silent},
		"an answer": {func(w *world) {
			w.reads(a, old, w.owes(waits.OtherEnd, d))
			w.line(true, a, a2)
		}, map[int]string{a: job, a2: lock}, accused},
		"an answer from another machine": {func(w *world) {
			w.reads(a, old).File.Says = waits.Elsewhere
			w.line(true, a, a2)
		}, map[int]string{a: job, a2: lock}, accused},
		"a time": {func(w *world) {
			w.waits(a, waits.Timer, old)
			w.line(true, a, a2)
		}, map[int]string{a: job, a2: lock}, accused},
		"the next request, strangers": {func(w *world) {
			serves(w.reads(c, old))
			w.line(true, c, d)
			w.task(c).Linux.Ppid, w.task(d).Linux.Ppid = 1, 1
		}, map[int]string{c: job, d: lock}, "culprit 4 asleep: 6"},
		"lines of a file, whose lock has no owner, and a stranger waits for it": {func(w *world) {
			at(w.waits(a, waits.Pipe, old, w.whole(waits.OtherEnd, d)), kcdata.FilePipe, kcdata.FileToRead)
			w.line(false, a, a2, 8)
			w.waits(d, waits.UserCondvar, old)
		}, map[int]string{a: "read fill+4 fgets+60 worker+2", a2: "__lll_lock_wait_private fgets+40 worker+2", 8: "__lll_lock_wait_private fgets+40 worker+2"}, "convoy 1 8"},
		"a lock without an owner, and two that might have it": {func(w *world) {
			w.waits(a, waits.UserSemaphore, old)
			w.waits(a2, waits.UserSemaphore, old)
			w.line(false, a, 8)
			w.tasks[1].Threads = append(w.tasks[1].Threads, w.threads[8])
			w.tasks[5].Threads = nil
			w.w.Of[w.threads[8]].Task = w.tasks[1]
			w.dispatcher(a)
			w.waits(d, waits.UserCondvar, old)
		}, map[int]string{a: job, a2: job, 8: lock}, "convoy 8"},
		"a line of a file, whose lock has no owner": {func(w *world) {
			at(w.waits(a, waits.Pipe, old, w.whole(waits.OtherEnd, d)), kcdata.FilePipe, kcdata.FileToRead)
			w.line(false, a, a2)
		}, map[int]string{a: "read fill+4 fgets+60 worker+2", a2: "__lll_lock_wait_private fgets+40 worker+2"}, silent},
		"a lock without an owner, taken elsewhere": {func(w *world) {
			at(w.waits(a, waits.Pipe, old, w.whole(waits.OtherEnd, d)), kcdata.FilePipe, kcdata.FileToRead)
			w.line(false, a, a2)
		}, map[int]string{a: "read fill+4 fgets+60 worker+2", a2: "__lll_lock_wait_private fflush+40 flusher+2"}, "convoy 1"},
		"datagrams, by a lock of a file": {func(w *world) {
			fileLock(w)
			w.w.Of[w.thread(a)].File.File.Op = kcdata.FileOpRead
		}, line(a), silent},
		"a C library without names but those that it exports": {condvar, map[int]string{a: "?leaf wait+2 worker+60 start+8", a2: "?leaf ?timed+9 pthread_mutex_lock+3 worker+40 start+8"}, silent},
	} {
		w := newWorld()
		x.make(w)
		w.stacks(x.stacks)
		v := Judge(w.w, Options{})
		if got := said(v); got != x.want {
			t.Errorf("%s: %q, want %q", name, got, x.want)
		}
		if got := pools(v); (got == "") != (x.want != silent) && name != "two locks without a number" || got != "" && !strings.HasPrefix(got, "[0] [") && !strings.HasPrefix(got, "[] [") {
			t.Errorf("%s: pools %q", name, got)
		}
	}
}

// A lock of a file is had while a job works: who waits for it is no convoy. Of one whose holder does
// nothing it is.
func TestJobsBehindAFileLock(t *testing.T) {
	for name, c := range map[string]struct {
		make func(w *world)
		want string
	}{
		"runs":                    {func(w *world) { w.running(a) }, "starved 2 4 6 8"},
		"sleeps for a time":       {func(w *world) { w.waits(a, waits.Timer, old) }, "starved 2 4 6 8"},
		"waits with a time-out":   {func(w *world) { w.polls(a, old).Timed = true }, "starved 2 4 6 8"},
		"has waited for a moment": {func(w *world) { w.reads(a, young) }, "starved 2 4 6 8"},
		"waits, of unknown age":   {func(w *world) { w.reads(a, -1) }, "starved 2 4 6 8"},
		"another thread runs":     {func(w *world) { w.reads(a, old); w.running(a2) }, "starved 2 4 6 8"},
		"waits for a person": {func(w *world) {
			w.waits(a, waits.Terminal, old).Thread.Files = []kcdata.LinuxFile{{Kind: kcdata.FileTerminal, Flags: kcdata.FileToRead}}
		}, "starved 2 4 6 8"},
		"waits for a CPU":                 {func(w *world) { w.waits(a, waits.CPU, old); w.in(a, 0) }, "starved 0 2 4 6 8"},
		"is in D for a moment":            {func(w *world) { w.d(a, waits.BlockIO, young) }, "starved 2 4 6 8"},
		"has ended, and so has all of it": {func(w *world) { w.in(a, kcdata.StateDead) }, "convoy 2 4 6 8"},
		"its child's child runs": {func(w *world) {
			w.waits(a, waits.ChildEnd, old, w.whole(waits.Child, 10))
			w.waits(10, waits.ChildEnd, old, w.whole(waits.Child, 12))
			w.running(12)
		}, "starved 2 4 6 8"},
		"waits for another machine": {func(w *world) { w.reads(a, old).File.Says = waits.Elsewhere }, "convoy 2 4 6 8"},
		"its child polls": {func(w *world) {
			w.waits(a, waits.ChildEnd, old, w.whole(waits.Child, 10))
			w.polls(10, old)
		}, "convoy 2 4 6 8"},
		"one of two does not":  {func(w *world) { w.running(a); w.waits(10, waits.UserCondvar, old) }, "convoy 2 4 6 8"},
		"two run":              {func(w *world) { w.running(a); w.running(10) }, "starved 2 4 6 8"},
		"any of two, one runs": {func(w *world) { w.running(a); w.waits(10, waits.UserCondvar, old) }, "starved 2 4 6 8"},
		"is at rest":           {func(w *world) { serves(w.reads(a, old)) }, "convoy 2 4 6 8"},
	} {
		w := newWorld()
		c.make(w)
		for n := b; n <= 8; n += 2 {
			by := []waits.Owner{w.whole(waits.Holds, a)}
			if strings.Contains(name, "two") {
				by = append(by, w.whole(waits.Holds, 10))
			}
			y := at(w.waits(n, waits.FileLock, old, by...), kcdata.FileRegular, 0)
			y.Resource, y.AnyOwner = waits.Resource{Kind: waits.FileLock, ID: 9}, strings.Contains(name, "any")
		}
		if got := said(Judge(w.w, Options{})); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// Whoever has a lock and waits for a person, or for room at a reader that works, is not to blame. If nobody is
// known to have it, it may be one of those.
func TestHolderThatGoesOn(t *testing.T) {
	person := func(w *world, n int) {
		w.waits(n, waits.Terminal, old).Thread.Files = []kcdata.LinuxFile{{Kind: kcdata.FileTerminal, Flags: kcdata.FileToRead}}
	}
	few, many := []int{c}, []int{c, d, 8, 9}
	for name, x := range map[string]struct {
		make  func(w *world)
		known bool
		line  []int
		want  string
	}{
		"a person":                         {func(w *world) { person(w, a) }, true, few, "starved 4"},
		"a reader that runs":               {func(w *world) { w.writes(a, old, w.whole(waits.OtherEnd, b)); w.running(b) }, true, few, "starved 4 0"},
		"a reader that waits for a person": {func(w *world) { w.writes(a, old, w.whole(waits.OtherEnd, b)); person(w, b) }, true, many, "starved 4 6 8 9 0"},
		"a reader that sleeps for a time":  {func(w *world) { w.writes(a, old, w.whole(waits.OtherEnd, b)); w.waits(b, waits.Timer, old) }, true, few, "culprit 0 asleep: 4"},
		"its own process reads":            {func(w *world) { w.writes(a, old, w.whole(waits.OtherEnd, a)); w.running(a2) }, true, few, "culprit 0 asleep: 4"},
		"room at a terminal": {func(w *world) {
			person(w, a)
			at(w.w.Of[w.thread(a)], kcdata.FileTerminal, kcdata.FileToWrite)
		}, true, few, "culprit 0 asleep: 4"},
		"a terminal among others":                       {func(w *world) { person(w, a); w.w.Of[w.thread(a)].File = &waits.OpenFile{Of: 2} }, true, few, "culprit 0 asleep: 4"},
		"nobody knows, and one runs":                    {func(w *world) { w.running(a) }, false, few, "starved 4"},
		"nobody knows, and one sleeps for a time":       {func(w *world) { w.waits(a, waits.Timer, old) }, false, few, "starved 4"},
		"nobody knows, many wait, and one runs":         {func(w *world) { w.running(a) }, false, many, "convoy 4 6 8 9"},
		"nobody knows, and one waits for a person":      {func(w *world) { person(w, a) }, false, many, "starved 4 6 8 9"},
		"nobody knows, and one waits for room":          {func(w *world) { w.writes(a, old, w.whole(waits.OtherEnd, b)); w.running(b) }, false, many, "starved 4 6 8 9 0"},
		"nobody knows, and one waits for room, in vain": {func(w *world) { w.writes(a, old, w.whole(waits.OtherEnd, b)); w.waits(b, waits.UserCondvar, old) }, false, few, "convoy 4; starved 0"},
		"nobody knows, and one waits":                   {func(w *world) { w.waits(a, waits.UserCondvar, old) }, false, few, "convoy 4"},
	} {
		w := newWorld()
		x.make(w)
		for i, n := range x.line {
			var by []waits.Owner
			if x.known {
				by = append(by, w.holds(a))
			}
			y := w.waits(n, waits.UserMutex, old+time.Duration(10-i), by...)
			y.Resource = waits.Resource{Kind: waits.Futex, ID: 7}
			if !x.known { // all of one process
				w.tasks[1].Threads = append(w.tasks[1].Threads, w.threads[n])
				y.Task.Threads, y.Task = nil, w.tasks[1]
			}
		}
		if got := said(Judge(w.w, Options{})); got != x.want {
			t.Errorf("%s: %q, want %q", name, got, x.want)
		}
	}
}

// One waiter of a lock that nobody is known to have counts only if it sleeps for good, and not at a file, whose
// locks others may have that were not seen.
func TestOneAtALock(t *testing.T) {
	for name, x := range map[string]struct {
		change func(w *world, y *waits.Wait)
		want   string
	}{
		"asleep":          {func(w *world, y *waits.Wait) {}, "convoy 2"},
		"with a time-out": {func(w *world, y *waits.Wait) { y.Timed = true }, "starved 2"},
		"at a file":       {func(w *world, y *waits.Wait) { y.Kind = waits.FileLock }, "starved 2"},
		"young":           {func(w *world, y *waits.Wait) { y.Age.Ns = 1 }, ""},
		"of unknown age":  {func(w *world, y *waits.Wait) { y.Age = model.Age{} }, ""},
		"in D":            {func(w *world, y *waits.Wait) { w.d(b, waits.Mutex, old); w.w.All = w.w.All[1:] }, "culprit 2 blocked"},
		"another is in D": {func(w *world, y *waits.Wait) {
			w.d(c, waits.Mutex, old).Resource = y.Resource
		}, "culprit 4 blocked; convoy 2"},
	} {
		w := newWorld()
		y := w.waits(b, waits.UserMutex, old)
		y.Resource = waits.Resource{Kind: waits.Futex, ID: 7}
		x.change(w, y)
		if got := said(Judge(w.w, Options{})); got != x.want {
			t.Errorf("%s: %q, want %q", name, got, x.want)
		}
	}
}

// What names of functions tell.
func TestNamesOfFunctions(t *testing.T) {
	g := newGraph(&waits.Waits{}, time.Second)
	for name, want := range map[string]meaning{
		"__lll_lock_wait": {takes: true}, "pthread_mutex_timedlock": {takes: true}, "flock": {takes: true}, "fcntl64": {takes: true}, "std::mutex::lock()": {takes: true},
		"accept_mutex_on": {takes: true}, "pthread_rwlock_wrlock": {takes: true}, "RcLock": {takes: true}, "semop": {takes: true}, "syscall": {takes: true},
		"proc_mutex_pthread_acquire_ex": {takes: true}, "sem_acquire": {takes: true}, "EnterCriticalSection": {takes: true}, "futex_wait": {takes: true}, "LOCK_FILE": {takes: true},
		"pthread_mutex_unlock": {}, "handle_request_locked": {}, "deadlock_detector": {}, "block_until": {}, "clock_nanosleep": {}, "GlobalBlock": {}, "acquireConnection": {}, "worker": {}, "": {},
		"my_syscall": {}, "_PyEval_EvalFrameDefault": {interprets: true}, "PyEval_EvalCode": {interprets: true}, "Perl_runops_standard": {interprets: true}, "vm_exec": {interprets: true},
		"rb_vm_exec": {interprets: true}, "execute_ex": {interprets: true}, "zend_execute_scripts": {interprets: true}, "luaV_execute": {interprets: true}, "lj_BC_CALL": {interprets: true}, "JavaCalls::call_helper": {interprets: true},
		"v8::internal::Execution::Call": {interprets: true}, "Builtins_JSEntry": {interprets: true}, "mono_jit_exec": {interprets: true}, "exec_byte_code": {interprets: true}, "my_vm_exec": {},
	} {
		if got := g.named(name); got != want {
			t.Errorf("%q: %+v, want %+v", name, got, want)
		}
	}
}

// The longest line of a pool comes first.
func TestPoolsInOrder(t *testing.T) {
	w := newWorld()
	of := map[int]string{}
	for _, pool := range [][]int{{0, 1}, {10, 11, 12}, {20, 21}} {
		serves(w.reads(pool[0], old))
		for _, n := range pool[1:] {
			w.waits(n, waits.UserMutex, old, w.holds(pool[0])).Resource = waits.Resource{Kind: waits.Futex, ID: uint64(100 - pool[0])}
			of[n] = "pthread_mutex_lock worker+40 start+8"
		}
		of[pool[0]] = "wait worker+60 start+8"
	}
	for _, task := range w.tasks {
		task.Linux.Ppid = 99
	}
	w.stacks(of)
	if got, want := pools(Judge(w.w, Options{})), "[10] [11 12]; [20] [21]; [0] [1]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// together makes threads 0 to n-1, which are there, those of one process.
func (w *world) together(n int) {
	for i := 2; i < n; i++ {
		w.tasks[1].Threads = append(w.tasks[1].Threads, w.threads[i])
		w.tasks[1+i/2] = w.tasks[1]
	}
}

// Of a lock of which nobody is known to have it one thread that waits for its kind of news may have it. Locks that never keep an owner may
// have pools of one, too.
func TestLeadersOfManyLocks(t *testing.T) {
	const rust, lot, mutex = waits.RustLock, waits.ParkingLot, waits.UserMutex
	job := map[waits.Kind]string{waits.UserPark: "park recv+60 ", waits.Socket: "recv read+60 ", waits.UserSemaphore: "sem_wait "}
	for name, c := range map[string]struct {
		leaders []waits.Kind // in the function of those who wait for the locks
		accepts bool         // the first of them does
		kind    waits.Kind
		locks   []uint64 // of those who wait
		want    string
	}{
		"one":                            {[]waits.Kind{waits.UserPark}, false, mutex, []uint64{7, 7, 7}, ""},
		"two":                            {[]waits.Kind{waits.UserPark, waits.UserPark}, false, mutex, []uint64{7, 7, 7}, "convoy 2 3 4"},
		"one, beside who serves":         {[]waits.Kind{waits.UserPark, waits.Socket, waits.Socket}, false, mutex, []uint64{7, 7}, ""},
		"one accepts, beside others":     {[]waits.Kind{waits.Socket, waits.Socket, waits.Socket}, true, mutex, []uint64{7, 7}, ""},
		"nobody":                         {nil, false, rust, []uint64{7, 7, 7}, "convoy 0 1 2"},
		"pools, of which one has a line": {[]waits.Kind{waits.UserPark, waits.UserPark, waits.UserPark}, false, rust, []uint64{7, 7}, ""},
		"two for who knows how many":     {[]waits.Kind{waits.UserPark, waits.UserPark}, false, lot, []uint64{0, 0}, ""},
		"nobody for who knows how many":  {nil, false, lot, []uint64{0, 0}, "convoy 0 1"},
		"an initialization":              {[]waits.Kind{waits.UserSemaphore}, false, waits.UserOnce, []uint64{7, 7}, "convoy 1 2"},
	} {
		w, stacks, n := newWorld(), map[int]string{}, 0
		for _, k := range c.leaders {
			x := w.waits(n, k, old)
			if k == waits.Socket {
				serves(at(x, kcdata.FileSocket, kcdata.FileToRead))
			}
			if n == 0 && c.accepts {
				x.File.File.Op = kcdata.FileOpAccept
			}
			stacks[n] = job[k] + "worker+60 start+8"
			n++
		}
		for _, id := range c.locks {
			w.waits(n, c.kind, old).Resource = waits.Resource{Kind: c.kind, Task: 2, ID: id}
			stacks[n] = "futex parking_lot_core::park+3 lock_contended+9 worker+40 start+8"
			n++
		}
		w.together(n)
		for _, x := range w.w.All {
			x.Task = w.tasks[1]
		}
		if c.leaders != nil {
			w.dispatcher(0)
		}
		w.stacks(stacks)
		v := Judge(w.w, Options{})
		if got := said(v); got != c.want || (got == "") != (pools(v) != "") {
			t.Errorf("%s: %q, pools %q, want %q", name, got, pools(v), c.want)
		}
	}
}

// Functions of a generic have one name: those who wait in two of them are in two places.
func TestGenericFunctions(t *testing.T) {
	for _, other := range []uint64{0, 0x40, 0x7000} {
		w := newWorld()
		w.waits(a, waits.UserPark, old)
		w.line(false, a, a2)
		w.dispatcher(a)
		w.stacks(map[int]string{a: "park worker+60 start+8", a2: "pthread_mutex_lock worker+40 start+8"})
		text := "\x00worker\x00start\x00"
		th, line := w.thread(a), w.thread(a2)
		begin := th.User[1] - 60
		line.User[1] = begin + other + 40
		records := []kcdata.LinuxUserSymbol{{Addr: th.User[1], Offset: 60, Name: 1}, {Addr: line.User[1], Offset: 40, Name: 1}, {Addr: th.User[2], Offset: 8, Name: 8}}
		lock := kcdata.LinuxUserSymbol{Addr: line.User[0], Name: uint32(len(text))}
		text += "pthread_mutex_lock\x00"
		w.task(a).UserSymbols = kcdata.NewUserSymbolTable(append(records, lock), text)
		// Another process's has other pages.
		if got, want := said(Judge(w.w, Options{})) == "", other%0x1000 == 0; got != want {
			t.Errorf("%#x: silent: %v", other, got)
		}
	}
}

// Java's virtual machine has threads that enter no monitor, so they do not have it; and the age of a wait that looks again is that
// of the last look, so that another's counts.
func TestJavasOwnThreads(t *testing.T) {
	for name, c := range map[string]struct {
		stack, name string
		looks       time.Duration // the age of thread 1's wait, which looks again
		again       bool
		want        string
	}{
		"VM Periodic Task": {"wait Monitor::wait WatcherThread::sleep", "VM Periodic Tas", old, false, "convoy 0 1"},
		"a compiler":       {"wait CompileQueue::get CompileBroker::compiler_thread_loop", "C2 CompilerThre", old, false, "convoy 0 1"},
		"the cleaner":      {"wait ObjectMonitor::wait", "Common-Cleaner", old, false, "convoy 0 1"},
		"a program's":      {"wait ObjectMonitor::wait JavaCalls::call_helper", "timer", old, false, "starved 0 1"},
		"looks again":      {"wait VMThread::loop", "VM Thread", young, true, "convoy 0 1"},
		"it collects":      {"wait VMThread::execute JavaCalls::call_helper", "worker", old, false, "starved 0 1"},
		"a new one":        {"wait VMThread::loop", "VM Thread", young, false, "convoy 0"},
	} {
		w := newWorld()
		for n, age := range []time.Duration{old, c.looks} {
			w.waits(n, waits.JavaMonitor, age).Resource = waits.Resource{Kind: waits.JavaMonitor, Task: 1}
		}
		w.w.Of[w.thread(1)].Again = c.again
		w.waits(2, waits.UserCondvar, old).Timed = true
		w.thread(2).Name = c.name
		w.together(3)
		w.w.Of[w.thread(2)].Task = w.tasks[1]
		w.stacks(map[int]string{2: c.stack})
		if got := said(Judge(w.w, Options{})); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// If all have looked just now, nothing is known of how long they wait.
func TestAllLookedJustNow(t *testing.T) {
	w := newWorld()
	for n := range 2 {
		x := w.waits(n, waits.JavaMonitor, young)
		x.Resource, x.Again = waits.Resource{Kind: waits.JavaMonitor, Task: 1}, true
	}
	if got := said(Judge(w.w, Options{})); got != "" {
		t.Errorf("%q", got)
	}
}

// A lock of which nobody is known to hold it may be had by a thread of the process that works: few are patient with any, and
// with an initialization all are.
func TestUnownedLocks(t *testing.T) {
	runs := func(w *world) { w.running(6) }
	child := func(w *world) { w.waits(6, waits.ChildEnd, old, w.whole(waits.Child, 20)); w.running(20) }
	pipe := func(w *world) { w.reads(6, old, w.whole(waits.OtherEnd, 20)); w.running(20) }
	for name, c := range map[string]struct {
		kind  waits.Kind
		n     int
		other func(w *world)
		want  string
	}{
		"many, and one runs":                   {waits.RustLock, 4, runs, "convoy 0 1 2 3"},
		"few, and one runs":                    {waits.RustLock, 2, runs, "starved 0 1"},
		"few, and one waits for a child":       {waits.RustLock, 2, child, "starved 0 1"},
		"few, and one waits for another":       {waits.RustLock, 2, pipe, "convoy 0 1"},
		"many, and one waits for a child":      {waits.RustLock, 4, child, "convoy 0 1 2 3"},
		"an initialization, and one runs":      {waits.StaticGuard, 4, runs, "starved 0 1 2 3"},
		"an initialization, and a child works": {waits.UserOnce, 4, child, "starved 0 1 2 3"},
		"an initialization, and another works": {waits.UserOnce, 4, pipe, "starved 0 1 2 3"},
		"an initialization, and nobody works":  {waits.UserOnce, 4, func(w *world) { w.waits(6, waits.UserCondvar, old) }, "convoy 0 1 2 3"},
		"a lock of a file, and one runs":       {waits.FileLock, 4, runs, "convoy 0 1 2 3"},
		"a lock of a file, and a child works":  {waits.FileLock, 4, child, "convoy 0 1 2 3"},
	} {
		w := newWorld()
		for n := range 6 {
			w.thread(n)
		}
		c.other(w)
		for n := range c.n {
			w.waits(n, c.kind, old).Resource = waits.Resource{Kind: c.kind, ID: 7}
		}
		w.together(7)
		for _, x := range w.w.All {
			x.Task = w.tasks[1]
		}
		if got := said(Judge(w.w, Options{})); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// Threads at monitors of Java are of one pool if one thread of their name waits at a file: it may have the monitor.
// The wait of a parked one is a queue's, with no monitor.
func TestJavaPools(t *testing.T) {
	const monitors = waits.JavaMonitor
	leads := func(w *world, n int, kind waits.Kind) {
		x := w.waits(n, kind, old)
		if kind == waits.Socket {
			serves(at(x, kcdata.FileSocket, kcdata.FileToRead))
		}
		if kind == waits.Descriptor { // stands for accept
			serves(at(x, kcdata.FileSocket, kcdata.FileToRead)).File.File.Op = kcdata.FileOpAccept
		}
	}
	for name, c := range map[string]struct {
		names   string // of the threads, of one process; a capital: it waits to enter a monitor
		leaders []waits.Kind
		want    string
	}{
		"a leader":                   {"pool-1-thread-1 POOL-1-THREAD-2 POOL-1-THREAD-3 POOL-1-THREAD-13 POOL-1-THREAD-20", []waits.Kind{waits.Socket}, ""},
		"nobody at a file":           {"pool-1-thread-1 POOL-1-THREAD-2 POOL-1-THREAD-3 POOL-1-THREAD-13 POOL-1-THREAD-20", []waits.Kind{waits.UserPark}, "convoy 1 2 3 4"},
		"notified":                   {"pool-1-thread-1 POOL-1-THREAD-2 POOL-1-THREAD-3 POOL-1-THREAD-13 POOL-1-THREAD-20", []waits.Kind{waits.JavaNotify}, "convoy 1 2 3 4"},
		"of another name":            {"selector-1 POOL-1-THREAD-2 POOL-1-THREAD-3 POOL-1-THREAD-13 POOL-1-THREAD-20", []waits.Kind{waits.Socket}, "convoy 1 2 3 4"},
		"two that may lead":          {"qtp-1 qtp-2 QTP-3 QTP-4 QTP-5 QTP-6", []waits.Kind{waits.Socket, waits.Socket}, "convoy 2 3 4 5"},
		"one of the line is others'": {"pool-1 POOL-2 POOL-3 POOL-4 CRON-1", []waits.Kind{waits.Socket}, "convoy 1 2 3 4"},
		"of another pool":            {"pool-2-thread-1 POOL-1-THREAD-2 POOL-1-THREAD-3 POOL-1-THREAD-13 POOL-1-THREAD-20", []waits.Kind{waits.Socket}, "convoy 1 2 3 4"},
		"two that accept":            {"pool-1 pool-2 POOL-3 POOL-4 POOL-5 POOL-6", []waits.Kind{waits.Descriptor, waits.Descriptor}, ""},
		"a number amid the name":     {"http-1-worker HTTP-2-WORKER HTTP-3-WORKER HTTP-4-WORKER HTTP-5-WORKER", []waits.Kind{waits.Socket}, ""},
		"few, and nobody acts":       {"HTTP-1 HTTP-2", nil, "convoy 0 1"},
		"few, and one sleeps":        {"cleaner HTTP-1 HTTP-2", []waits.Kind{waits.Timer}, "starved 1 2"},
	} {
		w := newWorld()
		for n, name := range strings.Fields(c.names) {
			th := w.thread(n)
			th.Name = strings.ToLower(name)
			if n < len(c.leaders) {
				leads(w, n, c.leaders[n])
			} else {
				w.waits(n, monitors, old).Resource = waits.Resource{Kind: monitors, Task: w.tasks[1].ID}
			}
			w.w.Of[th].Task = w.tasks[1]
		}
		w.together(len(strings.Fields(c.names)))
		w.dispatcher(0)
		if got := said(Judge(w.w, Options{})); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// What is initialized is had for as long as that takes: its owner is to blame only if it cannot act.
func TestLongInitialization(t *testing.T) {
	for _, k := range []waits.Kind{waits.StaticGuard, waits.UserOnce} {
		for name, c := range map[string]struct {
			owner func(w *world)
			want  string
		}{
			"it runs":               {func(w *world) { w.running(a) }, "starved 1 7 8 9"},
			"it sleeps":             {func(w *world) { w.waits(a, waits.Timer, old) }, "starved 1 7 8 9"},
			"it reads":              {func(w *world) { serves(w.reads(a, old)) }, "culprit 0 asleep: 1 7 8 9; convoy 1 7 8 9"},
			"it waits for a worker": {func(w *world) { w.waits(a, waits.UserCondvar, old); w.waits(2, waits.Timer, old); w.together(3) }, "starved 1 7 8 9"},
			"it waits in vain":      {func(w *world) { w.waits(a, waits.UserCondvar, old); w.reads(2, old); w.together(3) }, "culprit 0 asleep: 1 7 8 9; convoy 1 7 8 9"},
			"it polls":              {func(w *world) { w.polls(a, old) }, "starved 1 7 8 9"},
			"in D":                  {func(w *world) { w.d(a, waits.BlockIO, old) }, "culprit 0 blocked: 1 7 8 9; convoy 1 7 8 9"},
			"its mutex":             {func(w *world) { w.waits(a, waits.UserMutex, old, w.holds(a2)) }, "likely deadlock 0 1 behind 7 8 9"},
			"is stopped":            {func(w *world) { w.in(a, kcdata.StateStopped) }, "culprit 0 stopped: 1 7 8 9; convoy 1 7 8 9"},
		} {
			w := newWorld()
			c.owner(w)
			for _, n := range []int{a2, 7, 8, 9} {
				x := w.waits(n, k, old, w.holds(a))
				x.Resource, x.Confidence = waits.Resource{Kind: k, ID: 7}, waits.Likely
			}
			if got := said(Judge(w.w, Options{})); got != c.want {
				t.Errorf("%s, %s: %q, want %q", k, name, got, c.want)
			}
		}
	}
}
