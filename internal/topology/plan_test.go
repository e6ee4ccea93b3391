package topology

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
)

// checkPlan holds a plan against invariants 2 to 5.
func checkPlan(t *testing.T, p *Plan) {
	t.Helper()
	all := normalize(append(slices.Clone(p.Stop), p.Left...))
	if len(all) != len(p.Stop)+len(p.Left) || !slices.Equal(all, p.Topology.Online()) {
		t.Errorf("invariant 2: stop %v, left %v, online %v", p.Stop, p.Left, p.Topology.Online())
	}
	if len(p.Work) == 0 || len(intersect(p.Work, p.Stop)) != len(p.Work) || !slices.Contains(p.Work, p.Main) {
		t.Errorf("invariant 3: stop %v, work %v, main %d", p.Stop, p.Work, p.Main)
	}
	for _, id := range all {
		if left := slices.Contains(p.Left, id); left != (p.Why(id) != 0) || left != (p.Why(id).String() != "") {
			t.Errorf("invariant 4: CPU %d left running %v for %q", id, left, p.Why(id))
		}
		if c, _ := p.Topology.CPU(id); !slices.Contains(p.Topology.Clusters[c.Cluster].CPUs, id) {
			t.Errorf("CPU %d is not in its cluster %d", id, c.Cluster)
		}
	}
	for _, list := range [][]int{p.Stop, p.Work, p.Left} {
		if !slices.IsSorted(list) {
			t.Errorf("invariant 5: %v does not ascend", list)
		}
	}
	if p.Topology.AMP && p.Kind(p.Main) == KindE && slices.ContainsFunc(p.Work, func(c int) bool { return p.Kind(c) == KindP }) {
		t.Errorf("main CPU %d is an E core, work %v has P cores", p.Main, p.Work)
	}
}

func TestPlan(t *testing.T) {
	for _, c := range []struct {
		machine          string
		o                Options
		stop, work, left string
		main             int
		why              Reason // of the first CPU left
	}{
		{"smp4", Options{Initiator: 2}, "0-3", "0-3", "", 2, 0},
		{"smp4", Options{Initiator: -1}, "0-3", "0-3", "", 0, 0},
		{"smp4", Options{Cpus: "1,3", Initiator: 3}, "0-3", "1,3", "", 3, 0},
		{"smp4", Options{Cpus: "1,3", Initiator: 0}, "0-3", "1,3", "", 1, 0},
		{"smp4", Options{Allowed: []int{1, 2}, Initiator: 1}, "1-2", "1-2", "0,3", 1, NotAllowed},
		{"offline1", Options{Cpus: "2-3"}, "0,2-3", "2-3", "", 2, 0},
		{"isolated", Options{}, "0-1", "0-1", "2-3", 0, Isolated | NohzFull},
		{"isolated", Options{StopIsolated: true, Cpus: "2"}, "0-3", "2", "", 2, 0},
		{"isolated", Options{StopIsolated: true, Allowed: []int{0, 1, 2}}, "0-2", "0-2", "3", 0, NotAllowed},
		{"isolated", Options{Allowed: []int{0}}, "0", "0", "1-3", 0, NotAllowed},
		{"partitioned", Options{}, "0-2", "0-2", "3", 0, Partition},
		{"hybrid", Options{Initiator: 6}, "0-7", "0-7", "", 0, 0},
		{"hybrid", Options{Initiator: 3}, "0-7", "0-7", "", 3, 0},
		{"hybrid", Options{Cpus: "2-7", Initiator: 0}, "0-7", "2-7", "", 2, 0},
		{"hybrid", Options{Cpus: "4-6", Initiator: 5}, "0-7", "4-6", "", 5, 0},
		{"bigLittle", Options{Initiator: 1}, "0-5", "0-5", "", 4, 0},
	} {
		p, err := read(t, machines[c.machine]()).Plan(c.o)
		if err != nil {
			t.Errorf("%s %+v: %v", c.machine, c.o, err)
			continue
		}
		checkPlan(t, p)
		stop, work, left := FormatCPUList(p.Stop), FormatCPUList(p.Work), FormatCPUList(p.Left)
		if stop != c.stop || work != c.work || left != c.left || p.Main != c.main {
			t.Errorf("%s %+v: stop %s work %s left %s main %d", c.machine, c.o, stop, work, left, p.Main)
		}
		if len(p.Left) > 0 && p.Why(p.Left[0]) != c.why {
			t.Errorf("%s %+v: CPU %d left for %q", c.machine, c.o, p.Left[0], p.Why(p.Left[0]))
		}
	}
}

func TestPlanErrorsNameTheValue(t *testing.T) {
	for _, c := range []struct {
		machine string
		o       Options
		want    error
		text    string
	}{
		{"offline1", Options{Cpus: "0-1"}, ErrOffline, "--cpus: CPU 1 is offline"},
		{"smp4", Options{Cpus: "9"}, ErrNotPresent, "--cpus: CPU 9 does not exist"},
		{"smp4", Options{Cpus: "3", Allowed: []int{0, 1}}, ErrNotAllowed, "--cpus: CPU 3 is outside the CPUs this process may use"},
		{"isolated", Options{Cpus: "1-2"}, ErrIsolated, "--cpus: CPU 2 is isolated and left running; --stop-isolated takes it"},
		{"smp4", Options{Cpus: "0,x-2"}, ErrBadList, `--cpus: bad CPU list: "x-2"`},
		{"smp4", Options{Cpus: " "}, ErrBadList, `--cpus: bad CPU list: " " names no CPU`},
		{"smp4", Options{Allowed: []int{}}, ErrNoneToStop, "no CPU can be stopped: CPUs 0-3 are left running (outside the CPUs this process may use)"},
		{"offline1", Options{CPUClass: "0-3=P"}, ErrOffline, "--cpu-class: CPU 1 is offline"},
		{"smp4", Options{CPUClass: "0-2=P"}, ErrNoClass, "--cpu-class: CPU 3 has no class; name every online CPU"},
		{"smp4", Options{CPUClass: "0-3=X"}, ErrBadClass, `--cpu-class: "0-3=X": want CPU=P or CPU=E`},
		{"smp4", Options{CPUClass: "0-3=P,3=E"}, ErrBadClass, "--cpu-class: CPU 3 is named twice: want CPU=P or CPU=E"},
		{"smp4", Options{CPUClass: "0-3"}, ErrBadClass, `--cpu-class: "0-3": want CPU=P or CPU=E`},
		{"smp4", Options{CPUClass: "0-3=P,8=E"}, ErrNotPresent, "--cpu-class: CPU 8 does not exist"},
		{"smp4", Options{CPUClass: "z=P"}, ErrBadList, `--cpu-class: bad CPU list: "z"`},
	} {
		p, err := read(t, machines[c.machine]()).Plan(c.o)
		if p != nil || !errors.Is(err, c.want) || err.Error() != c.text {
			t.Errorf("%s %+v: %v, want %q", c.machine, c.o, err, c.text)
		}
	}
}

// --cpu-class makes any machine AMP, splits its clusters, and leaves the
// topology it started from as it was.
func TestCPUClassOverride(t *testing.T) {
	top := read(t, twoSocket())
	p, err := top.Plan(Options{CPUClass: "0-1=P,2-3=e", Initiator: 3})
	if err != nil {
		t.Fatal(err)
	}
	checkPlan(t, p)
	checkTopology(t, p.Topology)
	if !p.Topology.AMP || len(p.Topology.Clusters) != 4 || p.Main != 0 || p.Kind(2) != KindE {
		t.Errorf("%+v main %d", p.Topology, p.Main)
	}
	if top.AMP || len(top.Clusters) != 2 {
		t.Errorf("the machine itself changed: %+v", top)
	}
	p, err = read(t, hybrid()).Plan(Options{CPUClass: "0-7=E", Initiator: 5})
	if err != nil {
		t.Fatal(err)
	}
	if p.Topology.AMP || p.Kind(5) != KindSMP || p.Main != 5 {
		t.Errorf("one class alone is SMP: %+v main %d", p.Topology, p.Main)
	}
}

// Any options on any machine give a plan that holds its invariants, or an error.
func TestInvariants2To5OnRandomOptions(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	planned := 0
	for name, build := range machines {
		top := read(t, build())
		for range 300 {
			o := Options{StopIsolated: r.IntN(2) == 0, Initiator: r.IntN(10) - 1}
			if r.IntN(2) == 0 {
				o.Allowed = randomCPUs(r)
			}
			if r.IntN(2) == 0 {
				o.Cpus = FormatCPUList(randomCPUs(r))
			}
			p, err := top.Plan(o)
			if err != nil {
				continue
			}
			planned++
			checkPlan(t, p)
			if t.Failed() {
				t.Fatalf("%s %+v", name, o)
			}
		}
	}
	if planned < 500 {
		t.Errorf("only %d plans of %d came about", planned, 300*len(machines))
	}
}

func randomCPUs(r *rand.Rand) []int {
	cpus := []int{}
	for cpu := range 8 {
		if r.IntN(3) > 0 {
			cpus = append(cpus, cpu)
		}
	}
	return cpus
}
