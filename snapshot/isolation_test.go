package snapshot

import (
	"math"
	"slices"
	"testing"
	"time"

	"stackshot/internal/clock"
	"stackshot/internal/engine"
	"stackshot/internal/engine/stop"
	"stackshot/internal/testneed"
	"stackshot/internal/testtask"
	"stackshot/kcdata"
)

// The stop is real: on each CPU an ordinary process that asks the clock as fast
// as it can sees one gap, the window lies in it, at irqoff no interrupt does,
// and the file states the time that was missing.
func TestStopIsOneGapOnEachCPU(t *testing.T) {
	testneed.Lab(t, testneed.Time)
	testneed.Slow(t)
	needsRealCPUs(t)
	requireBPF(t)
	for _, engineName := range []string{EngineTrap, EnginePull} {
		t.Run(engineName, func(t *testing.T) {
			w := &witness{workers: map[int]int{}}
			s := openTest(t, Options{Engine: engineName, ArrivalBudget: slow(100 * time.Millisecond)}, engine.Hooks{
				BeforeWake: func() { w.Begin(t) },
			})
			testtask.Start(t, testtask.Bystanders(100), testtask.ManyThreads(200))
			w.hire(t, s)
			proveIsolation(t, s, w)
		})
	}
}

// undisturbedCaptures of a proof must be such that the gap can be held against
// the stated time; the other claims hold for every capture.
var (
	undisturbedCaptures = testneed.Length(10, 30)
	mostCaptures        = testneed.Length(100, 300)
)

// The file may state another time than the process saw: less by its way into the stop and
// out of it, and by what the kernel had to do there. apartMedian is for that, beside a part of
// the gap, and at least half of the captures keep to it. A single one also meets interrupts
// that are not ours, on its way in or out: a timer's takes up to 40 µs on some emulated
// hosts, at either end, and apartSingle has room for both.
const (
	apartPart   = 20 // of the gap, one in so many
	apartMedian = 20_000
	apartSingle = apartMedian + 100_000
)

const stamping = 40 * time.Millisecond // from before the wake: 3 ms to the stop, and time to see its end

func proveIsolation(t *testing.T, s *Session, w *witness) {
	var over, apart []float64 // gap less stated time; how far apart they are beyond a part of the gap, ns
	inside, stamped, disturbed := 0, 0, map[string]int{}
	for n := 0; len(over) < undisturbedCaptures; n++ {
		if n == mostCaptures {
			notLeftAlone(t, n, len(over), disturbed)
			break
		}
		time.Sleep(5 * time.Millisecond)
		stolen := stealTicks(t)
		res, snap, _ := captureWhole(t, s, Request{})
		sees := w.Look(t, snap)
		inside += sees.interrupts
		if res.Isolation == IsolationIRQOff && sees.interrupts > 0 {
			t.Errorf("at irqoff %d interrupts inside the window", sees.interrupts)
		}
		if stealTicks(t) != stolen {
			sees.disturbed = "time was stolen"
		}
		if sees.disturbed != "" || res.Tries > 1 || res.StopBroken > 0 {
			disturbed[sees.disturbed]++
			continue
		}
		stamped += sees.stamped
		d := sees.gap - int64(res.Stopped)
		over, apart = append(over, float64(d)), append(apart, float64(max(d, -d)-sees.gap/apartPart))
		if apart[len(apart)-1] > apartSingle {
			t.Errorf("the CPUs were away for %d ns, stated are %d: apart by %d", sees.gap, int64(res.Stopped), d)
		}
	}
	slices.Sort(apart)
	if m := median(apart); m > apartMedian {
		t.Errorf("gap and stated time are apart by a %dth of the gap and %.0f ns (median), at most %d are allowed", apartPart, m, apartMedian)
	}
	if s.engine.Caps().Isolation != IsolationIRQOff && inside == 0 {
		t.Errorf("at %s no interrupt in any window: is the witness asleep?", s.engine.Caps().Isolation)
	}
	slices.Sort(over)
	if stamped == 0 {
		t.Error("no end of any gap was a stamp")
	}
	t.Logf("%s, %s: gap less stated time, ns: min %.0f median %.0f p90 %.0f max %.0f; %d of %d ends are stamps; interrupts in windows %d; not comparable %v",
		s.engine.Caps().Name, s.engine.Caps().Isolation, over[0], median(over), quantile(over, 0.9), over[len(over)-1],
		stamped, 2*len(s.plan.Stop)*len(over), inside, disturbed)
}

// A witness is what looks at the CPUs beside the engine.
type witness struct {
	stamps  *testtask.Stampers
	trace   *machineTrace
	workers map[int]int // tid by CPU
}

func (w *witness) hire(t *testing.T, s *Session) {
	w.trace = traceMachine(t, possibleCPUs(s.plan))
	w.stamps = testtask.Stamp(t, s.plan.Stop...)
	for _, k := range s.team.Workers {
		w.workers[k.CPU] = k.Tid
	}
}

// Begin has the witness look on for a while.
func (w *witness) Begin(t *testing.T) {
	until := clock.Nanotime() + int64(stamping)
	for cpu, worker := range w.workers {
		w.trace.watch(t, cpu, worker, w.stamps.On(cpu).Pid, until)
	}
	w.stamps.Run(stamping)
}

// A sighting is what the witness has of one capture.
type sighting struct {
	gap        int64  // first CPU away to last CPU back
	stamped    int    // ends of that time, two per CPU, which are stamps
	interrupts int    // inside the window, on all CPUs
	disturbed  string // why the gap is not the stop's alone; "": it is
}

// Look holds the claims about stamps against one file.
func (w *witness) Look(t *testing.T, snap *kcdata.Snapshot) (s sighting) {
	t.Helper()
	var first, last int64
	from, to := window(snap)
	for _, c := range snap.CPUs {
		if c.Flags&kcdata.CPUStopped == 0 {
			continue
		}
		cpu := int(c.CPU)
		g := w.oneGap(t, cpu, int64(c.ArriveNs), int64(c.ReleaseNs))
		if g.End == math.MaxInt64 {
			g.End = int64(c.ReleaseNs) + int64(stamping)
		}
		events, _ := w.trace.on(t, cpu, from, to)
		s.interrupts += len(slices.DeleteFunc(events, traced.isSwitch))
		away, stamped, ok := w.away(t, &c, g)
		if !ok {
			s.disturbed = "it came late"
		} else if w.hostPaused(t, cpu, g) {
			s.disturbed = "the host paused"
		}
		first, last, s.stamped = stop.Earlier(first, away.Start), max(last, away.End), s.stamped+stamped
	}
	s.gap = last - first
	return s
}

// window is where the file says that the window was: it ends with the first
// release.
func window(snap *kcdata.Snapshot) (from, to int64) {
	for _, c := range snap.CPUs {
		if c.Flags&kcdata.CPUStopped != 0 {
			to = stop.Earlier(to, int64(c.ReleaseNs))
		}
	}
	return to - int64(snap.Capture.WindowNs), to
}

// oneGap is the one gap of a CPU that has its whole stop in it: no stamp was
// made between arrival and release.
func (w *witness) oneGap(t *testing.T, cpu int, arrived, released int64) testtask.Gap {
	t.Helper()
	gaps, whole := w.stamps.Gaps(cpu, arrived, released)
	if !whole {
		t.Fatalf("CPU %d: the stamps of this stop are written over", cpu)
	}
	if len(gaps) != 1 || gaps[0].Start > arrived || gaps[0].End < released {
		t.Fatalf("CPU %d: stopped from %d to %d, its process was away in %v", cpu, arrived, released, gaps)
	}
	return gaps[0]
}

func (w *witness) switches(t *testing.T, cpu int, from, to int64) []traced {
	t.Helper()
	events, _ := w.trace.on(t, cpu, from, to)
	return slices.DeleteFunc(events, func(e traced) bool { return !e.isSwitch() })
}

// away is when the CPU did not do its own work, and how many of its two ends
// are stamps. Where another task ran between the stamper and our worker, the
// CPU's own work ends, or begins, with that one's switch. Not ok: the trace has
// not seen both switches.
func (w *witness) away(t *testing.T, c *kcdata.LinuxCPU, g testtask.Gap) (away testtask.Gap, stamped int, ok bool) {
	t.Helper()
	cpu := int(c.CPU)
	stamper, worker := w.stamps.On(cpu).Pid, w.workers[cpu]
	before := w.switches(t, cpu, g.Start, int64(c.ArriveNs))
	after := w.switches(t, cpu, int64(c.ReleaseNs), g.End)
	if len(before) == 0 || len(after) == 0 || before[len(before)-1].next != worker || after[0].prev != worker {
		return g, 0, false
	}
	away, stamped = g, 2
	if in := before[len(before)-1]; in.prev != stamper {
		away.Start, stamped = in.at, stamped-1
	}
	if out := after[0]; out.next != stamper {
		away.End, stamped = out.at, stamped-1
	}
	return away, stamped, true
}

// hostPaused says that the stamper of a CPU was kept from its work by no task
// switch, close to a gap.
func (w *witness) hostPaused(t *testing.T, cpu int, g testtask.Gap) bool {
	t.Helper()
	const around, pause = int64(2 * time.Millisecond), int64(50 * time.Microsecond)
	near, _ := w.stamps.Gaps(cpu, g.Start-around, g.End+around)
	return slices.ContainsFunc(near, func(o testtask.Gap) bool {
		return o.Start != g.Start && o.End-o.Start > pause && len(w.switches(t, cpu, o.Start, o.End)) == 0
	})
}
