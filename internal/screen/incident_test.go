package screen

import (
	"fmt"
	"strings"
	"testing"

	"stackshot/internal/verdict"
	"stackshot/internal/waitgraph"
	"stackshot/internal/waits"
	"stackshot/kcdata"
)

// behind adds a culprit with so many victims that wait for a kernel mutex.
func (c *scene) behind(pid uint32, name string, victims int, sure waits.Confidence) *waitgraph.Culprit {
	t, th := c.process(pid, name, kcdata.StateUninterruptible, 400, "schedule", "io_schedule")
	k := &waitgraph.Culprit{Owner: has(t, th, waits.Holds), Wait: c.waits(t, th, waits.BlockIO, 400), Reason: waitgraph.InD}
	for i := range uint32(victims) {
		job, waiter := c.process(pid+1+i, "job", kcdata.StateUninterruptible, 300, "schedule", "mutex_lock")
		w := c.waits(job, waiter, waits.Mutex, 300-uint64(i), k.Owner)
		w.Confidence = sure
		k.Victims = append(k.Victims, w)
	}
	c.v.Culprits = append(c.v.Culprits, k)
	return k
}

// Whoever keeps most waiting comes first, however old the others are, and of like size who surely does.
// On a terminal of 80x24 each of fourteen findings has a line.
func TestHeaviestFirst(t *testing.T) {
	c := newScene(2)
	for i := range uint32(8) {
		c.behind(1000+100*i, fmt.Sprintf("trifle%d", i), 1, waits.Sure)
	}
	c.behind(2000, "likely", 20, waits.Likely)
	c.behind(3000, "incident", 60, waits.Sure)
	c.behind(4000, "smaller", 6, waits.Sure)
	alone, th := c.process(5000, "selfish", kcdata.StateInterruptible, 9000, "schedule", "pipe_read")
	own := c.waits(alone, th, waits.Pipe, 9000, has(alone, th, waits.OtherEnd))
	atFile(own, kcdata.FilePipe, kcdata.FileOpRead, kcdata.FileToRead).Says = waits.OwnEnd
	locker, th := c.process(5001, "relock", kcdata.StateInterruptible, 50, "schedule", "futex_wait")
	lock := c.waits(locker, th, waits.UserMutex, 50, has(locker, th, waits.Holds))
	for _, w := range []*waits.Wait{own, lock} {
		w.Confidence = waits.Likely
		c.v.Deadlocks = append(c.v.Deadlocks, &waitgraph.Deadlock{Confidence: waits.Likely, Part: []*waits.Wait{w}, Cycle: []*waits.Wait{w}})
	}
	dd, th := c.process(5002, "dd", kcdata.StateUninterruptible, 20, "schedule", "io_schedule")
	c.v.Culprits = append(c.v.Culprits, &waitgraph.Culprit{Owner: has(dd, th, ""), Wait: c.waits(dd, th, waits.BlockIO, 20), Reason: waitgraph.InD})
	text := textOf(t, c.done(), Options{Verdict: c.v, Width: 80, Height: 24, File: file})
	at := -1
	for _, name := range []string{"incident [3000] D, 60 behind", "smaller [4000] D, 6 behind", "likely [2000] D, probably 20 behind", "trifle0 [1000] D, 1 behind", "trifle7 [1700] D",
		"dd [5002] D: ", "relock [5001]; it waits for itself: a mutex", "selfish [5000] asleep: bytes from a pipe"} {
		next := strings.Index(text, name)
		if next < at || next < 0 {
			t.Errorf("%q is not in its place", name)
		}
		at = next
	}
	if strings.Contains(text, "\nand ") || !strings.Contains(text, "report --pid 3000 ") || !strings.HasPrefix(Brief(c.s, c.v), "STUCK: 5m 00s incident") {
		t.Errorf("brief %q", Brief(c.s, c.v))
	}
	if t.Failed() {
		t.Log("\n" + text)
	}
}

// What a culprit has is told by who waits for it directly, and not by a parent that waits for a
// child; behind a chain it is the thread in between that tells.
func TestReasonIsOfADirectWaiter(t *testing.T) {
	c := stoppedHolder()
	k := c.v.Culprits[0]
	parent, th := c.process(302, "unshare", kcdata.StateInterruptible, 900, "schedule", "do_wait")
	w := c.waits(parent, th, waits.ChildEnd, 900, has(k.Victims[0].Task, k.Victims[0].Thread, waits.Child))
	k.Victims = append([]*waits.Wait{w}, k.Victims...)
	want := " 1m 10s  backup.sh [300] STOPPED, 51 behind: holds a file lock (flock) on inode 4711 of /var; longest job [3000]\n"
	if text := textOf(t, c.done(), Options{Verdict: c.v}); !strings.Contains(text, want) {
		t.Errorf("no %q in\n%s", want, text)
	}

	c = newScene(2)
	srv, th := c.process(911, "nfsd-gw", kcdata.StateInterruptible, 60, "schedule", "do_nanosleep")
	worker, wth := c.process(38, "kworker/u8:2", kcdata.StateUninterruptible, 50, "schedule", "fuse_get_req")
	between := c.waits(worker, wth, waits.FUSE, 50, has(srv, th, waits.Server))
	atFile(between, kcdata.FileRegular, kcdata.FileOpRead, 0).Mount = mount("/mnt/nas", "fuse.nfsd-gw", "nas")
	cat, cth := c.process(50, "cat", kcdata.StateUninterruptible, 40, "schedule", "folio_wait_bit_common")
	victim := c.waits(cat, cth, waits.BlockIO, 40, has(worker, wth, waits.Holds))
	c.v.Culprits = []*waitgraph.Culprit{{Owner: has(srv, th, waits.Server), Wait: c.waits(srv, th, waits.Timer, 60), Reason: waitgraph.Asleep, Victims: []*waits.Wait{victim},
		Tree: []waitgraph.Branch{{Wait: between, Up: -1}, {Wait: victim, Depth: 1, Victim: true}}}}
	want = " 40.0 s  nfsd-gw [911] asleep, probably 1 behind: serves /mnt/nas (fuse.nfsd-gw, nas); waits for a timer; longest cat [50]\n"
	if text := textOf(t, c.done(), Options{Verdict: c.v}); !strings.Contains(text, want) {
		t.Errorf("no %q in\n%s", want, text)
	}
}

// Who has not reaped a zombie is stuck with who waits for that; of locks of which it is not known which ones they are the process is named, and what
// tells more.
func TestZombiesAndQueuedLocks(t *testing.T) {
	c := newScene(2)
	agent, ath := c.process(50, "agent", kcdata.StateInterruptible, 60, "schedule", "sys_pause")
	first, th := c.process(51, "ctr-init", kcdata.StateInterruptible, 40, "schedule", "zap_pid_ns_processes")
	victim := c.waits(first, th, waits.Namespace, 40, has(agent, ath, waits.Reaps))
	c.v.Culprits = []*waitgraph.Culprit{{Owner: has(agent, ath, waits.Reaps), Wait: c.waits(agent, ath, waits.Signal, 60), Reason: waitgraph.Asleep, Victims: []*waits.Wait{victim},
		Tree: []waitgraph.Branch{{Wait: victim, Up: -1, Victim: true}}}}
	for i, k := range []waits.Kind{waits.JavaMonitor, waits.ParkingLot} {
		task, th := c.process(60+uint32(i), "app", kcdata.StateInterruptible, 30, "schedule", "futex_wait")
		w := c.waits(task, th, k, 30)
		w.Resource = waits.Resource{Kind: k, Task: task.ID}
		c.v.Convoys = append(c.v.Convoys, &waitgraph.Convoy{Resource: w.Resource, Waiters: []*waits.Wait{w}})
	}
	text := textOf(t, c.done(), Options{Verdict: c.v})
	for _, want := range []string{
		"agent [50] asleep, 1 behind: has not reaped a zombie; waits for a signal; longest ctr-init [51]\n",
		"Java monitors of app [60], `jstack 60` names the holders: 1 thread waits; longest app [60]\n",
		"locks of Rust's parking_lot of app [61], nobody is known to hold them: 1 thread waits; longest app [61]\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// A convoy whose lock several hold says that the first is stopped, and at which file.
func TestConvoyTellsItsHolder(t *testing.T) {
	for _, stopped := range []bool{true, false} {
		c := stoppedHolder()
		victims := c.v.Culprits[0].Victims
		c.v.Culprits = nil
		if !stopped { // one of its threads goes on
			c.in(victims[0].Owners[0].Task, kcdata.StateInterruptible, 3, "schedule", "do_nanosleep")
		}
		child, th := c.process(301, "sleep", kcdata.StateInterruptible, 80, "schedule", "do_nanosleep")
		owners := append(victims[0].Owners[:1:1], has(child, th, waits.Holds))
		c.v.Convoys = []*waitgraph.Convoy{{Resource: victims[0].Resource, Waiters: victims, Owners: owners}}
		want := "STOPPED, and others wait for it\n 1m 10s  backup.sh [300] STOPPED, 50 behind: "
		if !stopped {
			want = "STUCK\n 1m 10s  backup.sh [300], 50 behind: "
		}
		want += "holds a file lock (flock) on inode 4711 of /var, as does 1 more; longest job [3000]\n"
		if text := textOf(t, c.done(), Options{Verdict: c.v}); !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// Entries of STUCK and STOPPED name units as those of CPU do, and threads where there is room.
func TestUnitsAndThreadNames(t *testing.T) {
	c := stoppedHolder()
	k := c.v.Culprits[0]
	k.Owner.Task.Cgroup = "/system.slice/nightly.service"
	k.Victims[0].Thread.Name = "writer-3"
	c.deadlockOf(t, "/system.slice/orders.service")
	for _, width := range []int{99, 100} {
		text := textOf(t, c.done(), Options{Verdict: c.v, Width: width, Height: 40, File: file})
		for _, want := range []string{"\n         in nightly.service\n", "\n         in orders.service\n"} {
			if !strings.Contains(text, want) {
				t.Errorf("no %q in\n%s", want, text)
			}
		}
		for _, name := range []string{`longest job [3000] "writer-3"`, `orders-api [600] "main", tid 50001 "w"`} {
			if strings.Contains(strings.Join(strings.Fields(text), " "), name) != (width == 100) {
				t.Errorf("%d wide: %s, or not:\n%s", width, name, text)
			}
		}
	}
}

// deadlockOf adds a deadlock of two threads with names of a process in a control group.
func (c *scene) deadlockOf(t *testing.T, cgroup string) {
	task := c.proc(600, "orders-api", 1)
	task.Cgroup = cgroup
	a, b := c.in(task, kcdata.StateInterruptible, 9, "schedule", "futex_wait"), c.in(task, kcdata.StateInterruptible, 9, "schedule", "futex_wait")
	a.Name, b.Name = "main", "w"
	cycle := []*waits.Wait{c.waits(task, a, waits.UserMutex, 9, has(task, b, waits.Holds)), c.waits(task, b, waits.UserMutex, 9, has(task, a, waits.Holds))}
	c.v.Deadlocks = append(c.v.Deadlocks, &waitgraph.Deadlock{Confidence: waits.Sure, Part: cycle, Cycle: cycle})
}

// A traced thread has its tracer, be it a culprit's or one for whom nobody is known to wait.
func TestTracerIsNamed(t *testing.T) {
	for _, waited := range []bool{true, false} {
		c := newScene(2)
		gdb, g := c.process(17179, "gdb", kcdata.StateInterruptible, 60, "schedule", "do_sys_poll")
		app, th := c.process(9772, "python3", kcdata.StateTraced, 60, "schedule", "ptrace_stop")
		w := c.waits(app, th, waits.Traced, 60, has(gdb, g, waits.Tracer))
		want := "at rest: 2 asleep, 1 traced: python3 [9772] by gdb [17179], "
		if waited {
			client, cth := c.process(9800, "client", kcdata.StateInterruptible, 50, "schedule", "unix_stream_read_generic")
			victim := c.waits(client, cth, waits.Socket, 50, has(app, th, waits.OtherEnd))
			c.v.Culprits = []*waitgraph.Culprit{{Owner: has(app, th, waits.OtherEnd), Wait: w, Reason: waitgraph.Traced, Victims: []*waits.Wait{victim}}}
			want = " 50.0 s  python3 [9772] STOPPED by its tracer gdb [17179], 1 behind: client [9800] waits for "
		}
		if text := textOf(t, c.done(), Options{Verdict: c.v}); !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// Of several stopped holders of one lock one has an entry, which counts the others.
func TestHoldersTogether(t *testing.T) {
	c := stoppedHolder()
	k := c.v.Culprits[0]
	for i := range uint32(7) {
		other, th := c.process(310+i, "backup.sh", kcdata.StateStopped, 80, "schedule", "do_signal_stop")
		o := has(other, th, waits.Holds)
		o.Whole = true
		for _, w := range k.Victims {
			w.Owners = append(w.Owners, o)
		}
		c.v.Culprits = append(c.v.Culprits, &waitgraph.Culprit{Owner: o, Wait: c.waits(other, th, waits.Stopped, 80), Reason: waitgraph.Stopped, Shared: k.Victims})
	}
	text := textOf(t, c.done(), Options{Verdict: c.v})
	if want := " 1m 10s  backup.sh [300] STOPPED, 50 behind: holds a file lock (flock) on inode 4711 of /var, as do 7 more (7 STOPPED); longest job [3000]\n"; !strings.Contains(text, want) || strings.Count(text, "STOPPED, ") != 2 {
		t.Errorf("no %q, or not alone, in\n%s", want, text)
	}
	if list := c.v.Culprits; len(verdict.For(c.s, c.v).Told(map[*kcdata.Thread]bool{list[7].Owner.Thread: true})) != 1 {
		t.Error("nothing is told of one of the others")
	}
}

// The stopped one of several holders speaks for a convoy, whichever place it has.
func TestStoppedHolderSpeaks(t *testing.T) {
	c := stoppedHolder()
	victims := c.v.Culprits[0].Victims
	c.v.Culprits = nil
	child, th := c.process(299, "sleep", kcdata.StateInterruptible, 80, "schedule", "do_nanosleep")
	c.waits(child, th, waits.Timer, 80)
	for _, w := range victims {
		w.Owners, w.AnyOwner = append([]waits.Owner{has(child, th, waits.Holds)}, w.Owners...), true
	}
	c.v.Convoys = []*waitgraph.Convoy{{Resource: victims[0].Resource, Waiters: victims, Owners: victims[0].Owners}}
	want := "STOPPED, and others wait for it\n 1m 10s  backup.sh [300] STOPPED, 50 behind: holds a file lock (flock) on inode 4711 of /var, as does 1 more; longest job [3000]\n"
	if text := textOf(t, c.done(), Options{Verdict: c.v}); !strings.Contains(text, want) {
		t.Errorf("no %q in\n%s", want, text)
	}
}

// An entry whose age is not known may be of a moment: it does not choose what stands first.
func TestUnknownAgesDoNotLead(t *testing.T) {
	c := stoppedHolder()
	for i := range uint32(300) {
		_, th := c.process(6000+i, "dd", kcdata.StateUninterruptible, 9, "schedule", "io_schedule")
		th.Linux.Present &^= kcdata.ThreadHasSchedInfo
	}
	text := textOf(t, c.done(), Options{Verdict: c.v, Width: 80, Height: 24, File: file})
	if !strings.Contains(text, "report --pid 300 ") || strings.Index(text, "\nSTOPPED") > strings.Index(text, "\nSTUCK") {
		t.Errorf("\n%s", text)
	}
}

// Threads in D at one mount are one entry, in whatever function they wait there.
func TestOneMountIsOneEntry(t *testing.T) {
	c := deadServer()
	for i, k := range c.v.Culprits[1:] {
		if i%2 == 0 {
			k.Wait.Thread.Kernel = c.stack("schedule", "nfs_wait_bit_killable [nfs]")
		}
	}
	text := textOf(t, c.done(), Options{Verdict: c.v})
	if want := " 40 x bash [2039] [2038] [2037] D: /srv/data (nfs4, store:/data)\n"; !strings.Contains(text, want) || strings.Count(text, "bash") != 1 {
		t.Errorf("no %q in\n%s", want, text)
	}
}

// Where there is no room for a heading it is the last section that has none.
func TestHeadings(t *testing.T) {
	for height := 4; height < 16; height++ {
		c := all()
		c.psi("io", 76, 31)
		text := textOf(t, c.done(), Options{Verdict: c.v, Width: 80, Height: height, File: file})
		bare := false
		lines := strings.Split(text, "\n")
		for i, l := range lines {
			isEntry := func(l string) bool { return len(l) > 9 && l[7:9] == "  " && l[6] != ' ' }
			isTitle := strings.HasPrefix(l, "STUCK") || strings.HasPrefix(l, "STOPPED") || strings.HasPrefix(l, "CPU") || strings.HasPrefix(l, "DISK")
			if isTitle && bare {
				t.Errorf("%d: a heading after an entry that has none:\n%s", height, text)
			}
			bare = bare || isEntry(l) && i > 0 && !isTitle && !hasTitle(lines[:i])
		}
	}
}

func hasTitle(lines []string) bool {
	for _, l := range lines {
		if strings.HasPrefix(l, "ST") {
			return true
		}
	}
	return false
}
