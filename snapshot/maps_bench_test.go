package snapshot

import (
	"testing"
	"time"

	"stackshot/internal/bpf/bpftest"
	"stackshot/internal/engine"
)

// What it costs in the window to take every process's executable mappings, held
// against windows without, in turn.
func BenchmarkWindowMaps(b *testing.B) {
	requireBPF(b)
	for _, engineName := range []string{EnginePull, EngineTrap} {
		b.Run(engineName, func(b *testing.B) {
			var window, walk [2]float64
			processes, mappings := 0.0, 0.0
			sessions := [2]*Session{}
			for i := range sessions {
				sessions[i] = hooked(b, Options{Engine: engineName, ArrivalBudget: time.Second}, engine.Hooks{Specs: bpftest.Knobs{AllMaps: i == 1}})
			}
			for b.Loop() {
				for i, s := range sessions {
					_, snap, _ := captureWhole(b, s, Request{})
					window[i] += float64(snap.Capture.WindowNs)
					for _, task := range snap.Tasks {
						if w := task.MapWalk; w != nil {
							walk[i] += float64(w.WalkNs)
							processes++
							mappings += float64(w.Entries)
						}
					}
				}
			}
			b.ReportMetric(window[1]/window[0], "with/without")
			b.ReportMetric(walk[1]/processes/1000, "µs/process")
			b.ReportMetric(walk[1]/mappings, "ns/mapping")
		})
	}
}
