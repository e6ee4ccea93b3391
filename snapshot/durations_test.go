package snapshot

import (
	"testing"
	"time"

	"stackshot/internal/clock"
	"stackshot/internal/engine"
	"stackshot/internal/testneed"
	"stackshot/internal/testtask"
	"stackshot/kcdata"
)

// The durations of one capture fit into each other, in the result and in the
// file, with one try and with several.
func TestDurationsAreConsistent(t *testing.T) {
	testneed.Lab(t, testneed.Time)
	testneed.Slow(t)
	requireBPF(t)
	testtask.Start(t, testtask.Bystanders(150), testtask.ManyThreads(50))
	for _, o := range []Options{{}, {CPUs: "0"}, {Buffer: engine.MinBuffer}} {
		o.Engine = EnginePull
		var res *Result
		var snap *kcdata.Snapshot
		var before, after int64
		for range 5 { // what others start meanwhile may not fit the first estimate
			before = clock.Nanotime()
			res, snap, _ = takeWhole(t, o, Request{})
			if after = clock.Nanotime(); (o.Buffer != 0) == (res.Tries > 1) {
				break
			}
		}
		if (o.Buffer != 0) != (res.Tries > 1) {
			t.Errorf("%+v: %d tries", o, res.Tries)
		}
		wantOrder(t, o, "arrival + window + release, stopped, elapsed, wall",
			res.Arrival+res.Window+res.Release, res.Stopped, res.Elapsed, time.Duration(after-before))
		wantOrder(t, o, "nothing, census, window", 1, res.Census, res.Window)
		if sum := res.Arrival + res.Window + res.Release; res.Tries == 1 && res.Stopped-sum > slow(5*time.Millisecond) {
			t.Errorf("%+v: stopped for %v, of which %v are told", o, res.Stopped, sum)
		}
		if res.Stopped > defaultMaxPause+slow(50*time.Millisecond) {
			t.Errorf("%+v: stopped for %v, bound %v", o, res.Stopped, defaultMaxPause)
		}
		wantSameDurations(t, res, snap)
		wantCPUTimes(t, snap, before, after)
	}
}

func wantOrder(t *testing.T, o Options, what string, ds ...time.Duration) {
	t.Helper()
	for i := 1; i < len(ds); i++ {
		if ds[i-1] > ds[i] {
			t.Errorf("%+v: %s: %v, want an ascending row", o, what, ds)
			return
		}
	}
}

func wantSameDurations(t *testing.T, res *Result, snap *kcdata.Snapshot) {
	t.Helper()
	c := &snap.Capture
	for what, d := range map[string][2]time.Duration{
		"stopped": {res.Stopped, time.Duration(c.StoppedNs)}, "window": {res.Window, time.Duration(c.WindowNs)},
		"arrival": {res.Arrival, time.Duration(c.ArrivalNs)}, "release": {res.Release, time.Duration(c.ReleaseNs)},
		"census": {res.Census, time.Duration(c.CensusNs)}, "elapsed": {res.Elapsed, time.Duration(c.ElapsedNs)},
	} {
		if d[0] != d[1] {
			t.Errorf("%s: %v in the result, %v in the file", what, d[0], d[1])
		}
	}
	if int(c.Tries) != res.Tries || int(c.StopBroken) != res.StopBroken || int(c.LeftOut) != kcdata.LeftOutTasks(res.LeftOut) || int(c.Vanished) != res.Vanished {
		t.Errorf("capture %+v, result %+v", c, res)
	}
	if d := snap.Duration; d == nil || d.Duration != c.WindowNs || d.Outer != c.ElapsedNs || (d.Prior > 0) != (c.Tries > 1) {
		t.Errorf("duration record %+v, capture %+v", d, c)
	}
	if res.BufferUsed > res.BufferSize || res.BufferUsed == 0 || res.Overhead > res.BufferUsed {
		t.Errorf("buffer of %d bytes, %d used, %d overhead", res.BufferSize, res.BufferUsed, res.Overhead)
	}
}

// wantCPUTimes holds the times of each CPU against those of the whole.
func wantCPUTimes(t *testing.T, snap *kcdata.Snapshot, before, after int64) {
	t.Helper()
	c := &snap.Capture
	var first, last, left uint64
	first = ^uint64(0)
	for _, cpu := range snap.CPUs {
		if cpu.Flags&kcdata.CPUStopped == 0 {
			continue
		}
		first, last, left = min(first, cpu.ArriveNs), max(last, cpu.ArriveNs), max(left, cpu.ReleaseNs)
		if cpu.ArriveNs < c.StopNs || cpu.ReleaseNs < cpu.ArriveNs || cpu.ReleaseNs > c.StopNs+c.StoppedNs {
			t.Errorf("CPU %d arrived at %d and left at %d; the stop began at %d and all stops took %d",
				cpu.CPU, cpu.ArriveNs, cpu.ReleaseNs, c.StopNs, c.StoppedNs)
		}
		if cpu.Flags&kcdata.CPURanKnown != 0 && (cpu.RqClockAt > cpu.ArriveNs || cpu.RqClockAt < uint64(before) || cpu.RqClock == 0) {
			t.Errorf("CPU %d: runqueue clock %d read at %d, arrived at %d", cpu.CPU, cpu.RqClock, cpu.RqClockAt, cpu.ArriveNs)
		}
		if span := cpu.ReleaseNs - cpu.ArriveNs; cpu.QueueNs > span {
			t.Errorf("CPU %d waited %d ns on the queue in a window of %d", cpu.CPU, cpu.QueueNs, span)
		}
	}
	if last-first != c.ArrivalNs || c.StopNs < uint64(before) || left > uint64(after) {
		t.Errorf("first arrival %d, last %d, arrival %d; stop at %d, last left at %d, taken from %d to %d",
			first, last, c.ArrivalNs, c.StopNs, left, before, after)
	}
}

// Where nothing was stopped, nothing says it was.
func TestProcfsStopsNothing(t *testing.T) {
	testneed.Live(t)
	res, snap, _ := take(t, Options{Engine: EngineProcfs}, Request{})
	if res.Stopped != 0 || res.Window != 0 || res.Arrival != 0 || res.Release != 0 || res.Isolation != IsolationNone ||
		len(res.CPUs.Stopped) != 0 || res.Elapsed <= 0 {
		t.Errorf("result %+v", res)
	}
	if snap.Capture.StoppedNs != 0 || snap.Isolation != IsolationNone || snap.Engine != EngineProcfs {
		t.Errorf("capture %+v, isolation %s, engine %s", snap.Capture, snap.Isolation, snap.Engine)
	}
}
