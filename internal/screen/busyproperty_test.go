package screen

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"stackshot/internal/golden"
	"stackshot/internal/show"
	"stackshot/kcdata"
)

var someFrames = []string{
	"futex_wait", "ep_poll", "filemap_fault", "try_to_free_mem_cgroup_pages", "try_to_free_pages", "out_of_memory", "do_swap_page", "swap_read_folio",
	"mem_cgroup_oom_synchronize", "balance_pgdat", "submit_bio_wait", "x\x1b[0m",
}

// randomMachine is a machine of which nothing need make sense.
func randomMachine(r *rand.Rand, names []string) *machine {
	m := newMachine(1 + r.IntN(3))
	m.psi("cpu", r.Float64()*120, 0)
	m.psi("memory", r.Float64()*120, r.Float64()*100)
	m.psi("io", r.Float64()*120, r.Float64()*100)
	var groups []*kcdata.Cgroup
	for i := range r.IntN(5) {
		var above *kcdata.Cgroup
		if len(groups) > 0 && r.IntN(2) == 0 {
			above = groups[r.IntN(len(groups))]
		}
		g := m.group(fmt.Sprintf("/g%d/%s.service", i, names[r.IntN(len(names))]), above, r.Uint64N(1<<20), r.Uint64N(1<<20))
		g.Present, g.Flags, g.SomeAvg10, g.FullAvg10, g.MaxEvents = r.Uint32(), r.Uint32(), r.Uint32N(12_000), r.Uint32N(12_000), r.Uint64()
		groups = append(groups, g)
	}
	procs := r.IntN(120)
	for i := range uint32(procs) {
		t := m.proc(100+i, names[r.IntN(len(names))], uint32(r.IntN(130)))
		t.Linux.StartBoottime = now - r.Uint64N(4*sec)
		if len(groups) > 0 {
			t.Cgroup = groups[r.IntN(len(groups))].Path
		}
		for range 1 + r.IntN(3) {
			m.randomThread(r, t)
		}
	}
	if r.IntN(3) == 0 {
		m.s.LeftOut = append(m.s.LeftOut, kcdata.LinuxLeftOut{Tgid: uint32(100 + r.IntN(200)), Reason: uint32(r.IntN(5)), Threads: r.Uint32()})
	}
	return m
}

func (m *machine) randomThread(r *rand.Rand, t *kcdata.Task) {
	var frames []string
	for range r.IntN(3) {
		frames = append(frames, someFrames[r.IntN(len(someFrames))])
	}
	cpu := uint32(r.IntN(len(m.s.CPUs)))
	var th *kcdata.Thread
	switch r.IntN(5) {
	case 0:
		th = m.run(t, cpu, r.Uint64N(3*sec))
	case 1, 2:
		th = m.wait(t, cpu, r.Uint64N(3*sec), frames...)
	case 3:
		th = m.blocked(t, r.Uint64N(2*sec), frames...)
	default:
		th = m.sleep(t, r.Uint64N(9*sec), frames...)
	}
	if r.IntN(4) == 0 {
		th.Linux.Policy, th.Linux.RtPriority = r.Uint32N(8), r.Uint32N(100)
	}
	if r.IntN(20) == 0 {
		th.Linux.ExitState = kcdata.ExitZombie
	}
	if r.IntN(15) == 0 {
		th.Linux.Present |= kcdata.ThreadIsSelf
	}
}

var (
	numbered = regexp.MustCompile(`\[(\d+)\]|\btid (\d+)`)
	listed   = regexp.MustCompile(`^ {9}.*: ((?:\d+, )+\d+)`)
)

// Whatever a file says: every number of a thread that a section names is in the file, none is one
// of this program's own threads, and all is fit to be shown.
func TestBusyNamesAreInTheFile(t *testing.T) {
	entries := map[string]int{}
	names := []string{"sh", "java", "x\x1b[31m", "a\nb", "\u202eevil", "", strings.Repeat("long", 100)}
	for seed := range uint64(500) {
		m := randomMachine(rand.New(rand.NewPCG(seed, 1)), names)
		known, own := map[string]bool{}, map[string]bool{}
		for _, task := range m.s.Tasks {
			known[fmt.Sprint(task.ID)] = true
			others := 0
			for _, th := range task.Threads {
				known[fmt.Sprint(th.ID)] = true
				if th.IsSelf() {
					own[fmt.Sprint(th.ID)] = true
				} else {
					others++
				}
			}
			if others > 0 {
				delete(own, fmt.Sprint(task.ID)) // it is named as the process
			}
		}
		v := m.view()
		for _, s := range v.resources() {
			entries[s.title] += len(s.entries)
			for _, e := range s.entries {
				if e.pid != 0 && !known[fmt.Sprint(e.pid)] {
					t.Fatalf("seed %d: pid %d is not in the file: %q", seed, e.pid, e.line)
				}
				for _, line := range append([]string{e.line}, e.more...) {
					golden.Showable(t, []byte(line))
					checkNumbers(t, seed, line, known, own)
				}
			}
		}
	}
	for _, section := range []string{"CPU", "MEMORY", "DISK", "MANY"} {
		if entries[section] < 30 {
			t.Errorf("%s has %d entries in all: the machines are too quiet", section, entries[section])
		}
	}
}

func checkNumbers(t *testing.T, seed uint64, line string, known, own map[string]bool) {
	t.Helper()
	var numbers []string
	for _, m := range numbered.FindAllStringSubmatch(line, -1) {
		numbers = append(numbers, m[1]+m[2])
	}
	if m := listed.FindStringSubmatch(line); m != nil {
		numbers = append(numbers, strings.Split(m[1], ", ")...)
	}
	for _, n := range numbers {
		if !known[n] && !strings.Contains(line, "not in the file") || own[n] {
			t.Fatalf("seed %d: %s is not in the file, or our own: %q", seed, n, line)
		}
	}
	if strings.Contains(line, "\n") {
		t.Fatalf("seed %d: %q", seed, line)
	}
}

// A machine on which nothing is wrong accuses nobody: some run, some wait for a moment, groups
// are filled by page cache, and servers have many threads. If a line says who waits, it names the
// one that has waited longest.
func TestBusyHealthy(t *testing.T) {
	said := 0
	for seed := range uint64(150) {
		r := rand.New(rand.NewPCG(seed, 2))
		m := newMachine(1 + r.IntN(8))
		m.psi("cpu", r.Float64()*100, 0)
		m.psi("memory", r.Float64()*4.9, 0)
		m.psi("io", r.Float64()*diskSome*0.99, r.Float64()*diskFull*0.99)
		full := m.group("/system.slice/a.service", nil, 1<<30, 1<<30)
		full.SomeAvg10, full.MaxEvents = r.Uint32N(900), r.Uint64()
		for i := range uint32(20 + r.IntN(60)) {
			p := m.proc(100+i, nasty[r.IntN(len(nasty))], 1)
			p.Cgroup = full.Path
			for range 1 + r.IntN(8) {
				m.sleep(p, r.Uint64N(9000*sec), someFrames[r.IntN(2)])
			}
		}
		longest, who := uint64(0), ""
		for cpu := range m.s.CPUs {
			if r.IntN(3) > 0 {
				m.run(m.s.Tasks[1+cpu], uint32(cpu), r.Uint64N(100*sec))
			}
			for range r.IntN(4) {
				age := r.Uint64N(900*ms) >> r.IntN(12)
				th := m.wait(m.s.Tasks[1+cpu], uint32(cpu), age)
				if age > longest {
					longest, who = age, nameOf(m.s.Tasks[1+cpu], th)
				}
			}
		}
		for range 300 {
			m.sleep(m.s.Tasks[1], 5*sec, "futex_wait")
		}
		for range r.IntN(diskThreads) { // those that read and write just now
			m.blocked(m.s.Tasks[2], r.Uint64N(sec), "submit_bio_wait")
		}
		m.own(uint32(r.IntN(len(m.s.CPUs))))
		for _, line := range m.entries() {
			if strings.Contains(line[:8], "!") || strings.HasPrefix(line, "DISK") {
				t.Fatalf("seed %d: %s", seed, line)
			}
			if strings.Contains(line, " waits up to ") {
				said++
				if longest < turnNs || !strings.Contains(line, fmt.Sprintf("; %s waits up to %s", who, show.Duration(longest))) {
					t.Fatalf("seed %d: %s has waited longest, %d ns: %s", seed, who, longest, line)
				}
			}
		}
	}
	if said < 30 {
		t.Errorf("only %d lines say who waits", said)
	}
}

// The rate of new pids is the true one, however many of those that were made are still there;
// and it is not known rather than wrong after the numbers began anew.
func TestPidRate(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 3))
		m := newMachine(2)
		rate := 50 + r.Uint64N(5000)
		left := 0
		for at := now - 2*sec; at < now; at += sec / rate {
			if r.IntN(4) == 0 {
				p := m.proc(uint32(300_000+(at-now+2*sec)*rate/sec), "p", 1)
				p.Linux.StartBoottime = at
				m.sleep(p, ms)
				left++
			}
		}
		got, known := m.view().pidRate()
		if left > 20 && (!known || got < float64(rate)*0.7 || got > float64(rate)*1.3) {
			t.Fatalf("seed %d: %v, %v, want %d of %d processes", seed, got, known, rate, left)
		}
		m.s.Machine.PidNSIsFirst = 0
		if _, known := m.view().pidRate(); known {
			t.Fatal("known of a pid namespace")
		}
	}
	m := newMachine(2)
	for i := range uint32(40) { // 32,768 and then 300 again
		p := m.proc(32_700+i, "p", 1)
		if i >= 20 {
			p = m.proc(300+i, "p", 1)
		}
		p.Linux.StartBoottime = now - sec + uint64(i)*20*ms
		m.sleep(p, ms)
	}
	if rate, known := m.view().pidRate(); known {
		t.Errorf("numbers began anew, and the rate is %s", strconv.FormatFloat(rate, 'f', 0, 64))
	}
}

// efforts are told on the stacks of each kernel. "." ends the name proper.
func TestEfforts(t *testing.T) {
	for _, c := range []struct {
		kernel string
		state  uint32
		want   effort
		stack  string
	}{
		{"6.1", 2, groupWork, "io_schedule folio_wait_bit_common shrink_page_list shrink_inactive_list shrink_lruvec shrink_node do_try_to_free_pages try_to_free_mem_cgroup_pages try_charge_memcg charge_memcg __mem_cgroup_charge"},
		{"6.1", 0x102, groupWork, "schedule_timeout mem_cgroup_handle_over_high exit_to_user_mode_prepare"},
		{"6.18", 0x102, groupWork, "schedule_timeout_killable __mem_cgroup_handle_over_high irqentry_exit_to_user_mode"},
		{"6.12", 0, groupWork, "shrink_one shrink_many shrink_node do_try_to_free_pages try_to_free_mem_cgroup_pages reclaim_high.constprop.0 mem_cgroup_handle_over_high"},
		{"6.1", 2, direct, "reclaim_throttle shrink_node do_try_to_free_pages try_to_free_pages __alloc_pages_slowpath.constprop.0 __alloc_pages"},
		{"7.1", 2, direct, "throttle_direct_reclaim try_to_free_pages __alloc_pages_slowpath.constprop.0 __alloc_frozen_pages_noprof"},
		{"6.12", 0, direct, "isolate_migratepages_block compact_zone compact_zone_order try_to_compact_pages __alloc_pages_direct_compact"},
		{"6.18", 0, killing, "oom_kill_process out_of_memory __alloc_pages_slowpath.constprop.0"},
		{"6.18", 2, killing, "mem_cgroup_oom_synchronize pagefault_out_of_memory exc_page_fault"},
		{"6.18", 0, killing, "__oom_reap_task_mm oom_reaper kthread"},
		{"6.18", 1, noEffort, "schedule oom_reaper kthread"},
		{"6.18", 0, kernel, "shrink_slab shrink_node balance_pgdat kswapd kthread"},
		{"6.18", 1, noEffort, "schedule kswapd kthread"},
		{"6.1", 2, swapIn, "folio_wait_bit_common swap_readpage read_swap_cache_async do_swap_page"},
		{"6.18", 2, swapIn, "folio_wait_bit_common swap_read_folio swapin_readahead do_swap_page"},
		{"6.18", 2, refault, "folio_wait_bit_common filemap_fault __do_fault handle_mm_fault"},
		{"6.18", 0, noEffort, "filemap_map_pages filemap_fault __do_fault handle_mm_fault"},
		{"6.18", 1, noEffort, "futex_wait_queue __futex_wait futex_wait do_futex"},
	} {
		m := newMachine(1)
		th := m.thread(m.proc(9, "x", 1), c.state, strings.Fields(c.stack)...)
		v := m.view()
		if got := v.effort(v.of[th]); got != c.want {
			t.Errorf("%s: %s: %d, want %d", c.kernel, c.stack, got, c.want)
		}
	}
}

// Pressure and memory of files that hold nothing of the kind, or nonsense, are not known.
func TestPressureOf(t *testing.T) {
	for text, want := range map[string]pressure{
		"": {}, "cpu": {}, "cpu some": {}, "cpu some avg10=": {}, "cpu some avg10=NaN": {}, "cpu some avg10=-1": {}, "cpu some avg10=101": {},
		"io some avg10=5.00 avg60=1.00\n": {}, "cpu some avg10=5.25 avg60=1\n": {some: 5.25, known: true},
		"cpu some avg10=5 x\ncpu full avg10=0.50 x\n": {some: 5, full: 0.5, known: true, fullKnown: true},
	} {
		if got := pressureOf(text, "cpu"); got != want {
			t.Errorf("%q: %+v, want %+v", text, got, want)
		}
	}
}
