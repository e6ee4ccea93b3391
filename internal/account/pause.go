package account

import (
	"fmt"

	"stackshot/internal/show"
	"stackshot/kcdata"
)

// Pause says how long the machine stood still: kcdata.LinuxCapture. All durations but
// StoppedNs are those of the last try.
type Pause struct {
	Stopped    bool    `json:"stopped"`    // false: nothing was stopped, and the durations of a stop have no meaning
	StoppedNs  uint64  `json:"stopped_ns"` // all tries
	WindowNs   uint64  `json:"window_ns"`
	ArrivalNs  uint64  `json:"arrival_ns"` // arrival skew: first to last CPU
	ReleaseNs  uint64  `json:"release_ns"`
	CensusNs   uint64  `json:"census_ns"`
	ElapsedNs  uint64  `json:"elapsed_ns"`
	MaxPauseNs uint64  `json:"max_pause_ns"`
	ToStopNs   *uint64 `json:"request_to_stop_ns,omitempty"` // XNU's setup latency; nil: not measured
	StopBroken uint32  `json:"stop_broken"`
	LastCPU    *uint32 `json:"last_cpu,omitempty"` // who arrived last; nil: fewer than two were stopped
	CPUs       []Work  `json:"cpus"`               // those that were stopped
}

// PauseOf takes the pause from a file that has a kcdata.LinuxCapture. toStop is the time
// from the request to the stop, in ns; nil: it was not measured.
func PauseOf(s *kcdata.Snapshot, toStop *uint64) Pause {
	c := &s.Capture
	p := Pause{
		Stopped: c.StoppedNs > 0, StoppedNs: c.StoppedNs, WindowNs: c.WindowNs, ArrivalNs: c.ArrivalNs, ReleaseNs: c.ReleaseNs,
		CensusNs: c.CensusNs, ElapsedNs: c.ElapsedNs, MaxPauseNs: c.MaxPauseNs, StopBroken: c.StopBroken, ToStopNs: toStop,
	}
	p.CPUs, p.LastCPU = worksOf(s.CPUs)
	return p
}

// Full is the sentence of `stackshot latency`.
func (p *Pause) Full(m *Machine) string {
	if !p.Stopped {
		return "nothing was stopped; the capture took " + show.Duration(p.ElapsedNs)
	}
	skew := "arrival skew " + show.Fine(p.ArrivalNs)
	if p.LastCPU != nil {
		skew += fmt.Sprintf(" (CPU %d last)", *p.LastCPU)
	}
	s := fmt.Sprintf("stopped for %s, %d of %s; window %s, %s, census %s, release %s",
		show.Fine(p.StoppedNs), m.Stopped, show.Count(m.CPUs, "CPU"), show.Fine(p.WindowNs), skew, show.Fine(p.CensusNs), show.Fine(p.ReleaseNs))
	if p.ToStopNs != nil {
		s += "; request to stop " + show.Fine(*p.ToStopNs)
	}
	return s
}

// Broken says that the stop was broken; "" if it was not.
func Broken(times uint32) string {
	if times == 0 {
		return ""
	}
	return "the stop was broken " + show.Count(int(times), "time")
}

// BriefPause is the sentence of the report.
func BriefPause(s *kcdata.Snapshot) string {
	var out show.Parts
	if s.Panic != nil {
		out.Add("%s", PanicTitle(s))
		out.If(s.Capture.ElapsedNs > 0, "recorded in %s", show.Duration(s.Capture.ElapsedNs))
		out.Add("engine %s", show.Clean(s.Engine))
		return out.Join(", ")
	}
	if c := &s.Capture; s.HasCapture {
		tries := ""
		if c.Tries > 1 {
			tries = fmt.Sprintf(" in %d tries", c.Tries)
		}
		out.Add("stopped for %s%s", show.Duration(c.StoppedNs), tries)
		out.If(c.Vanished > 0, "%s ended meanwhile", show.Count(int(c.Vanished), "task"))
	}
	n := len(s.CPUs)
	out.If(n > 0, "%d of %s stopped", len(CPUsWith(s, kcdata.CPUStopped)), show.Count(n, "CPU"))
	out.If(s.Engine != "", "engine %s", show.Clean(s.Engine))
	out.If(s.Isolation != "", "isolation %s", show.Clean(s.Isolation))
	return out.Join(", ")
}

// CaptureJSON is the object of the report; nil if the file does not say how the capture
// went.
func CaptureJSON(s *kcdata.Snapshot) show.Object {
	c := &s.Capture
	if !s.HasCapture {
		return nil
	}
	return show.Object{
		{"engine", show.Known(show.Clean(s.Engine))}, {"isolation", show.Known(show.Clean(s.Isolation))},
		{"stopped_ns", c.StoppedNs}, {"window_ns", c.WindowNs}, {"arrival_ns", c.ArrivalNs}, {"release_ns", c.ReleaseNs},
		{"elapsed_ns", c.ElapsedNs}, {"census_ns", c.CensusNs}, {"max_pause_ns", c.MaxPauseNs},
		{"tries", c.Tries}, {"stop_broken", c.StopBroken}, {"left_out", c.LeftOut}, {"vanished", c.Vanished},
		{"buffer_size", c.BufferSize}, {"buffer_used", c.BufferUsed},
	}
}
