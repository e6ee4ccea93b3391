package waits

import (
	"testing"

	"stackshot/kcdata"
)

// Who waits for threads of its own process or pid namespace waits for all of them that live.
func TestOwnThreads(t *testing.T) {
	var (
		exec  = []string{"begin_new_exec", "load_elf_binary"}
		dump  = []string{"vfs_coredump", "get_signal"}
		dumps = []string{"anon_pipe_write", "__kernel_write", "elf_core_dump", "vfs_coredump", "get_signal"}
		exits = []string{"do_exit", "do_group_exit", "get_signal"}
		iowq  = []string{"io_wq_put_and_exit", "io_uring_cancel_generic", "do_exit"}
		zap   = []string{"zap_pid_ns_processes", "do_exit"}
	)
	for name, c := range map[string]struct {
		make   func(w *world)
		kind   Kind
		owners string
	}{
		"execve": {func(w *world) {
			w.task(10, 1, blocked, exec...)
			w.thread(w.last(), 11, blocked, inPipe...)
			w.thread(w.last(), 12, kcdata.StateDead)
			w.thread(w.last(), 13, asleep, inPipe...)
			w.task(20, 1, asleep, inPipe...)
		}, Threads, "joined 11!, joined 13!"},
		"a core dump begins": {func(w *world) {
			w.task(10, 1, blocked, dump...)
			w.thread(w.last(), 11, blocked, inPipe...)
			w.thread(w.last(), 12, asleep, exits...)
		}, Threads, "joined 11!"},
		"who takes the core dump ends": {func(w *world) {
			w.task(10, 1, asleep, dump...)
			w.thread(w.last(), 11, asleep, exits...)
		}, Completion, ""},
		"a core dump": {func(w *world) {
			w.task(10, 1, asleep, exits...)
			w.thread(w.last(), 11, asleep, exits...)
			w.thread(w.last(), 12, asleep, dumps...)
		}, CoreDump, "dumps 12!"},
		"the end, and nobody dumps": {func(w *world) {
			w.task(10, 1, blocked, exits...)
			w.thread(w.last(), 11, asleep, inPipe...)
		}, Other, ""},
		"io_uring": {func(w *world) {
			w.task(10, 1, blocked, iowq...)
			w.thread(w.last(), 11, blocked, inPipe...).Name = "iou-wrk-10"
			w.thread(w.last(), 12, blocked, inPipe...).Name = "worker"
		}, Workers, "joined 11!"},
		"a pid namespace": {func(w *world) {
			in := func(th *kcdata.Thread, inode, tid uint32) {
				th.NS = []kcdata.LinuxThreadNS{{Inode: 1, Tid: th.Linux.Tid}, {Inode: inode, Tid: tid}}
			}
			in(w.task(10, 1, asleep, zap...), 7, 1)
			in(w.task(20, 10, kcdata.StateDead), 7, 2)
			in(w.thread(w.last(), 21, blocked, inPipe...), 7, 3)
			in(w.task(30, 1, asleep, inPipe...), 7, 4)
			in(w.task(40, 10, asleep, inPipe...), 8, 2)
			w.task(50, 10, asleep, inPipe...)
		}, Namespace, "joined 21!, joined 30!"},
		"an orphan of a pid namespace, not reaped": {func(w *world) {
			in := func(th *kcdata.Thread, tid uint32) {
				th.NS = []kcdata.LinuxThreadNS{{Inode: 1, Tid: th.Linux.Tid}, {Inode: 7, Tid: tid}}
			}
			in(w.task(10, 1, asleep, zap...), 1)
			in(w.task(20, 30, kcdata.StateDead), 2) // by who entered the namespace
			in(w.task(21, 10, kcdata.StateDead), 3) // by the first process, which does
			in(w.task(22, 21, kcdata.StateDead), 4)
			in(w.task(23, 99, kcdata.StateDead), 5)
			w.task(30, 1, asleep, inPipe...)
		}, Namespace, "reaps 30!"},
		"the first pid namespace": {func(w *world) { w.task(10, 1, asleep, zap...); w.task(20, 10, asleep, inPipe...) }, Namespace, ""},
	} {
		w := newWorld()
		c.make(w)
		got := w.of().Of[w.s.Tasks[0].Threads[0]]
		if got.Kind != c.kind || owners(got) != c.owners || got.AnyOwner {
			t.Errorf("%s: %s %q, any: %v; want %s %q", name, got.Kind, owners(got), got.AnyOwner, c.kind, c.owners)
		}
	}
}

// A mutex that was held when its process was forked has the number of a thread that only the other process has.
func TestHeldAtFork(t *testing.T) {
	for name, c := range map[string]struct {
		parents [3]uint32 // of the processes 10, 20 and 30
		not     uint32
		late    bool // the thread began after the fork
		forked  bool
	}{
		"the parent":             {[3]uint32{1, 10, 1}, 0, false, true},
		"it executed a program":  {[3]uint32{1, 10, 1}, kcdata.PFForkNoExec, false, false},
		"a thread of later":      {[3]uint32{1, 10, 1}, 0, true, false},
		"the parent's parent":    {[3]uint32{1, 30, 10}, 0, false, true},
		"another process":        {[3]uint32{1, 1, 1}, 0, false, false},
		"a child":                {[3]uint32{20, 1, 1}, 0, false, false},
		"a circle, without that": {[3]uint32{1, 30, 20}, 0, false, false},
	} {
		w := newWorld()
		w.task(10, c.parents[0], asleep, inPipe...)
		w.thread(w.last(), 11, asleep, inPipe...)
		th := w.task(20, c.parents[1], asleep, inFutex...)
		th.Linux.Flags = kcdata.PFForkNoExec &^ c.not
		w.task(30, c.parents[2], asleep, inPipe...).Linux.Flags = kcdata.PFForkNoExec
		if c.late {
			w.s.Tasks[1].Threads[0].Linux.StartBoottime = start(11) - 1
		}
		th.Futexes = []kcdata.LinuxFutex{{Addr: 0x7000, Flags: kcdata.FutexPrivate | kcdata.FutexOwnerGone, Object: kcdata.FutexGlibcMutex, OwnerTid: 11, OwnerTgid: 10, OwnerStart: start(11)}}
		o := w.of().Of[th].Owners[0]
		if (o.Forked == w.s.Tasks[0]) != c.forked || o.Thread != nil || o.Dead || c.forked != (o.Tid == 11) {
			t.Errorf("%s: %+v", name, o)
		}
	}
}
