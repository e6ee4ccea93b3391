package screen

import (
	"stackshot/internal/model"
	"stackshot/internal/waitgraph"
	"stackshot/internal/waits"
	"stackshot/kcdata"
)

// scene is a machine, with a verdict made by hand where the snapshot's own would need records of
// every kind: what is shown of a verdict is tested here, not whether it is right.
type scene struct {
	*machine
	v *waitgraph.Verdict
}

func newScene(cpus int) *scene {
	m := newMachine(cpus)
	m.s.WaitTaken, m.s.Atomicity = &kcdata.LinuxWaitTaken{}, &kcdata.LinuxAtomicity{Compared: 77}
	return &scene{m, &waitgraph.Verdict{Waits: &waits.Waits{Of: map[*kcdata.Thread]*waits.Wait{}, OneInstant: true}}}
}

// waits makes a thread wait since so many seconds.
func (c *scene) waits(t *kcdata.Task, th *kcdata.Thread, kind waits.Kind, seconds uint64, owners ...waits.Owner) *waits.Wait {
	w := &waits.Wait{
		Task: t, Thread: th, State: model.StateOf(th), Kind: kind, Owners: owners, Age: model.Age{Ns: seconds * sec, Known: true},
		Resource: waits.Resource{Kind: kind, ID: 0xffff888001}, Confidence: waits.Sure, When: waits.Window,
	}
	c.v.Waits.All = append(c.v.Waits.All, w)
	c.v.Waits.Of[th] = w
	return w
}

func has(t *kcdata.Task, th *kcdata.Thread, r waits.Relation) waits.Owner {
	return waits.Owner{Task: t, Thread: th, Tid: uint32(th.ID), Pid: uint32(t.ID), Relation: r}
}

// in adds a thread that has been in a state for so many seconds.
func (c *scene) in(t *kcdata.Task, state uint32, seconds uint64, frames ...string) *kcdata.Thread {
	th := c.thread(t, state, frames...)
	th.Linux.LastArrival = now - seconds*sec
	return th
}

// process is a task of one thread.
func (c *scene) process(pid uint32, name string, state uint32, seconds uint64, frames ...string) (*kcdata.Task, *kcdata.Thread) {
	t := c.proc(pid, name, 1)
	return t, c.in(t, state, seconds, frames...)
}

// quiet: nothing is wrong.
func quiet() *scene {
	c := newScene(2)
	t, th := c.process(700, "sshd", kcdata.StateInterruptible, 2400, "schedule", "do_sys_poll")
	c.waits(t, th, waits.Poll, 2400).Resource = waits.Resource{}
	_, th = c.process(701, "make", kcdata.StateUninterruptible, 0, "schedule", "kernel_clone")
	th.Linux.LastArrival = now - sec/200
	c.process(702, "vim", kcdata.StateStopped, 900, "schedule", "do_signal_stop")
	t, th = c.process(703, "yes", kcdata.StateInterruptible, 60, "schedule", "pipe_write")
	less, reader := c.process(704, "less", kcdata.StateInterruptible, 60, "schedule", "n_tty_read")
	c.waits(less, reader, waits.Terminal, 60)
	o := has(less, reader, waits.OtherEnd)
	o.Whole = true
	atFile(c.waits(t, th, waits.Pipe, 60, o), kcdata.FilePipe, kcdata.FileOpWrite, kcdata.FileToWrite|kcdata.FileFull)
	return c
}

func atFile(w *waits.Wait, kind, op, flags uint32) *waits.OpenFile {
	w.File = &waits.OpenFile{File: &kcdata.LinuxFile{Kind: kind, Op: op, Flags: flags, Inode: 4711}, Of: 1}
	return w.File
}

func mount(point, kind, source string) *kcdata.LinuxMount {
	m := &kcdata.LinuxMount{Dev: 45}
	copy(m.Point[:], point)
	copy(m.FSType[:], kind)
	copy(m.Source[:], source)
	return m
}

// deadServer: an NFS server is gone. Forty shells wait for a page, and postgres to write one back
// while it holds the lock that its checkpointer wants.
func deadServer() *scene {
	c := newScene(4)
	nfs := mount("/srv/data", "nfs4", "store:/data")
	at := func(w *waits.Wait) *waits.Wait {
		atFile(w, kcdata.FileRegular, kcdata.FileOpRead, 0).Mount = nfs
		return w
	}
	pg := c.proc(812, "postgres", 1)
	main := c.in(pg, kcdata.StateUninterruptible, 192, "schedule", "rpc_wait_bit_killable [sunrpc]", "nfs_wb_all [nfs]")
	ckpt := c.in(pg, kcdata.StateUninterruptible, 182, "schedule", "nfs_start_io_write [nfs]")
	w := at(c.waits(pg, main, waits.NFS, 192))
	victim := c.waits(pg, ckpt, waits.RWSemWrite, 182, has(pg, main, waits.Holds))
	c.v.Culprits = append(c.v.Culprits, &waitgraph.Culprit{Owner: has(pg, main, waits.Holds), Wait: w, Reason: waitgraph.InD, Victims: []*waits.Wait{victim}})
	for i := range uint32(40) {
		t, th := c.process(2000+i, "bash", kcdata.StateUninterruptible, 60+uint64(i), "schedule", "folio_wait_bit_common", "nfs_file_read [nfs]")
		w := at(c.waits(t, th, waits.NFS, 60+uint64(i)))
		c.v.Culprits = append(c.v.Culprits, &waitgraph.Culprit{Owner: has(t, th, ""), Wait: w, Reason: waitgraph.InD})
	}
	return c
}

// stoppedHolder: fifty wait for a flock whose holder was stopped. A writer waits at a full pipe.
func stoppedHolder() *scene {
	c := newScene(2)
	t, th := c.process(300, "backup.sh", kcdata.StateStopped, 80, "schedule", "do_signal_stop")
	k := &waitgraph.Culprit{Owner: has(t, th, waits.Holds), Wait: c.waits(t, th, waits.Stopped, 80), Reason: waitgraph.Stopped}
	o := has(t, th, waits.Holds)
	o.Whole = true
	for i := range uint32(50) {
		job, waiter := c.process(3000+i, "job", kcdata.StateInterruptible, 70-uint64(i), "schedule", "locks_lock_inode_wait")
		w := c.waits(job, waiter, waits.FileLock, 70-uint64(i), o)
		atFile(w, kcdata.FileRegular, kcdata.FileOpFlock, 0).Mount = mount("/var", "ext4", "/dev/vda1")
		k.Victims = append(k.Victims, w)
	}
	c.v.Culprits = append(c.v.Culprits, k)
	reader, r := c.process(401, "gzip", kcdata.StateInterruptible, 30, "schedule", "do_nanosleep")
	writer, w := c.process(400, "tar", kcdata.StateInterruptible, 30, "schedule", "pipe_write")
	end := has(reader, r, waits.OtherEnd)
	end.Whole = true
	atFile(c.waits(writer, w, waits.Pipe, 30, end), kcdata.FilePipe, kcdata.FileOpWrite, kcdata.FileToWrite|kcdata.FileFull)
	return c
}

// missed: a driver spins with interrupts off, and the picture lacks its CPU.
func missed() *scene {
	c := newScene(4)
	c.run(c.proc(640, "irq/55-mlx5", 2), 2, sec)
	cpu := &c.s.CPUs[2]
	cpu.Flags, cpu.RanTid, cpu.RanTgid = kcdata.CPUMissed|kcdata.CPURanKnown, 640, 640
	c.s.Capture.StopBroken = 1
	c.s.LeftOut = []kcdata.LinuxLeftOut{{Tgid: 77, Reason: kcdata.LeftOutMaxPause, Threads: 9}}
	c.s.Warnings = []kcdata.Warning{{Code: "arrival", Text: "one CPU of four did not arrive within 10 ms"}}
	return c
}

// all is everything at once, with names that try to be something else.
func all() *scene {
	const evil = "\x1b[2J\r\u202egnp.exe\u2066\xff日本語"
	c := deadServer()
	for _, other := range []*scene{stoppedHolder(), missed()} {
		c.s.Tasks = append(c.s.Tasks, other.s.Tasks...)
		c.v.Waits.All = append(c.v.Waits.All, other.v.Waits.All...)
		for th, w := range other.v.Waits.Of {
			c.v.Waits.Of[th] = w
		}
		c.v.Deadlocks = append(c.v.Deadlocks, other.v.Deadlocks...)
		c.v.Culprits = append(c.v.Culprits, other.v.Culprits...)
		c.s.LeftOut, c.s.Warnings = other.s.LeftOut, other.s.Warnings
	}
	c.s.Hostname, c.s.Release, c.s.Loadavg = evil, evil, evil+" "+evil+" "+evil
	for _, t := range c.s.Tasks {
		t.Name += evil
	}
	return c
}
