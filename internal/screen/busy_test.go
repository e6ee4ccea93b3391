package screen

import (
	"fmt"
	"strings"
	"testing"

	"stackshot/internal/golden"
	"stackshot/kcdata"
)

// scenes are machines that are busy, short of memory, or full, and what must be said of them.
var scenes = []struct {
	name  string
	make  func() *machine
	wrong string   // the section that accuses somebody
	words []string // that must stand in it
}{
	{"cache", pageCache, "", nil},
	{"out of memory", outOfMemory, "MEMORY", []string{
		"MEMORY!  5.0 ms  out of memory: java [900] is at the OOM killer", "\nMEMORY!    80 %  the machine has 80.0 MiB of 15.6 GiB available, its swap is full; ",
		"; all its threads waited for memory 50 % of 10 s; 1 thread reclaims: db [901]\n", "at work for memory: db [901] up to 1h 00m",
	}},
	{"leak", leak, "MANY", []string{"MANY!   81.3%  leaky [33] has 20,000 threads, of 24,601\n", "20,000 of them sleep in futex_wait"}},
	{"java", healthyJava, "", nil},
	{"zombies", zombies, "MANY", []string{"150 zombies, children of noreap [600], which does not reap them\n", "job: 2000, 2001, 2002, 2003, 2004, 2005, 2006, 2007, 2008 and 141 more"}},
	{"processes", processes, "MANY", []string{"MANY!   99.8%  1,200 of 1,203 processes are worker, children of pool [600]\n", "1,200 of them sleep in pipe_read\n", "worker: 2000, 2001"}},
	{"hogs", hogs, "CPU", []string{"CPU!   4.1 s  8 threads of billing-batch [800] have 2 of 2 CPUs; nginx [812] waits up to 4.1 s\n", "6 more threads wait for a CPU, 6 of billing-batch\n", "in billing.service"}},
	{"one CPU", fifoHog, "CPU", []string{"CPU!  930 ms  FIFO 99: spin [77] has CPU 1; sshd [8] waits up to 900 ms\n", "1 more thread waits for CPU 1"}},
	{"storm", storm, "CPU", []string{
		"CPU!  310 ms  61 of 68 runnable threads are sh: fork storm, children of loadgen [700]\n",
		"61 of these 61 processes are younger than 1 s, about 1,300 new pids a second\n", "svc0 [30] waits longest for a CPU\n",
	}},
	{"thrash", thrash, "MEMORY", []string{
		"MEMORY!    87 %  batch.service has 512 MiB of 512 MiB (memory.max); all its threads waited for memory 63 % of 10 s; 3 threads reclaim: java [900]\n",
		"java [900] up to 40 ms, java [900] tid 50001 up to 40 ms", "in its life: 32,011 times at its limit\n", "its control group is /system.slice/batch.service",
	}},
}

func hogs() *machine {
	m := newMachine(2)
	m.psi("cpu", 92, 0)
	b := m.proc(800, "billing-batch", 1)
	b.Cgroup = "/batch.slice/billing.service"
	m.run(b, 0, 3*ms)
	m.run(b, 1, 2*ms)
	for i := range uint32(6) {
		m.wait(b, i%2, 20*ms)
	}
	n := m.proc(812, "nginx", 1)
	n.Cgroup = "/system.slice/nginx.service"
	m.wait(n, 1, 4100*ms)
	return m
}

func fifoHog() *machine {
	m := newMachine(2)
	h := m.run(m.proc(77, "spin", 1), 1, 930*ms)
	h.Linux.Policy, h.Linux.RtPriority = 1, 99
	m.wait(m.proc(8, "sshd", 1), 1, 900*ms)
	m.wait(m.proc(9, "cron", 1), 1, 40*ms)
	return m
}

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

func thrash() *machine {
	m := newMachine(2)
	m.psi("memory", 70, 40)
	root := m.group("/", nil, 4<<30, kcdata.CgroupUnlimited)
	above := m.group("/system.slice", root, 520<<20, 8<<30)
	g := m.group("/system.slice/batch.service", above, 512<<20-8192, 512<<20)
	g.SomeAvg10, g.FullAvg10, g.MaxEvents, g.Present = 8700, 6300, 32_011, g.Present|kcdata.CgroupHasOOMKill
	j := m.proc(900, "java", 1)
	j.Cgroup = g.Path
	for range 3 {
		th := m.thread(j, kcdata.StateUninterruptible, "folio_wait_bit_common", "shrink_folio_list", "shrink_lruvec", "shrink_node", "do_try_to_free_pages", "try_to_free_mem_cgroup_pages", "try_charge_memcg", "charge_memcg")
		th.Linux.LastArrival = now - 40*ms
	}
	return m
}

// pageCache is a group that is full of page cache, whose threads read.
func pageCache() *machine {
	m := newMachine(2)
	g := m.group("/system.slice/backup.service", nil, 512<<20, 512<<20)
	g.SomeAvg10, g.MaxEvents = 300, 9_000_000
	t := m.proc(901, "tar", 1)
	t.Cgroup = g.Path
	m.thread(t, kcdata.StateUninterruptible, "folio_wait_bit_common", "filemap_get_pages", "filemap_read", "vfs_read")
	return m
}

func outOfMemory() *machine {
	m := newMachine(2)
	m.psi("memory", 80, 50)
	m.s.Meminfo = "MemTotal: 16384000 kB\nMemAvailable: 81920 kB\nSwapTotal: 1024000 kB\nSwapFree: 12 kB\n"
	m.wait(m.proc(900, "java", 1), 0, 5*ms, "oom_kill_process", "out_of_memory", "__alloc_pages_slowpath", "__alloc_pages")
	m.thread(m.proc(901, "db", 1), kcdata.StateUninterruptible, "throttle_direct_reclaim", "try_to_free_pages", "__alloc_pages_slowpath")
	return m
}

func leak() *machine {
	m := newMachine(2)
	l := m.proc(33, "leaky", 1)
	for range 20_000 {
		m.sleep(l, 5*sec, "futex_wait", "do_futex")
	}
	for i := range uint32(4600) {
		m.sleep(m.proc(100_000+i, fmt.Sprintf("svc%d", i%500), 1), 5*sec, "ep_poll")
	}
	return m
}

func healthyJava() *machine {
	m := newMachine(2)
	j := m.proc(33, "java", 1)
	for range 300 {
		m.sleep(j, 5*sec, "futex_wait", "do_futex")
	}
	return m
}

func zombies() *machine {
	m := newMachine(2)
	m.sleep(m.proc(600, "noreap", 1), sec, "do_sys_pause")
	for i := range uint32(150) {
		m.thread(m.proc(2000+i, "job", 600), kcdata.StateDead).Linux.ExitState = kcdata.ExitZombie
	}
	return m
}

func processes() *machine {
	m := newMachine(2)
	m.sleep(m.proc(600, "pool", 1), sec, "do_wait")
	m.sleep(m.proc(601, "other", 1), sec, "ep_poll")
	for i := range uint32(1200) {
		m.sleep(m.proc(2000+i, "worker", 600), sec, "pipe_read")
	}
	return m
}

// Each scene accuses where it must and nowhere else, with its words.
func TestBusyScenes(t *testing.T) {
	for _, c := range scenes {
		text := c.make().text()
		golden.Showable(t, []byte(text))
		for _, section := range []string{"CPU", "MEMORY", "MANY"} {
			if got := strings.Contains("\n"+text, "\n"+section+"!"); got != (c.wrong == section) {
				t.Errorf("%s: %s accuses somebody: %v\n%s", c.name, section, got, text)
			}
		}
		for _, w := range c.words {
			if !strings.Contains(text, w) {
				t.Errorf("%s: %q is not said in\n%s", c.name, w, text)
			}
		}
	}
}
