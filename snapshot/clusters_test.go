package snapshot

import (
	"slices"
	"testing"
	"time"

	"stackshot/internal/engine"
	"stackshot/internal/testneed"
	"stackshot/internal/testtask"
	"stackshot/internal/topology"
	"stackshot/kcdata"
)

// oddTasks alternates tasks for the two queues, so that neither comes first in
// the census: a hard one of 20 threads, four easy ones of one.
func oddTasks() (kinds []testtask.Kind) {
	for range 24 {
		kinds = append(kinds, testtask.ManyThreads(20), testtask.Bystanders(4))
	}
	return kinds
}

const hardTask = 10 // threads from which a task is hard

// On a machine of P and E cores a P core leads, P cores take hard tasks first
// and E cores easy ones, as the records of the capture say.
func TestPAndECores(t *testing.T) {
	testneed.Live(t)
	top := machine(t)
	if !top.AMP {
		t.Skip("needs a machine of P and E cores")
	}
	forEngines(t, func(t *testing.T, engine string) { wantPAndE(t, Options{Engine: engine}) })
}

// The same of a machine that is said to be one.
func TestPAndEClasses(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	requireTwoCPUs(t)
	forEngines(t, func(t *testing.T, engine string) {
		wantPAndE(t, Options{Engine: engine, CPUClass: everyCPU(t, "P", "E")})
	})
}

func wantPAndE(t *testing.T, o Options) {
	t.Helper()
	f := testtask.Start(t, oddTasks()...)
	if timeFactor > 1 {
		o.MaxPause = time.Minute // who takes what is asked here, not how long
	}
	s := session(t, o)
	var loads [3]load
	for n := 0; n < 20 && (n < 4 || !loads[topology.KindP].harder(loads[topology.KindE])); n++ {
		_, snap, _ := captureWhole(t, s, Request{Pids: pidsOf(f), Trace: true})
		for _, c := range snap.CPUs {
			if c.Flags&kcdata.CPUMain != 0 && (c.Kind != kcdata.CPUKindP || int32(c.CPU) != snap.Latency.MainCPU) {
				t.Errorf("main is %+v; by the latency record it is CPU %d", c, snap.Latency.MainCPU)
			}
			loads[c.Kind].Add(c)
			wantQueueOrder(t, snap, c)
		}
		for _, p := range snap.Phases {
			if c, _ := snap.CPU(p.CPU); (p.CensusNs > 0) != (c.Flags&kcdata.CPUMain != 0) {
				t.Errorf("census by %+v: %+v", c, p)
			}
		}
		for _, l := range snap.LatencyCPUs {
			if c, _ := snap.CPU(uint32(l.CPU)); l.ClusterType != int32(c.Kind) || l.TasksProcessed != uint64(c.Tasks) || l.ThreadsProcessed != uint64(c.Threads) {
				t.Errorf("%+v, %+v", l, c)
			}
		}
	}
	p, e := loads[topology.KindP], loads[topology.KindE]
	t.Logf("P cores: %+v, E cores: %+v", p, e)
	if !p.harder(e) || loads[topology.KindSMP] != (load{}) {
		t.Errorf("P cores recorded %+v, E cores %+v: want larger tasks on P", p, e)
	}
}

// load is what CPUs recorded.
type load struct{ tasks, threads int }

func (s *load) Add(c kcdata.LinuxCPU) {
	s.tasks, s.threads = s.tasks+int(c.Tasks), s.threads+int(c.Threads)
}

// harder: both did some of the work, and s twice as many threads a task.
func (s load) harder(o load) bool {
	return s.tasks > 0 && o.tasks > 0 && s.threads*o.tasks > 2*o.threads*s.tasks
}

// wantQueueOrder: once the census is done a queue that a CPU found empty stays
// so. A P core that has taken an easy task takes no hard one after it, an E core
// no easy one after a hard one. Only the CPU's own order counts: between a claim
// and its trace the CPU may be kept away.
func wantQueueOrder(t *testing.T, snap *kcdata.Snapshot, c kcdata.LinuxCPU) {
	t.Helper()
	var done uint64
	for _, e := range snap.Trace {
		if e.Place == kcdata.TraceCensus {
			done = e.AtNs
		}
	}
	if done == 0 {
		t.Fatal("the end of the census is not in the trace")
	}
	var taken, lanes []int
	for _, e := range snap.Trace {
		if e.CPU == c.CPU && e.Place == kcdata.TraceItem && e.AtNs > done {
			n := len(snap.Tasks[e.Datum].Threads)
			taken, lanes = append(taken, n), append(lanes, flagInt((n >= hardTask) == (c.Kind == kcdata.CPUKindE)))
		}
	}
	// The first may have been claimed before the census was done.
	if len(lanes) > 1 && !slices.IsSorted(lanes[1:]) {
		t.Errorf("CPU %d of kind %d took, by threads: %v", c.CPU, c.Kind, taken)
	}
}

// Where the CPUs at work are of one cluster, and its arena is too small, they
// go on in the other clusters' arenas, which the records say to the byte. A
// machine of one cluster has two when it is said to have P and E cores.
func TestSpillAcrossClusters(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	o := Options{StopIsolated: true}
	if len(machine(t).Clusters) < 2 {
		requireTwoCPUs(t)
		o.CPUClass = everyCPU(t, "P", "E")
	}
	plan, err := planCPUs(o)
	if err != nil {
		t.Fatal(err)
	}
	f := testtask.Start(t, testtask.Bystanders(60), testtask.ManyThreads(100))
	forEngines(t, func(t *testing.T, engineName string) {
		clusters := plan.Topology.Clusters
		for _, home := range clusters[:testneed.Length(1, len(clusters))] {
			o := o
			o.Engine, o.CPUs = engineName, topology.FormatCPUList(home.CPUs)
			_, snap, _ := takeWhole(t, o, Request{Pids: pidsOf(f)})
			need := 0
			for _, c := range snap.CPUs {
				need += int(c.Bytes)
			}
			// Every cluster has an equal share: three quarters of the records.
			o.Buffer = int64(engine.RoundUp(need*len(clusters)*3/4, 4096))
			spillFrom(t, o, home, pidsOf(f))
		}
	})
}

func spillFrom(t *testing.T, o Options, home topology.Cluster, pids []int) {
	t.Helper()
	s := session(t, o)
	res, snap, _ := captureWhole(t, s, Request{Pids: pids})
	wantArenas(t, snap, len(s.plan.Topology.Clusters))
	if !slices.Equal(res.CPUs.Working, home.CPUs) {
		t.Fatalf("CPUs %+v, want %v at work", res.CPUs, home.CPUs)
	}
	own := snap.Arenas[home.ID]
	if own.SpillOut == 0 || own.SpillIn != 0 || own.SpillOut != uint64(res.Spilled) {
		t.Errorf("%s, CPUs %v at work, %d tries: arenas %+v; spilled %d", o.Engine, home.CPUs, res.Tries, snap.Arenas, res.Spilled)
	}
	t.Logf("%s, CPUs %v at work: %d of %d bytes from other clusters", o.Engine, home.CPUs, res.Spilled, own.Used+uint64(res.Spilled))
}

// One process of 4,000 threads is recorded by all CPUs, each a share of it.
func TestOneLargeTaskIsSpread(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	requireTwoCPUs(t)
	const threads = 4000
	f := testtask.Start(t, testtask.ManyThreads(threads))
	s, _ := trapSession(t, Options{Latency: LatencyTask})
	fair := threads / len(s.plan.Stop)
	var least, most int
	for n := 0; n < 20; n++ {
		_, snap, _ := captureWhole(t, s, Request{Pids: pidsOf(f)})
		least, most = threads, 0
		var shares []int
		for _, c := range snap.CPUs {
			if c.Flags&kcdata.CPUWorked != 0 {
				shares = append(shares, int(c.Threads))
				least, most = min(least, int(c.Threads)), max(most, int(c.Threads))
			}
		}
		sum := 0
		for _, n := range shares {
			sum += n
		}
		if sum != threads || len(snap.Tasks) != 1 || len(snap.Tasks[0].Threads) != threads {
			t.Fatalf("CPUs recorded %v, %d threads of %d", shares, sum, threads)
		}
		t.Logf("window of %d µs: %v", snap.Capture.WindowNs/1000, shares)
		// A CPU whose real one was away in the window may have little.
		if least >= fair/4 {
			return
		}
	}
	t.Errorf("in no capture had every CPU a quarter of its fair share, %d threads; in the last %d to %d", fair, least, most)
}
