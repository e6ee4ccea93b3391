package snapshot

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"stackshot/internal/clock"
	"stackshot/internal/engine"
)

// A session that is asked twice within one RCU grace period waits for it: the
// switch hook cannot come back sooner. Nobody asks so often.
const requestRest = 20 * time.Millisecond

var stageNames = [engine.StageCount]string{"scope", "lock", "prepare", "attach", "quiet"}

// BenchmarkRequest measures, on an open session, what lies between a call of
// Take and the first CPU taken: p50 and p99 of each step and of the total, with
// and without the settling of the two-step wake, in turn. The total is without
// the wait for the machine's lock, which other captures make.
//
//	go test -run '^$' -bench Request -benchtime 100x ./snapshot
func BenchmarkRequest(b *testing.B) {
	for _, engine := range []string{EnginePull, EngineTrap} {
		b.Run(engine, benchRequest(engine, false))
		b.Run(engine+"-prompt", benchRequest(engine, true))
	}
}

func benchRequest(engineName string, prompt bool) func(*testing.B) {
	return func(b *testing.B) {
		requireBPF(b)
		times := requestTimes{}
		s, err := open(Options{Engine: engineName, Prompt: prompt, LockWait: time.Minute, ArrivalBudget: time.Second}, engine.Hooks{Reached: times.reached})
		if err != nil {
			b.Fatal(err)
		}
		defer s.Close()
		settled, direct := map[string][]float64{}, map[string][]float64{}
		for b.Loop() {
			times.Take(b, s, Request{}, settled)
			times.Take(b, s, Request{NoSettle: true}, direct)
		}
		for name, m := range map[string]map[string][]float64{"settled": settled, "direct": direct} {
			for what, v := range m {
				b.ReportMetric(median(v)/1e3, fmt.Sprintf("%s-%s-p50-µs", name, what))
				b.ReportMetric(quantile(v, 0.99)/1e3, fmt.Sprintf("%s-%s-p99-µs", name, what))
			}
		}
	}
}

// requestTimes are the moments of one request, CLOCK_MONOTONIC ns.
type requestTimes struct{ ends [engine.StageCount]int64 }

func (r *requestTimes) reached(s engine.Stage) { r.ends[s] = clock.Nanotime() }

// Take makes a capture and adds its times.
func (r *requestTimes) Take(b *testing.B, s *Session, req Request, into map[string][]float64) {
	b.Helper()
	var file bytes.Buffer
	req.Output = &file
	time.Sleep(requestRest)
	began := clock.Nanotime()
	res, err := s.Take(b.Context(), req)
	if err != nil {
		b.Fatal(err)
	}
	snap, err := parse(b, file.Bytes())
	if err != nil {
		b.Fatal(err)
	}
	if res.Tries > 1 { // the times of an earlier try are overwritten
		return
	}
	taken := int64(snap.Capture.StopNs)
	waited := r.ends[engine.StageLock] - r.ends[engine.StageScope] // others capture here too
	into["total"] = append(into["total"], float64(taken-began-waited))
	for i, name := range stageNames {
		into[name] = append(into[name], float64(r.ends[i]-began))
		began = r.ends[i]
	}
	into["wake"] = append(into["wake"], float64(taken-began))
}
