package account

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"strings"

	"stackshot/internal/show"
	"stackshot/kcdata"
)

// Machine says which machine a file is of, and how the file was taken.
type Machine struct {
	Hostname   string  `json:"hostname,omitempty"`
	Release    string  `json:"release,omitempty"`
	Engine     string  `json:"engine,omitempty"`
	Isolation  string  `json:"isolation,omitempty"`
	Request    string  `json:"request,omitempty"`
	RealtimeNs *uint64 `json:"realtime_ns,omitempty"` // since the epoch
	Tasks      int     `json:"tasks"`
	Threads    int     `json:"threads"`
	CPUs       int     `json:"cpus"`
	Stopped    int     `json:"cpus_stopped"`
	Problems   int     `json:"problems"` // of the file; the report names them
}

// MachineOf describes the machine of s. It keeps nothing of s but strings.
func MachineOf(s *kcdata.Snapshot) Machine {
	m := Machine{
		Hostname: show.Clean(s.Hostname), Release: show.Clean(s.Release), Engine: show.Clean(s.Engine),
		Isolation: show.Clean(s.Isolation), Request: show.Clean(s.Request),
		Tasks: len(s.Tasks), Threads: s.ThreadCount(), CPUs: len(s.CPUs), Stopped: len(CPUsWith(s, kcdata.CPUStopped)), Problems: len(s.Problems),
	}
	m.RealtimeNs = show.Known(s.Machine.RealtimeNs)
	return m
}

// Full gives host, kernel, time, how the file was taken, and how many tasks it has.
func (m *Machine) Full() string {
	var s show.Parts
	s.Add("latency of %s", cmp.Or(m.Hostname, "unknown host"))
	s.If(m.Release != "", "Linux %s", m.Release)
	if m.RealtimeNs != nil {
		s.Add("%s", show.Moment(*m.RealtimeNs))
	}
	s.Add("engine %s", cmp.Or(m.Engine, "unknown"))
	s.Add("isolation %s", cmp.Or(m.Isolation, "unknown"))
	s.If(m.Request != "", "asked for %s", m.Request)
	return fmt.Sprintf("%s: %s, %s", s.Join(", "), show.Count(m.Tasks, "task"), show.Count(m.Threads, "thread"))
}

// BriefMachine gives host, kernel and time: the first line of the report.
func BriefMachine(s *kcdata.Snapshot) string {
	what := "stackshot"
	if s.Delta {
		what = "delta stackshot"
	}
	var out show.Parts
	out.Add("%s of %s", what, show.Clean(cmp.Or(s.Hostname, "unknown host")))
	out.Add("%s", strings.TrimRight(system(s)+" "+show.Clean(s.Arch), " "))
	out.If(s.Machine.RealtimeNs > 0, "%s", show.Moment(s.Machine.RealtimeNs))
	out.If(s.Machine.BoottimeNs > 0, "up %s", show.Duration(s.Machine.BoottimeNs))
	return out.Join(", ")
}

// system is the kernel by name and release. A file of Apple's has its version alone.
func system(s *kcdata.Snapshot) string {
	switch version, _, _ := strings.Cut(s.Version, ":"); {
	case s.Release != "":
		return "Linux " + show.Clean(s.Release)
	case s.HasMachine || s.Engine != "":
		return "Linux of unknown release"
	case version != "":
		return show.Clean(version)
	}
	return "unknown system"
}

// MachineJSON is the object of the report.
func MachineJSON(s *kcdata.Snapshot) show.Object {
	text := func(raw string) *string { return show.Known(show.Clean(strings.TrimSpace(raw))) }
	out := show.Object{
		{"hostname", show.Known(show.Clean(s.Hostname))}, {"release", show.Known(show.Clean(s.Release))}, {"kernel_version", text(s.Version)},
		{"arch", show.Known(show.Clean(s.Arch))}, {"boot_id", text(s.BootID)}, {"boot_args", text(s.BootArgs)},
		{"kernel_build_id", show.Known(hex.EncodeToString(s.KernelBuild))}, {"tool_version", show.Known(show.Clean(s.ToolVersion))},
		{"request", show.Known(show.Clean(s.Request))}, {"loadavg", text(s.Loadavg)}, {"page_size", show.Known(s.PageSize)}, {"delta", show.Known(s.Delta)},
		{"realtime_ns", show.Known(s.Machine.RealtimeNs)},
	}
	if r := &s.Machine; s.HasMachine {
		out = append(out, show.Object{
			{"monotonic_ns", show.Known(r.MonotonicNs)}, {"boottime_ns", show.Known(r.BoottimeNs)},
			{"text_addr", show.Known(show.Hex(r.TextAddr))}, {"pid_ns", show.Known(r.PidNS)},
			{"pid_ns_is_first", r.PidNSIsFirst != 0}, {"redacted", r.Redacted != 0},
		}...)
	}
	return out
}
