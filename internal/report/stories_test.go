package report

import (
	"sync"

	"stackshot/kcdata"
)

// stories are machines of which the report must let a reader find out what happened there: by its
// golden files, or by what it says.
var stories = []struct {
	name   string
	build  func() *kcdata.Snapshot
	o      Options
	golden string   // names of forms
	says   []string // each once
}{
	{"dead_nfs_server", deadNFSServer, Options{}, "txt", nil},
	{"dead_nfs_server_pid", deadNFSServerOnce, Options{Only: ofTasks(deadNFSServerOnce(), 812)}, "json", nil},
	{"spinning_driver", spinningDriver, Options{}, "txt", nil},
	{"odd_threads", oddThreads, Options{ShowSelf: true}, "txt json", nil},
	{"user_stacks", userStacks, Options{NotSymbolized: []string{"/mnt/fuse/tool: on a FUSE file system", "/tmp/perf-901.map: belongs to uid 33, not 1000"}}, "txt json folded", nil},
	{"quiet", quiet, Options{}, "", []string{
		"\n16 idle kernel threads, asleep until there is work: kworker x12, migration x2, kthreadd, rcu_preempt\n23 threads: 2 shown, ", "\nat rest: 2 asleep, 16 idle kernel threads\n",
	}},
	{"container_without_stop", containerWithoutStop, Options{}, "json", []string{
		"\n!! nothing was stopped: the threads were read one after the other", "\n!! this namespace only: tasks outside pid namespace 4026532201 are not in this file\n", "\nengine procfs, isolation none\n",
		"\nnot read of 1 task: permission denied (exe)\n", "  2 of 3 threads in the file  ", ": running or waiting for a CPU (R), no kernel stack recorded\n", ": sleeping, no kernel stack recorded, waits in futex_wait_queue\n",
	}},
	{"nasty_names", nastyNames, Options{}, "", []string{`日本語 é  cgroup \x1b[2J\x0d\x00\xe2\x80\xaegnp.exe`, "\n!! the file: \\x1b[2J"}},
	{"thread_pool", threadPool, Options{}, "", []string{
		"\n303 threads of 2 tasks: sleeping for up to 5m 59s, in futex\n    server [900] tid 5299 \"worker-299\", server [901], server [900] tid 5298 \"worker-298\" and 300 more: pids 900-901; tids 900-901, 5001-5301\n",
		"        schedule+0x5d\n        futex_wait_queue\n        futex_wait+0x5d\n",
	}},
	{"slow_disk", slowDisk, Options{}, "", []string{
		"\n!! unwind tables of 7 files were not read (libc.so.6, plugin\\x1b0-0.so, plugin\\x1b0-1.so, plugin\\x1b0-2.so, and 3 more): callers may be missing in 4 user stacks; `stackshot symbolize --unwind FILE` unwinds them again",
		"(user stack: callers may be missing: an unwind table was not read)\n", "(user stack incomplete: an unwind table was not read)\n",
	}},
	{"frame_pointers", framePointers, Options{}, "", []string{"\nuser stacks by frame pointers alone: callers may be missing\n", "    tid 5001: sleeping for up to 1m 00s\n        same kernel stack as tid 70 above\n        handler_1 [web]\n        main [web]\n"}},
}

// quiet: nothing is wrong, the reader must see that at once.
func quiet() *kcdata.Snapshot {
	w := newWorld(2)
	w.background()
	sshd := w.task(700, "sshd")
	in(w.thread(sshd, "sshd", kcdata.StateInterruptible, 40*minute, "__schedule", "schedule", "do_sys_poll", "do_syscall_64"), 7)
	return w.done()
}

// deadNFSServerOnce is always the same snapshot: threads are chosen by their addresses.
var deadNFSServerOnce = sync.OnceValue(deadNFSServer)

// deadNFSServer: the NFS server went away three minutes ago. Forty shells wait
// for a page of it, postgres waits to write one back and holds the lock that
// its own checkpointer wants.
func deadNFSServer() *kcdata.Snapshot {
	w := newWorld(4)
	w.background()
	nfs := []string{"__schedule", "schedule", "rpc_wait_bit_killable [sunrpc]", "__wait_on_bit", "nfs_wait_on_request [nfs]", "nfs_wb_all [nfs]", "nfs_file_fsync [nfs]", "do_fsync", "__x64_sys_fsync", "do_syscall_64"}
	page := []string{"__schedule", "schedule", "io_schedule", "folio_wait_bit_common", "filemap_read", "nfs_file_read [nfs]", "vfs_read", "ksys_read", "do_syscall_64"}
	lock := []string{"__schedule", "schedule", "schedule_preempt_disabled", "rwsem_down_write_slowpath", "down_write", "nfs_start_io_write [nfs]", "nfs_file_write [nfs]", "vfs_write", "do_syscall_64"}
	pg := w.task(812, "postgres")
	pg.Cmdline = []string{"/usr/lib/postgresql/15/bin/postgres", "-D", "/srv/nfs/data"}
	pg.Cgroup = "/system.slice/postgresql.service"
	in(w.thread(pg, "postgres", kcdata.StateUninterruptible|kcdata.StateWakekill, 3*minute+12*second, nfs...), 74)
	in(w.thread(pg, "checkpointer", kcdata.StateUninterruptible, 3*minute+2*second, lock...), 1)
	for range 6 {
		in(w.thread(pg, "worker", kcdata.StateInterruptible, 3*minute, "__schedule", "schedule", "futex_wait_queue", "futex_wait", "do_futex", "do_syscall_64"), 202)
	}
	for i := range uint32(40) {
		in(w.thread(w.task(2000+i, "bash"), "bash", kcdata.StateUninterruptible, 60*second+uint64(i)*second, page...), 0)
	}
	w.kthread(90, "kworker/u8:3", kcdata.StateUninterruptible, append([]string{"__schedule", "schedule"}, nfs[2:6]...)...)
	w.thread(w.task(3000, "cron"), "cron", kcdata.StateInterruptible, 20*second, "__schedule", "schedule", "hrtimer_nanosleep", "do_syscall_64")
	z := w.task(3001, "backup")
	z.Transitioning, z.Memory, z.Cmdline = true, nil, nil
	w.thread(z, "backup", 0, 0).Linux.ExitState = kcdata.ExitZombie
	return w.done()
}

// spinningDriver: a driver spins with interrupts off on CPU 2, which therefore
// did not stop; a process starves on its runqueue. CPU 3 is isolated.
func spinningDriver() *kcdata.Snapshot {
	w := newWorld(4)
	w.background()
	irq := w.kthread(640, "irq/55-mlx5", kcdata.StateInterruptible)
	w.onCPU(irq, 2).Linux.KstackErr = -22
	irq.Linux.LastArrival = now - 95*second
	w.s.CPUs[2].Flags = kcdata.CPUMissed | kcdata.CPURanKnown
	w.s.CPUs[2].RqClock, w.s.CPUs[3].RqClock = 0, 0 // nobody read them there
	w.s.CPUs[3].Flags = kcdata.CPULeft
	w.s.Capture.StopBroken, w.s.Capture.Tries = 1, 2
	w.s.Warnings = []kcdata.Warning{{Code: "arrival", Text: "one CPU of four did not arrive within 10 ms"}}
	w.s.LeftOut = []kcdata.LinuxLeftOut{{Tgid: 77, Reason: kcdata.LeftOutMaxPause, Threads: 9}, {Tgid: 78, Reason: kcdata.LeftOutMaxPause, Threads: 2}}
	hog := w.task(900, "burn")
	for cpu := range uint32(2) {
		th := w.onCPU(w.thread(hog, "burn", 0, 40*second, "irqentry_exit_to_user_mode", "asm_sysvec_reschedule_ipi"), cpu)
		th.Linux.Present |= kcdata.ThreadUserMode
	}
	starved := w.thread(w.task(901, "web"), "web", 0, 50*second, "__schedule", "schedule", "exit_to_user_mode_loop", "do_syscall_64")
	starved.Linux.CPU, starved.Linux.LastQueued = 2, now-48*second
	return w.done()
}

// containerWithoutStop: taken by reading /proc inside a container; no stop, no
// stacks, no clocks.
func containerWithoutStop() *kcdata.Snapshot {
	w := newWorld(2)
	w.s.Engine, w.s.Isolation, w.s.HasCapture, w.s.CPUs = "procfs", "none", false, nil
	w.s.Request = "take --pid 1"
	w.s.Machine.PidNSIsFirst, w.s.Machine.PidNS = 0, 4026532201
	app := w.task(1, "app")
	app.EnrichFailed = []string{"exe: permission denied"}
	th := w.thread(app, "app", kcdata.StateInterruptible, 0)
	th.Linux.Present, th.Wchan = 0, "futex_wait_queue"
	app.Linux.Present |= kcdata.TaskHasThreadCount
	app.Linux.NrThreads = 3 // one ended while it was read
	w.thread(app, "busy", 0, 0).Linux.Present = 0
	return w.done()
}

// oddThreads: one of each rare state, and the snapshotter's own threads shown.
func oddThreads() *kcdata.Snapshot {
	w := newWorld(2)
	w.background()
	t := w.task(600, "odd")
	w.thread(t, "stopped", kcdata.StateStopped, minute, "__schedule", "schedule", "do_signal_stop", "get_signal")
	w.thread(t, "traced", kcdata.StateTraced, minute, "__schedule", "schedule", "ptrace_stop")
	w.thread(t, "frozen", kcdata.StateFrozen, minute, "__schedule", "schedule", "__refrigerator")
	w.thread(t, "newborn", 0, 0, "ret_from_fork_asm").Linux.Present |= kcdata.ThreadNeverRan
	w.thread(t, "rtlock", kcdata.StateRtlockWait, minute, "__schedule", "schedule_rtlock", "rtlock_slowlock_locked")
	w.thread(t, "fault", kcdata.StateUninterruptible, 4*second, "__schedule", "io_schedule", "folio_wait_bit_common", "filemap_fault", "asm_exc_page_fault").Linux.Present |= kcdata.ThreadUserMode
	w.thread(t, "unknown", 1<<30, minute, "?", "do_syscall_64")
	w.thread(t, "deep", kcdata.StateInterruptible, minute, "__schedule", "schedule", "recurse").Linux.Present |= kcdata.ThreadTruncated
	w.onCPU(w.thread(t, "exiting", 0, 9*second, "exit_mmap", "do_exit"), 1).Linux.ExitState = kcdata.ExitZombie
	w.s.Tasks = append(w.s.Tasks, &kcdata.Task{ID: 601, Name: "empty"}, &kcdata.Task{ID: 602, Name: "gone", Transitioning: true})
	w.s.Problems = []string{"task 7 is in the file more than once"}
	return w.done()
}

// nastyNames: every string of the machine tries to be something else.
func nastyNames() *kcdata.Snapshot {
	const nasty = "\x1b[2J\r\x00\u202egnp.exe\u2066\xff\xc3(\u0085\u2028\U000e0041"
	w := newWorld(1)
	w.s.Hostname, w.s.Request, w.s.Engine, w.s.Arch = nasty, nasty, nasty, nasty
	w.s.Warnings = []kcdata.Warning{{Code: nasty, Text: nasty}}
	w.s.Problems = []string{nasty}
	t := w.task(66, nasty)
	t.Cmdline, t.Cgroup, t.EnrichFailed = []string{nasty, "日本語", "\u00e9"}, nasty, []string{nasty}
	w.thread(t, nasty+"t", kcdata.StateUninterruptible, minute, nasty+" ["+nasty+"]", "__schedule")
	return w.done()
}
