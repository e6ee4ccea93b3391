package snapshot

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"stackshot/internal/capture"
	"stackshot/internal/engine"
	"stackshot/internal/engine/stop"
	"stackshot/kcdata"
)

const (
	// A benchmark of one size ends after this long, with the rounds it has:
	// others may hold the machine's lock.
	roundsLimit = 75 * time.Second
	// A capture that was disturbed is taken again so often, with a rest; then
	// its round is dropped.
	roundTries = 5
	roundRest  = 50 * time.Millisecond
)

// errDisturbed is a capture that does not count: something is missing from it,
// a CPU did not come, or other tasks ran in the window.
var errDisturbed = errors.New("the capture was disturbed")

// sample is one measurement.
type sampleRow struct {
	ns      float64 // the machine stood still; of what stops nothing: all it took
	threads float64
	arrival float64 // ns, first to last CPU
	phases  []kcdata.LinuxPhases
	worked  []uint32 // CPUs that recorded
}

// entrant is one side of a comparison. measure is called with the machine's
// lock held; an error of kind errDisturbed has it called again.
type entrant struct {
	name    string
	measure func() (sampleRow, error)
	samples []sampleRow // one per whole round
}

// rounds measures entrants in turn, A B C A B C, so that both sides of a ratio
// are of the same moment of a machine whose speed drifts. Only whole rounds
// count. Each is made under the machine's lock: no capture of others falls
// between its sides.
type rounds struct {
	entrants []*entrant
	skipped  int // captures that did not count
	dropped  int // rounds that did not
}

// run makes one whole round per iteration of b while there is time, and reports
// how many there are.
func (r *rounds) run(b *testing.B) {
	b.Helper()
	until := time.Now().Add(roundsLimit)
	r.whole(b, until) // memory grows to what it needs
	for _, e := range r.entrants {
		e.samples = nil
	}
	for b.Loop() {
		r.whole(b, until)
	}
	if len(r.entrants[0].samples) == 0 {
		b.Fatalf("no round was whole in %v: %d captures were disturbed", roundsLimit, r.skipped)
	}
	b.ReportMetric(0, "ns/op") // says nothing: a round is all entrants
	b.ReportMetric(float64(len(r.entrants[0].samples)), "rounds")
	b.ReportMetric(float64(r.skipped), "skipped")
	b.ReportMetric(float64(r.dropped), "dropped")
}

// whole makes rounds until one counts.
func (r *rounds) whole(b *testing.B, until time.Time) {
	for time.Now().Before(until) && !r.round(b, until) {
	}
}

// round measures every entrant once. False: it does not count.
func (r *rounds) round(b *testing.B, until time.Time) bool {
	b.Helper()
	unlock, err := LockMachine(b.Context(), time.Until(until))
	if errors.Is(err, ErrBusy) {
		return false
	}
	if err != nil {
		b.Fatal(err)
	}
	defer unlock()
	got := make([]sampleRow, len(r.entrants))
	for i, e := range r.entrants {
		s, err := r.again(e)
		if errors.Is(err, errDisturbed) {
			r.dropped++
			return false
		}
		if err != nil {
			b.Fatalf("%s: %v", e.name, err)
		}
		got[i] = s
	}
	for i, e := range r.entrants {
		e.samples = append(e.samples, got[i])
	}
	return true
}

func (r *rounds) again(e *entrant) (s sampleRow, err error) {
	for range roundTries {
		if s, err = e.measure(); !errors.Is(err, errDisturbed) {
			return s, err
		}
		r.skipped++
		time.Sleep(roundRest)
	}
	return s, err
}

func (r *rounds) Of(name string) *entrant {
	i := slices.IndexFunc(r.entrants, func(e *entrant) bool { return e.name == name })
	return r.entrants[i]
}

// perThread are an entrant's times by round, ns per thread.
func (r *rounds) perThread(name string) []float64 {
	var out []float64
	for _, s := range r.Of(name).samples {
		out = append(out, s.ns/s.threads)
	}
	return out
}

// ratio is the median, over the rounds, of a's time for a thread by b's.
func (r *rounds) ratio(a, b string) float64 {
	return median(ratios(r.perThread(a), r.perThread(b)))
}

// reportRatio has it printed as a metric "a/b".
func (r *rounds) reportRatio(b *testing.B, over, under string) {
	b.ReportMetric(r.ratio(over, under), over+"/"+under)
}

// stopped is a session that captures the whole machine and writes no file.
func stopped(name string, s *Session) *entrant {
	return &entrant{name: name, measure: func() (sampleRow, error) {
		c, err := underLock(s)
		if errors.Is(err, engine.ErrNotStopped) {
			return sampleRow{}, errDisturbed
		}
		if err != nil {
			return sampleRow{}, err
		}
		if disturbed(c) {
			return sampleRow{}, errDisturbed
		}
		return sampleOf(c), nil
	}}
}

// underLock is Session.tries for a caller who holds the machine's lock.
func underLock(s *Session) (*capture.Raw, error) {
	sc, err := s.scope(Request{})
	if err != nil {
		return nil, err
	}
	j := engine.Job{Pids: sc.pids, Size: s.firstSize(sc), Pause: s.options.MaxPause, Settle: stop.Settle}
	for {
		c, err := s.engine.Capture(context.Background(), j)
		if err != nil {
			return nil, err
		}
		next, more := s.larger(j.Size, c)
		if !more {
			s.remember(sc, c)
			return c, nil
		}
		j.Size = next
		time.Sleep(restFactor * time.Duration(c.Capture.StoppedNs))
	}
}

func disturbed(c *capture.Raw) bool {
	missed := slices.ContainsFunc(c.CPUs, func(cpu kcdata.LinuxCPU) bool { return cpu.Flags&kcdata.CPUMissed != 0 })
	return missed || len(c.Failed) > 0 || c.RanShort || c.Capture.StopBroken > 0
}

func sampleOf(c *capture.Raw) sampleRow {
	s := sampleRow{ns: float64(c.Capture.StoppedNs), arrival: float64(c.Capture.ArrivalNs), phases: c.Phases}
	for _, r := range c.Recorded {
		s.threads += float64(r.Threads)
	}
	for _, cpu := range c.CPUs {
		if cpu.Flags&kcdata.CPUWorked != 0 {
			s.worked = append(s.worked, cpu.CPU)
		}
	}
	return s
}

func ratios(a, b []float64) []float64 {
	out := make([]float64, len(a))
	for i := range a {
		out[i] = a[i] / b[i]
	}
	return out
}

func median(v []float64) float64 { return quantile(v, 0.5) }

func quantile(v []float64, q float64) float64 {
	s := slices.Sorted(slices.Values(v))
	return s[min(int(q*float64(len(s))), len(s)-1)]
}
