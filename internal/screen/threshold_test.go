package screen

import (
	"fmt"
	"strings"
	"testing"

	"stackshot/kcdata"
)

// waiting is a machine on whose CPUs a busy process runs and a service waits.
func waiting(age uint64, change func(th *kcdata.Thread)) func() *machine {
	return func() *machine {
		m := newMachine(2)
		b := m.proc(800, "batch", 1)
		b.Cgroup = "/batch.slice/billing.service"
		m.run(b, 0, ms)
		m.run(b, 1, ms)
		th := m.wait(m.proc(812, "nginx", 1), 1, age)
		if change != nil {
			change(th)
		}
		return m
	}
}

// realTime is a machine with a real-time thread on a CPU, and who waits behind it.
func realTime(ran, waits uint64, change func(hog, waiter *kcdata.Thread)) func() *machine {
	return func() *machine {
		m := newMachine(2)
		h := m.run(m.proc(77, "audio", 1), 1, ran)
		h.Linux.Policy, h.Linux.RtPriority = 1, 50
		w := m.wait(m.proc(8, "sshd", 1), 1, waits)
		if change != nil {
			change(h, w)
		}
		return m
	}
}

// crowded is a machine with n runnable threads of n processes of one command, and others.
func crowded(cpus, n, others int, age uint64) func() *machine {
	return func() *machine {
		m := newMachine(cpus)
		for i := range uint32(n) {
			t := m.proc(1000+i, "work", 1)
			t.Linux.StartBoottime = now - age
			if int(i) < cpus {
				m.run(t, i, ms)
			} else {
				m.wait(t, 0, 30*ms)
			}
		}
		for i := range uint32(others) {
			m.wait(m.proc(9000+i, fmt.Sprintf("other%d", i), 1), 0, 30*ms)
		}
		return m
	}
}

func youngChildren(n int, age uint64, pids uint32) func() *machine {
	return func() *machine {
		m := newMachine(2)
		m.sleep(m.proc(700, "launcher", 1), sec, "do_wait")
		for i := range uint32(n) {
			t := m.proc(20_000+i*pids, "sh", 700)
			t.Linux.StartBoottime = now - age + uint64(i)*10*ms
			m.sleep(t, ms, "pipe_read")
		}
		return m
	}
}

// grouped is a control group of a memory limit of 1,000,000 bytes with one thread.
func grouped(current uint64, some, full uint32, change func(m *machine, g *kcdata.Cgroup), frames ...string) func() *machine {
	return func() *machine {
		m := newMachine(2)
		g := m.group("/system.slice/a.service", nil, current, 1_000_000)
		g.SomeAvg10, g.FullAvg10 = some, full
		t := m.proc(900, "java", 1)
		t.Cgroup = g.Path
		m.thread(t, kcdata.StateUninterruptible, append(frames, "asm_exc_page_fault")...)
		if change != nil {
			change(m, g)
		}
		return m
	}
}

func machineWide(availableKiB, swapFreeKiB int, some, full float64, frames ...string) func() *machine {
	return func() *machine {
		m := newMachine(2)
		m.s.Meminfo = fmt.Sprintf("MemTotal: 1000000 kB\nMemAvailable: %d kB\nSwapTotal: 1000000 kB\nSwapFree: %d kB\n", availableKiB, swapFreeKiB)
		m.s.Pressure = ""
		m.psi("memory", some, full)
		if len(frames) > 0 {
			m.thread(m.proc(900, "java", 1), kcdata.StateUninterruptible, frames...)
		}
		return m
	}
}

func threadsOf(n, others int, age uint64) func() *machine {
	return func() *machine {
		m := newMachine(2)
		t := m.proc(900, "java", 1)
		t.Linux.StartBoottime = now - age
		for range n {
			m.sleep(t, sec, "futex_wait")
		}
		other := m.proc(901, "other", 1)
		for range others - 1 { // newMachine has one
			m.sleep(other, sec, "futex_wait")
		}
		return m
	}
}

func processesOf(n int) func() *machine {
	return func() *machine {
		m := newMachine(2)
		for i := range uint32(n) {
			m.sleep(m.proc(2000+i, "postgres", 600), sec, "ep_poll")
		}
		return m
	}
}

// zombiesOf is a parent with n zombies that ended some time ago; 0: the file does not say when.
func zombiesOf(n int, age uint64) func() *machine {
	return func() *machine {
		m := newMachine(2)
		for i := range uint32(n) {
			th := m.thread(m.proc(2000+i, "job", 600), kcdata.StateDead)
			th.Linux.ExitState, th.Linux.LastArrival = kcdata.ExitZombie, now-3600*sec
			if th.Linux.ExecStart = now - age; age == 0 {
				th.Linux.Present &^= kcdata.ThreadHasSchedInfo
			}
		}
		return m
	}
}

// letGo is a machine with a real-time thread that has run for so long of 10 s, and waits itself
// while another has its CPU.
func letGo(ran, hogWaits, waits uint64) func() *machine {
	return func() *machine {
		m := newMachine(2)
		h := m.wait(m.proc(77, "audio", 1), 1, hogWaits)
		h.Linux.Policy, h.Linux.RtPriority = 1, 50
		h.Linux.Present |= kcdata.ThreadHasRuntime
		h.Linux.StartBoottime, h.Linux.SumExecRuntime = now-10*sec, ran
		m.run(m.proc(8, "sshd", 1), 1, ms)
		m.wait(m.proc(9, "cron", 1), 1, waits)
		return m
	}
}

// usesDisk is a machine with an I/O pressure, -1: that the file does not have, and n threads in D.
func usesDisk(cpus int, some, full float64, n int, frames ...string) func() *machine {
	return func() *machine {
		m := newMachine(cpus)
		if some >= 0 {
			m.psi("io", some, full)
		}
		for i := range uint32(n) {
			m.blocked(m.proc(400+i, []string{"tar", "dd"}[i%2], 1), uint64(i+1)*ms, frames...)
		}
		return m
	}
}

// storm is a command whose children come, run and go, among others that want a CPU.
func storm() *machine {
	m := newMachine(2)
	m.psi("cpu", 98, 0)
	m.sleep(m.proc(700, "loadgen", 1), 50*ms, "do_wait")
	for i := range uint32(61) {
		t := m.proc(20_000+13*i, "sh", 700)
		t.Linux.StartBoottime = now - uint64(61-i)*10*ms
		if i < 2 {
			m.run(t, i, ms)
		} else {
			m.wait(t, i%2, 300*ms)
		}
	}
	for i := range uint32(7) {
		m.wait(m.proc(30+i, fmt.Sprintf("svc%d", i), 1), 0, 310*ms)
	}
	return m
}

// outOfMemory is a machine whose OOM killer is at work.
func outOfMemory() *machine {
	m := newMachine(2)
	m.psi("memory", 80, 50)
	m.s.Meminfo = "MemTotal: 16384000 kB\nMemAvailable: 81920 kB\nSwapTotal: 1024000 kB\nSwapFree: 12 kB\n"
	m.wait(m.proc(900, "java", 1), 0, 5*ms, "oom_kill_process", "out_of_memory", "__alloc_pages_slowpath", "__alloc_pages")
	m.thread(m.proc(901, "db", 1), kcdata.StateUninterruptible, "throttle_direct_reclaim", "try_to_free_pages", "__alloc_pages_slowpath")
	return m
}

// saidOf are the words of some cases below, beginning with those of their first line.
var saidOf = map[string][]string{
	"waits for 1 s":        {"CPU!   1.0 s  2 threads of batch [800] have 2 of 2 CPUs; nginx [812] waits up to 1.0 s\n", "CPU           in billing.service"},
	"real time for 100 ms": {"CPU!  100 ms  FIFO 50: audio [77] has CPU 1; sshd [8] waits up to 100 ms"},
	"8 for each CPU":       {"CPU!   30 ms  32 of 32 runnable threads are work, children of systemd [1]\n", "that is 8 for each CPU\n", "work [1004] waits longest for a CPU\n", "work: 1000, 1001, 1002, 1003, 1004, 1005, 1006, 1007, 1008 and 23 more"},
	"fork storm": {
		"CPU!  310 ms  61 of 68 runnable threads are sh: fork storm, children of loadgen [700]\n",
		"61 of these 61 processes are younger than 1 s, about 1,300 new pids a second\n", "svc0 [30] waits longest for a CPU\n",
	},
	"48 young ones, 1,000 pids a second": {"CPU!          48 processes younger than 1 s are sh, children of launcher [700], about 1,000 new pids a second"},
	"at the limit, in reclaim":           {"MEMORY!     0 %  a.service has 928 KiB of 977 KiB (memory.max); 1 thread reclaims: java [900]\n", "at work for memory: java [900] up to 1h 00m\n", "its control group is /system.slice/a.service"},
	"at the limit, all wait":             {"MEMORY!     1 %  a.service has 928 KiB of 977 KiB (memory.max); all its threads waited for memory 1 % of 10 s\n"},
	"above memory.high":                  {"MEMORY!     0 %  a.service has 488 KiB of 488 KiB (memory.high); 1 thread reclaims: java [900]\n"},
	"at the OOM killer":                  {"; 1 thread is at the OOM killer: java [900]\n"},
	"scarce, in reclaim":                 {"MEMORY!     0 %  the machine has 48.8 MiB of 977 MiB available; 1 thread reclaims: java [900]\n"},
	"out of memory": {
		"MEMORY!  5.0 ms  out of memory: java [900] is at the OOM killer\nMEMORY!    80 %  the machine has 80.0 MiB of 15.6 GiB available, its swap is full; ",
		"; all its threads waited for memory 50 % of 10 s; 1 thread reclaims: db [901]\n", "at work for memory: db [901] up to 1h 00m",
	},
	"5,000 threads":                          {"MANY!   55.6%  java [900] has 5,000 threads, of 9,000\n", "5,000 of them sleep in futex_wait"},
	"1,000 threads, new":                     {"1,000 of them were made in the last minute\n"},
	"1,000 processes":                        {"MANY!   99.9%  1,000 of 1,001 processes are postgres, children of 600 (not in the file)\n", "1,000 of them sleep in ep_poll\n", "postgres: 2000, 2001, 2002, 2003, 2004, 2005, 2006, 2007, 2008 and 991 more"},
	"lets others run for a moment":           {"CPU!  100 ms  FIFO 50: audio [77] mostly has CPU 1; cron [9] waits up to 100 ms\n", "sshd [8] had it at the stop"},
	"lets others run, and nobody waits long": {"CPU           FIFO 50: audio [77] mostly has CPU 1"},
	"back from throttling":                   {"CPU!  100 ms  FIFO 50: audio [77] mostly has CPU 1; sshd [8] waits up to 100 ms"},
	"nobody waits so long for it":            {"CPU    1.0 s  FIFO 50: audio [77] has CPU 1"},
	"all wait for I/O 20 %":                  {"DISK     20 %  all threads waited for I/O 20 % of 10 s; no thread is in D there now"},
	"some wait for I/O 40 %":                 {"DISK     40 %  threads waited for I/O 40 % of 10 s"},
	"8 in D at a device":                     {"DISK      0 %  8 in D for a block device: 4 x dd [407], 4 x tar [406]\n", "dd [407] waits longest, up to 8.0 ms"},
	"8 in D, a file without pressure":        {"DISK   8.0 ms  8 in D for a block device: 4 x dd [407], 4 x tar [406]\n"},
	"zombies without an age":                 {"MANY           100 zombies, children of 600 (not in the file); the file does not say since when\n"},
	"100 zombies":                            {"MANY!          100 zombies older than 5.0 s, children of 600 (not in the file), which does not reap them\n", "job: 2000, 2001"},
}

// What is said on both sides of each threshold: "wrong", "minor" or nothing; no other section accuses
// anybody.
func TestThresholds(t *testing.T) {
	nice := func(th *kcdata.Thread) { th.Linux.Nice = 1 }
	idle := func(th *kcdata.Thread) { th.Linux.Policy = policyIdle }
	const reclaim = "try_to_free_mem_cgroup_pages"
	told := map[string]bool{}
	for _, c := range []struct {
		name, section, want string
		make                func() *machine
	}{
		{"waits for 1 s", "CPU", "wrong", waiting(sec, nil)},
		{"waits for less", "CPU", "minor", waiting(sec-1, nil)},
		{"waits for long, by its own wish", "CPU", "minor", waiting(100*sec, nice)},
		{"SCHED_IDLE", "CPU", "minor", waiting(100*sec, idle)},
		{"waits for 20 ms", "CPU", "minor", waiting(20*ms, nil)},
		{"waits for less, without pressure", "CPU", "", waiting(20*ms-1, nil)},
		{"an age that is not known", "CPU", "", waiting(sec, func(th *kcdata.Thread) { th.Linux.LastQueued = 0 })},

		{"real time for 100 ms", "CPU", "wrong", realTime(100*ms, 100*ms, nil)},
		{"real time for less", "CPU", "", realTime(100*ms-1, 100*ms, nil)},
		{"nobody waits so long for it", "CPU", "minor", realTime(sec, 100*ms-1, nil)},
		{"they wait at another CPU", "CPU", "minor", realTime(sec, 100*ms, func(h, w *kcdata.Thread) { w.Linux.CPU = 0 })},
		{"no real time", "CPU", "", realTime(sec, 100*ms, func(h, w *kcdata.Thread) { h.Linux.Policy = 0 })},
		{"others of real time wait", "CPU", "minor", realTime(sec, 100*ms, func(h, w *kcdata.Thread) { w.Linux.Policy = 2 })},
		{"back from throttling", "CPU", "wrong", realTime(ms, 100*ms, func(h, w *kcdata.Thread) {
			h.Linux.Present |= kcdata.ThreadHasRuntime
			h.Linux.StartBoottime, h.Linux.SumExecRuntime = now-10*sec, 5*sec
		})},
		{"mostly asleep", "CPU", "", realTime(ms, 100*ms, func(h, w *kcdata.Thread) {
			h.Linux.Present |= kcdata.ThreadHasRuntime
			h.Linux.StartBoottime, h.Linux.SumExecRuntime = now-10*sec, 5*sec-1
		})},

		{"lets others run for a moment", "CPU", "wrong", letGo(5*sec, 50*ms, 100*ms)},
		{"lets others run, and nobody waits long", "CPU", "minor", letGo(5*sec, 50*ms, 100*ms-1)},
		{"waits for longer than a moment", "CPU", "", letGo(5*sec, 100*ms, 100*ms)},
		{"waits, and is mostly asleep", "CPU", "", letGo(5*sec-1, 50*ms, 100*ms)},

		{"8 for each CPU", "CPU", "wrong", crowded(4, 32, 0, 60*sec)},
		{"fewer", "CPU", "minor", crowded(4, 31, 0, 60*sec)},
		{"16 on one CPU", "CPU", "wrong", crowded(1, 16, 0, 60*sec)},
		{"15 on one CPU", "CPU", "minor", crowded(1, 15, 0, 60*sec)},
		{"each waits for a moment", "CPU", "minor", func() *machine {
			m := crowded(4, 32, 0, 60*sec)()
			for _, t := range m.s.Tasks[1:] {
				t.Threads[0].Linux.LastQueued = now - 19*ms
			}
			return m
		}},
		{"a third", "CPU", "wrong", crowded(2, 16, 32, 60*sec)},
		{"less than a third", "CPU", "minor", crowded(2, 16, 33, 60*sec)},

		{"fork storm", "CPU", "wrong", storm},
		{"48 young ones, 1,000 pids a second", "CPU", "wrong", youngChildren(48, 800*ms, 10)},
		{"48 young ones, fewer pids", "CPU", "minor", youngChildren(48, 800*ms, 9)},
		{"47 young ones", "CPU", "", youngChildren(47, 800*ms, 10)},
		{"old ones", "CPU", "", youngChildren(48, 1500*ms, 10)},

		{"at the limit, in reclaim", "MEMORY", "wrong", grouped(950_000, 0, 0, nil, reclaim)},
		{"below the limit, in reclaim", "MEMORY", "", grouped(949_999, 0, 0, nil, reclaim)},
		{"at the limit, some wait", "MEMORY", "wrong", grouped(950_000, 1000, 0, nil)},
		{"at the limit, few wait", "MEMORY", "", grouped(950_000, 999, 99, nil)},
		{"at the limit, all wait", "MEMORY", "wrong", grouped(950_000, 100, 100, nil)},
		{"pressure far below the limit", "MEMORY", "", grouped(500_000, 9900, 9900, nil)},
		{"pressure and reclaim", "MEMORY", "wrong", grouped(500_000, 1000, 0, nil, reclaim)},
		{"no limit", "MEMORY", "", grouped(950_000, 9900, 9900, func(m *machine, g *kcdata.Cgroup) { g.Max = kcdata.CgroupUnlimited }, reclaim)},
		{"above memory.high", "MEMORY", "wrong", grouped(500_000, 0, 0, func(m *machine, g *kcdata.Cgroup) { g.High = 500_000 }, "__mem_cgroup_handle_over_high")},
		{"at the OOM killer", "MEMORY", "wrong", grouped(950_000, 0, 0, nil, "oom_kill_process", "mem_cgroup_out_of_memory")},
		{"version 1, under OOM", "MEMORY", "wrong", grouped(100, 0, 0, func(m *machine, g *kcdata.Cgroup) {
			g.Present |= kcdata.CgroupHasOOM
			g.Flags |= kcdata.CgroupUnderOOM
		})},
		{"version 1, waits for pages", "MEMORY", "wrong", grouped(950_000, 0, 0, func(m *machine, g *kcdata.Cgroup) {
			g.Present &^= kcdata.CgroupHasPressure
			m.psi("memory", 10, 0)
		}, "folio_wait_bit_common", "filemap_fault")},
		{"version 1, reads its first pages", "MEMORY", "", grouped(950_000, 0, 0, func(m *machine, g *kcdata.Cgroup) {
			g.Present &^= kcdata.CgroupHasPressure
		}, "folio_wait_bit_common", "filemap_fault")},

		{"scarce, in reclaim", "MEMORY", "wrong", machineWide(49_999, 500_000, 0, 0, "try_to_free_pages")},
		{"scarce", "MEMORY", "minor", machineWide(49_999, 500_000, 0, 0)},
		{"in reclaim, not scarce", "MEMORY", "", machineWide(50_000, 500_000, 0, 0, "try_to_free_pages")},
		{"40 % wait", "MEMORY", "wrong", machineWide(500_000, 500_000, 40, 0)},
		{"10 % all wait", "MEMORY", "wrong", machineWide(500_000, 500_000, 11, 10)},
		{"less", "MEMORY", "minor", machineWide(500_000, 500_000, 39.9, 9.9)},
		{"less than 5 %", "MEMORY", "", machineWide(500_000, 500_000, 4.9, 0)},
		{"swap full, memory available", "MEMORY", "", machineWide(500_000, 0, 0, 0)},
		{"swap full, memory low", "MEMORY", "minor", machineWide(99_999, 50_000, 0, 0)},
		{"swap not full, memory low", "MEMORY", "", machineWide(99_999, 51_000, 0, 0)},
		{"out of memory", "MEMORY", "wrong", outOfMemory},
		{"kswapd works", "MEMORY", "", machineWide(49_999*2, 500_000, 0, 0, "shrink_node", "balance_pgdat", "kswapd")},

		{"all wait for I/O 20 %", "DISK", "minor", usesDisk(2, 20, 20, 0)},
		{"some wait for I/O 40 %", "DISK", "minor", usesDisk(2, 40, 0, 0)},
		{"less of both", "DISK", "", usesDisk(2, 39.9, 19.9, 7, "submit_bio_wait")},
		{"8 in D at a device", "DISK", "minor", usesDisk(2, 0, 0, 8, "submit_bio_wait")},
		{"8 in D, a file without pressure", "DISK", "minor", usesDisk(2, -1, 0, 8, "submit_bio_wait")},
		{"7 in D", "DISK", "", usesDisk(2, -1, 0, 7, "submit_bio_wait")},
		{"2 for each CPU in D", "DISK", "minor", usesDisk(5, -1, 0, 10, "submit_bio_wait")},
		{"less for each CPU", "DISK", "", usesDisk(5, -1, 0, 9, "submit_bio_wait")},
		{"in D for something else", "DISK", "", usesDisk(2, -1, 0, 8, "wait_for_completion", "kernel_clone")},

		{"5,000 threads", "MANY", "wrong", threadsOf(5000, 4000, 3600*sec)},
		{"4,999 threads", "MANY", "minor", threadsOf(4999, 4000, 3600*sec)},
		{"not half of all", "MANY", "", threadsOf(5000, 5001, 3600*sec)},
		{"1,000 threads", "MANY", "minor", threadsOf(1000, 300, 3600*sec)},
		{"999 threads", "MANY", "", threadsOf(999, 300, 3600*sec)},
		{"1,000 threads, new", "MANY", "wrong", threadsOf(1000, 300, 30*sec)},
		{"1,000 processes", "MANY", "wrong", processesOf(1000)},
		{"999 processes", "MANY", "", processesOf(999)},
		{"100 zombies", "MANY", "wrong", zombiesOf(100, 5*sec)},
		{"99 zombies", "MANY", "", zombiesOf(99, 5*sec)},
		{"zombies of a moment", "MANY", "", zombiesOf(277, 5*sec-1)},
		{"zombies without an age", "MANY", "minor", zombiesOf(100, 0)},
	} {
		m := c.make()
		got := ""
		for _, s := range m.view().resources() {
			for _, e := range s.entries {
				switch {
				case s.title != c.section && !e.minor:
					t.Errorf("%s: %s accuses somebody", c.name, s.title)
				case s.title != c.section:
				case !e.minor:
					got = "wrong"
				case got == "":
					got = "minor"
				}
			}
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q\n%s", c.name, got, c.want, m.text())
		}
		for _, words := range saidOf[c.name] {
			if text := m.text(); !strings.Contains(text, words) {
				t.Errorf("%s: %q is not said in\n%s", c.name, words, text)
			}
		}
		told[c.name] = true
	}
	for name := range saidOf {
		if !told[name] {
			t.Errorf("no case %q", name)
		}
	}
}

// A task that was left out because it has so many threads is told of by its number.
func TestLeftOutIsMany(t *testing.T) {
	m := newMachine(2)
	m.s.LeftOut = []kcdata.LinuxLeftOut{{Tgid: 32619, Reason: kcdata.LeftOutMaxPause, Threads: 20_001}, {Tgid: 5, Reason: kcdata.LeftOutMaxPause, Threads: 3}}
	if got, want := m.entries()[0], "MANY!  100.0%  task 32619, which is not in the file, has 20,001 threads, of 20,005"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	m.sleep(m.proc(32619, "leaky", 1), sec, "futex_wait") // recorded in part
	if got, want := m.entries()[0], "MANY!  100.0%  leaky [32619] has 20,002 threads, of 20,006"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// All CPUs have been busy for long. Who waits for less than a turn is not named, whoever has them.
func TestNobodyIsMissedWithinATurn(t *testing.T) {
	for age, named := range map[uint64]bool{ms / 5: false, turnNs - 1: false, turnNs: true, 15 * ms: true} {
		m := newMachine(2)
		b := m.proc(800, "batch", 2)
		m.run(b, 0, 50*ms)
		m.run(b, 1, 50*ms)
		m.wait(m.proc(812, "nginx", 1), 1, age)
		text := m.text()
		if !strings.Contains(text, "2 of 2 CPUs") || strings.Contains(text, "nginx [812] waits") != named {
			t.Errorf("%d ns, to be named: %v:\n%s", age, named, text)
		}
	}
}

// Who has waited longest is named, of the command that has the CPUs too: a younger wait of
// another command does not take its place, an equal one does.
func TestTheLongestWaitIsNamed(t *testing.T) {
	for _, c := range []struct {
		batch, nginx uint64
		want         string
	}{
		{540 * ms, 4 * ms, "batch [800] waits up to 540 ms"},
		{540 * ms, turnNs - 1, "batch [800] waits up to 540 ms"},
		{4 * ms, 540 * ms, "nginx [812] waits up to 540 ms"},
		{540 * ms, 540 * ms, "nginx [812] waits up to 540 ms"},
		{turnNs - 1, ms / 5, ""},
	} {
		m := newMachine(2)
		b := m.proc(800, "batch", 2)
		m.wait(b, 1, c.batch)
		m.run(b, 0, 50*ms)
		m.run(b, 1, 50*ms)
		m.wait(m.proc(812, "nginx", 1), 1, c.nginx)
		text := m.text()
		if !strings.Contains(text, "of 2 CPUs") || c.want == "" && strings.Contains(text, " waits ") || !strings.Contains(text, c.want) {
			t.Errorf("%d and %d ns, want %q:\n%s", c.batch, c.nginx, c.want, text)
		}
	}
}

func (m *machine) mount(dev uint64, point, kind, source string) *kcdata.LinuxMount {
	var x kcdata.LinuxMount
	x.Dev = dev
	copy(x.Point[:], point)
	copy(x.FSType[:], kind)
	copy(x.Source[:], source)
	copy(x.Root[:], "/")
	m.s.Mounts = append(m.s.Mounts, x)
	return &m.s.Mounts[len(m.s.Mounts)-1]
}

// Who waits in D without a descriptor is told of a mount only if the machine has one file system
// of that kind alone.
func TestPlaceOf(t *testing.T) {
	stack := []string{"rpc_wait_bit_killable", "__rpc_execute", "nfs4_call_sync", "nfs4_proc_getattr", "__nfs_revalidate_inode", "vfs_statx"}
	const want = "probably /srv (nfs4, store:/srv), the only one of its kind"
	for _, c := range []struct {
		name, want string
		state      uint32
		change     func(m *machine)
	}{
		{"one", want, 2, func(m *machine) {}},
		{"one, mounted twice", want, 2, func(m *machine) { m.mount(50, "/again", "nfs4", "store:/srv") }},
		{"of another kind", want, 2, func(m *machine) { m.mount(51, "/", "ext4", "/dev/sda") }},
		{"two", "", 2, func(m *machine) { m.mount(51, "/other", "nfs4", "store:/other") }},
		{"asleep", "", 1, func(m *machine) {}},
		{"redacted", "", 2, func(m *machine) { m.s.Machine.Redacted = 1 }},
		{"not all mounts", "", 2, func(m *machine) { m.mount(50, "/x", "tmpfs", "tmpfs").Flags = kcdata.MountLarge }},
		{"mounts not read", "", 2, func(m *machine) { m.s.FilesTaken.Sources = 0 }},
	} {
		m := newMachine(1)
		m.s.FilesTaken = &kcdata.LinuxFilesTaken{Sources: kcdata.FilesHasMounts}
		m.mount(50, "/srv", "nfs4", "store:/srv")
		c.change(m)
		th := m.thread(m.proc(9, "stat", 1), c.state, stack...)
		v := m.view()
		if got := v.placeOf(v.of[th]); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
