package report

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"stackshot/internal/golden"
	"stackshot/internal/model"
	"stackshot/internal/verdict"
	"stackshot/kcdata"
)

func groupings() (out []Grouping) {
	for _, g := range Groupings {
		out = append(out, Grouping(g))
	}
	return out
}

// workers: a server of forty processes with one stack each and two that do something else, in two
// control groups; a task with threads of both kinds; all with CPU times.
func workers() *kcdata.Snapshot {
	w := newWorld(2)
	accept := []string{"__schedule", "schedule", "inet_csk_accept", "do_accept", "__sys_accept4", "do_syscall_64"}
	read := []string{"__schedule", "schedule", "io_schedule", "folio_wait_bit_common", "filemap_read", "vfs_read", "do_syscall_64"}
	cpu := func(th *kcdata.Thread, seconds uint64) {
		th.Linux.Present |= kcdata.ThreadHasRuntime
		th.Linux.SumExecRuntime = seconds * second
	}
	for i := range uint32(40) {
		t := w.task(3000+2*i, "httpd")
		t.Cgroup = "/system.slice/httpd.service"
		cpu(in(w.thread(t, "httpd", kcdata.StateInterruptible, uint64(i+1)*second, accept...), 288), uint64(i))
	}
	for i, name := range []string{"nginx", "httpd"} {
		t := w.task(4000+uint32(i), name)
		t.Cgroup = "/system.slice/nginx.service"
		cpu(in(w.thread(t, name, kcdata.StateInterruptible, minute, accept...), 288), 9)
		cpu(in(w.thread(t, name, kcdata.StateUninterruptible, 7*second+uint64(i), read...), 0), 700)
		cpu(in(w.thread(t, fmt.Sprintf("own-%d", i), kcdata.StateInterruptible, 3*second, accept[1+i:]...), 288), uint64(100*i))
	}
	cpu(w.onCPU(w.thread(w.task(5000, "burn"), "burn", 0, 2*second, "do_work"), 1), 5000)
	w.s.Tasks = append(w.s.Tasks, &kcdata.Task{ID: 6000, Name: "empty"})
	return w.done()
}

// Each way to group, as it is shown; the stories show that by state. Rewrite with -update.
func TestGroupingGolden(t *testing.T) {
	for _, by := range groupings()[1:] {
		s := workers()
		text := textOf(t, s, Options{GroupBy: by, Width: 100, Verdict: verdict.Judge(s, 1)})
		_, sections, _ := strings.Cut(text, "\n== ")
		golden.Want(t, "testdata/group_by_"+string(by)+".txt", []byte("\n== "+sections))
	}
}

// Each thread that is shown is in one group of one section, whatever groups and orders them; a
// group holds what its section says; and what is sorted is in order.
func TestEachThreadIsInOneGroup(t *testing.T) {
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 5))
		s, o := randomSelection(r)
		if r.IntN(2) == 0 {
			o.Verdict = verdict.Judge(s, 1)
		}
		v := newView(s, o)
		want := map[*kcdata.Thread]bool{}
		for _, th := range v.threads() {
			want[th.Thread] = true
		}
		tasks := map[*kcdata.Task]bool{}
		for _, p := range v.parts() {
			inOrder(t, v, p.entries)
			for _, e := range p.entries {
				if e.task != nil {
					tasks[e.task.Task] = true
				}
				for _, g := range e.groups {
					agesAreOldestFirst(t, g)
					for _, th := range g.threads {
						if !want[th.Thread] || e.task != nil && th.task != e.task.Task {
							t.Fatalf("seed %d, %+v: tid %d is in two groups, or in that of another task", seed, o, th.ID)
						}
						delete(want, th.Thread)
						tasks[th.task] = true
					}
				}
			}
		}
		if len(want) > 0 || len(tasks) != len(v.tasks) {
			t.Fatalf("seed %d, %+v: %d threads are in no group; %d of %d tasks", seed, o, len(want), len(tasks), len(v.tasks))
		}
	}
}

// inOrder checks the key of SortBy by its meaning, not by the code that sorted.
func inOrder(t *testing.T, v *view, entries []*entry) {
	t.Helper()
	for i := 1; i < len(entries); i++ {
		a, b := rankOf(entries[i-1].task, entries[i-1].groups), rankOf(entries[i].task, entries[i].groups)
		ok := true
		switch v.o.SortBy {
		case ByAge:
			ok = !b.age.Known || a.age.Known && a.age.Ns >= b.age.Ns
		case ByThreads:
			ok = entries[i-1].threads() >= entries[i].threads()
		case ByCPU:
			ok = a.cpu >= b.cpu
		case ByName:
			ok = a.name <= b.name || strings.ContainsRune(a.name+b.name, '\x1b')
		}
		if !ok {
			t.Fatalf("by %s: %+v before %+v", v.o.SortBy, a, b)
		}
	}
}

func agesAreOldestFirst(t *testing.T, g *group) {
	t.Helper()
	if !slices.IsSortedFunc(g.threads, func(a, b *threadView) int { return model.LongestFirst(a.age, b.age) }) || g.age != g.threads[0].age {
		t.Fatalf("the longest age %+v is not that of the first thread, %+v", g.age, g.threads[0].age)
	}
}

var reference = regexp.MustCompile(`^        same (?:kernel )?stack as tid (\d+) above$`)

// A reference leads to a thread that is named on the same screen above it.
func TestReferencesAreOnTheScreen(t *testing.T) {
	found := 0
	check := func(s *kcdata.Snapshot, o Options) {
		lines := strings.Split(textOf(t, s, o), "\n")
		for i, line := range lines {
			m := reference.FindStringSubmatch(line)
			if m == nil {
				continue
			}
			found++
			named := regexp.MustCompile(`tid ` + m[1] + `\b|\[` + m[1] + `\]`)
			if screen := strings.Join(lines[max(0, i-23):i], "\n"); !named.MatchString(screen) {
				t.Fatalf("%+v: %q leads nowhere:\n%s", o, line, screen)
			}
		}
	}
	for _, st := range stories {
		for _, by := range groupings() {
			o := st.o
			o.GroupBy = by
			check(st.build(), o)
		}
	}
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 6))
		s, o := randomSelection(r)
		o.Width = 0
		check(s, o)
	}
	if found < 50 {
		t.Errorf("only %d references", found)
	}
}

// Forty processes with one stack are one group, which has all their pids, under every grouping but
// that by task.
func TestAlikeProcessesAreOneGroup(t *testing.T) {
	for _, by := range groupings() {
		text := textOf(t, workers(), Options{GroupBy: by})
		one := strings.Contains(text, "\n40 threads of 40 tasks: sleeping") || strings.Contains(text, "\n42 threads of 42 tasks: sleeping")
		if one == (by == ByTask) {
			t.Errorf("by %s: one group: %v\n%s", by, one, text)
		}
		for _, pid := range []string{"3000", "3042", "3078"} {
			if !regexp.MustCompile(`\b` + pid + `\b`).MatchString(text) {
				t.Errorf("by %s: pid %s is not in the text", by, pid)
			}
		}
	}
}
