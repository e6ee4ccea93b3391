package latency

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"stackshot/kcdata"
)

// naiveRank is the definition: the smallest value that is not exceeded by at
// least percent of all.
func naiveRank(values []uint64, percent int) uint64 {
	best, found := uint64(0), false
	for _, v := range values {
		n := 0
		for _, w := range values {
			if w <= v {
				n++
			}
		}
		if n*100 >= percent*len(values) && (!found || v < best) {
			best, found = v, true
		}
	}
	return best
}

func TestDistIsTheDefinition(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for n := range 260 {
		values := make([]uint64, n)
		for i := range values {
			values[i] = []uint64{r.Uint64N(5), r.Uint64N(1000), r.Uint64()}[r.IntN(3)]
		}
		want := Dist{Name: "x", Unit: UnitNs, Count: n}
		if n > 0 {
			want.P50, want.P90, want.P99, want.Max = naiveRank(values, 50), naiveRank(values, 90), naiveRank(values, 99), slices.Max(values)
		}
		r.Shuffle(n, func(i, j int) { values[i], values[j] = values[j], values[i] })
		if got := distOf("x", UnitNs, values, func(v *uint64) *uint64 { return v }); got != want {
			t.Fatalf("%d values: %+v, want %+v", n, got, want)
		}
	}
}

// randomPhases add up to less, exactly or more than their total.
func randomPhases(r *rand.Rand) kcdata.LinuxPhases {
	limit := []uint64{1, 100, 1e6, 1e9, 1 << 58}[r.IntN(5)]
	p := kcdata.LinuxPhases{CPU: r.Uint32N(300), Present: r.Uint32N(4), UnwindNs: r.Uint64N(limit), Cycles: r.Uint64(), Instrs: r.Uint64()}
	for _, f := range []*uint64{&p.EnterNs, &p.ArrivalNs, &p.HoldNs, &p.CensusNs, &p.QueueNs, &p.RecordNs, &p.DrainNs, &p.VerifyNs, &p.ReleaseNs, &p.ExitNs} {
		if r.IntN(4) > 0 {
			*f = r.Uint64N(limit)
		}
		p.TotalNs += *f
	}
	switch r.IntN(3) {
	case 0:
		p.TotalNs += r.Uint64N(limit)
	case 1:
		p.TotalNs -= r.Uint64N(p.TotalNs + 1)
	}
	return p
}

// TestPhasesAddUp: per CPU and summed over the CPUs, phases and rest are the
// total, and each sum is that of its column.
func TestPhasesAddUp(t *testing.T) {
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 2))
		s := &kcdata.Snapshot{HasCapture: true}
		for range r.IntN(6) {
			s.Phases = append(s.Phases, randomPhases(r))
		}
		p := pauseOf(s)
		if len(s.Phases) == 0 {
			if p.Sum != nil || p.Cost != nil {
				t.Fatalf("no phases, but a sum %+v", p.Sum)
			}
			continue
		}
		var columns [len(phases)]uint64
		total := uint64(0)
		for i := range p.Phases {
			c := &p.Phases[i]
			sum := uint64(0)
			for j, ns := range c.list() {
				columns[j] += ns
				sum += ns
			}
			total += c.TotalNs
			if sum+uint64(c.RestNs) != c.TotalNs {
				t.Fatalf("seed %d: CPU %d: %d of phases and %d of rest are not %d", seed, c.CPU, sum, c.RestNs, c.TotalNs)
			}
		}
		if p.Sum.list() != columns || p.Sum.TotalNs != total {
			t.Fatalf("seed %d: sum %+v, want %v and %d", seed, *p.Sum, columns, total)
		}
	}
}

// TestBarIsToScale: a bar has its width exactly, its letters in the order of the
// phases, and each letter as many cells as its share, to within one.
func TestBarIsToScale(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 3))
		record := randomPhases(r)
		c := phasesOf(&record)
		cells := 1 + r.IntN(200)
		longest := c.extent() + r.Uint64N(c.extent()+1)
		if longest == 0 {
			continue
		}
		bar := c.bar(cells, longest)
		if len(bar) != cells {
			t.Fatalf("seed %d: %d cells, want %d: %q", seed, len(bar), cells, bar)
		}
		rest := bar
		for i, ns := range c.list() {
			n := len(rest)
			rest = strings.TrimLeft(rest, string(phases[i].letter))
			n -= len(rest)
			if want := float64(cells) * float64(ns) / float64(longest); math.Abs(float64(n)-want) > 1.001 {
				t.Fatalf("seed %d: %s has %d cells, want %.1f: %q", seed, phases[i].name, n, want, bar)
			}
		}
		if strings.Trim(rest, "? ") != "" || strings.Contains(rest, " ?") {
			t.Fatalf("seed %d: letters out of order: %q", seed, bar)
		}
	}
}

// TestTriesLost: every try but the last is lost, whatever the last came to.
func TestTriesLost(t *testing.T) {
	for n := range 6 {
		r := rand.New(rand.NewPCG(uint64(n), 4))
		s := &kcdata.Snapshot{HasCapture: true, Capture: kcdata.LinuxCapture{Tries: uint32(n)}}
		lost, between := uint64(0), uint64(0)
		for i := range n {
			try := kcdata.LinuxTry{Outcome: r.Uint32N(6), StoppedNs: r.Uint64N(1e9), RestNs: r.Uint64N(1e9)}
			if i < n-1 {
				lost, between = lost+try.StoppedNs, between+try.RestNs
			}
			s.Tries = append(s.Tries, try)
		}
		p := pauseOf(s)
		if n == 0 {
			if p.LostNs != nil {
				t.Errorf("no try at all, but %d ns lost", *p.LostNs)
			}
			continue
		}
		if *p.LostNs != lost || *p.BetweenNs != between || len(p.Tries) != n {
			t.Errorf("%d tries: lost %d between %d, want %d and %d", n, *p.LostNs, *p.BetweenNs, lost, between)
		}
		if s.Tries = nil; n > 1 && pauseOf(s).LostNs != nil {
			t.Errorf("%d tries without records: what they cost is not known", n)
		}
	}
}

// randomThreads makes a machine of any states, stamps and lacks.
func randomThreads(r *rand.Rand) *kcdata.Snapshot {
	s := &kcdata.Snapshot{HasCapture: true, Timebase: &kcdata.Timebase{Numer: 1, Denom: 1}, Symbols: kcdata.NewSymbolTable(nil, "")}
	s.Capture.StopNs = stop
	for n := range uint32(3) {
		s.CPUs = append(s.CPUs, kcdata.LinuxCPU{CPU: n, RqClock: stop - uint64(n)*second, RqClockAt: stop * uint64(r.IntN(2))})
	}
	tid := uint64(0)
	for pid := range uint64(r.IntN(9)) {
		t := &kcdata.Task{ID: pid, Name: "t", HasLinux: true}
		if r.IntN(6) == 0 {
			t.Linux.Present = kcdata.TaskIsSelf
		}
		for range r.IntN(9) {
			tid++
			th := &kcdata.Thread{ID: tid, HasLinux: r.IntN(8) > 0, Kernel: []uint64{1}}
			th.Linux = kcdata.LinuxThread{
				Present: r.Uint64() & 0x1ffff &^ (kcdata.ThreadIsIdle | kcdata.ThreadIsSelf), CPU: r.Uint32N(4), OnCPU: r.Uint32N(2),
				State: []uint32{0, 0, 1, 2, 0x402, 0x200}[r.IntN(6)], LastArrival: r.Uint64N(2 * stop), LastQueued: r.Uint64N(2*stop) * uint64(r.IntN(2)),
				ExecStart: r.Uint64N(2 * stop), RunDelay: r.Uint64N(1e12), Pcount: r.Uint64N(3),
			}
			if r.IntN(5) == 0 {
				th.Linux.Present |= []uint64{kcdata.ThreadIsIdle, kcdata.ThreadIsSelf}[r.IntN(2)]
			}
			if r.IntN(2) == 0 {
				th.Latency = &kcdata.LatencyThread{CurThsnap1: r.Uint64N(1e6), KernelStack: r.Uint64N(1e6), Misc: r.Uint64N(9), UserStack: r.Uint64N(9)}
			}
			t.Threads = append(t.Threads, th)
		}
		if r.IntN(2) == 0 {
			t.Latency = &kcdata.LatencyTask{Setup: r.Uint64N(1e6), Misc2: r.Uint64N(1e6)}
		}
		s.Tasks = append(s.Tasks, t)
	}
	return s
}

// TestSchedAccountsForEveryThread: looked at or left out; of a known age or an
// unknown one; the longest first, and none longer than the greatest.
func TestSchedAccountsForEveryThread(t *testing.T) {
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 5))
		s := randomThreads(r)
		top := 1 + r.IntN(12)
		only := map[*kcdata.Thread]bool{}
		for _, task := range s.Tasks {
			for _, th := range task.Threads {
				only[th] = seed%2 == 0 || r.IntN(3) == 0
			}
		}
		f := schedOf(s, top, func(th *kcdata.Thread) bool { return only[th] })
		if f.Threads+f.SelfLeft+f.IdleLeft+f.NotAsked != s.ThreadCount() || seed%2 == 0 && f.NotAsked > 0 {
			t.Fatalf("seed %d: %d looked at, %d, %d and %d left out of %d", seed, f.Threads, f.SelfLeft, f.IdleLeft, f.NotAsked, s.ThreadCount())
		}
		if f.RunDelay.Known > f.Threads || len(f.RunDelay.Top) != min(top, f.RunDelay.Known) || !slices.IsSortedFunc(f.RunDelay.Top, func(a, b ThreadDelay) int { return cmp.Compare(b.TotalNs, a.TotalNs) }) {
			t.Fatalf("seed %d: run delays %+v", seed, f.RunDelay)
		}
		for _, a := range []*Ages{&f.Waiting, &f.Blocked, &f.Sleeping} {
			checkAges(t, a, top)
		}
	}
}

// everything asks for all threads.
func everything(*kcdata.Thread) bool { return true }

func checkAges(t *testing.T, a *Ages, top int) {
	t.Helper()
	if a.Dist.Count+a.Unknown != a.Threads || len(a.Longest) > top {
		t.Fatalf("%s: %d known and %d unknown of %d, %d listed", a.Dist.Name, a.Dist.Count, a.Unknown, a.Threads, len(a.Longest))
	}
	last := uint64(math.MaxUint64)
	for i, e := range a.Longest {
		switch {
		case !e.age.Known && i < a.Dist.Count:
			t.Fatalf("%s: an unknown age before a known one", a.Dist.Name)
		case e.age.Known && (e.age.Ns > last || e.age.Ns > a.Dist.Max):
			t.Fatalf("%s: %d after %d, greatest %d", a.Dist.Name, e.age.Ns, last, a.Dist.Max)
		case e.AtMostNs != nil && e.AboutNs != nil:
			t.Fatalf("%s: an age both at most and about", a.Dist.Name)
		case e.age.Known:
			last = e.age.Ns
		}
	}
}

// TestCostsHoldTheirParts: every part is in the total, in ns of the file's own
// time base, and the slowest come first.
func TestCostsHoldTheirParts(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 6))
		s := randomThreads(r)
		s.Timebase.Numer, s.Timebase.Denom = 1+r.Uint32N(200), 1+r.Uint32N(9)
		tasks, threads := costsOf(s, 5, everything)
		measured := 0
		for _, task := range s.Tasks {
			if task.Latency == nil {
				continue
			}
			measured++
			ns := func(v uint64) uint64 { return v * uint64(s.Timebase.Numer) / uint64(s.Timebase.Denom) }
			if want := ns(task.Latency.Setup) + ns(task.Latency.Misc2); want > 0 && tasks.Dists[0].Max < want {
				t.Fatalf("seed %d: a task took %d ns, the greatest is %d", seed, want, tasks.Dists[0].Max)
			}
		}
		if tasks.Measured != measured || (measured > 0) != (len(tasks.Dists) > 0) {
			t.Fatalf("seed %d: %d tasks measured, want %d", seed, tasks.Measured, measured)
		}
		for i, c := range threads.Slowest {
			if c.TotalNs != c.HeadNs+c.StackNs+c.RestNs+c.ItemsNs+c.OtherNs || i > 0 && c.TotalNs > threads.Slowest[i-1].TotalNs {
				t.Fatalf("seed %d: %+v", seed, c)
			}
		}
		s.Timebase = nil
		if tasks, threads := costsOf(s, 5, everything); tasks.Measured+threads.Measured != 0 {
			t.Fatal("without a time base a tick is of no known length")
		}
	}
}
