package report

import (
	"encoding/hex"
	"io"
	"strings"

	"stackshot/internal/show"
	"stackshot/kcdata"
)

// JSONVersion is the version of the form that JSON writes and
// docs/report-json.md describes. Keys are added without raising it.
const JSONVersion = 1

// JSON writes the snapshot as one JSON object. Every thread is written out,
// nothing is folded; Options.Pids and ShowSelf choose as in Text. Errors are
// the writer's.
func JSON(w io.Writer, s *kcdata.Snapshot, o Options) error {
	o.ShowIdle = true
	v := newView(s, o)
	j := newJSONWriter(w, o.MaxBytes)
	j.open(v.document(), "")
	n := 0
	for _, t := range v.tasks {
		if j.full() {
			j.threads += t.shown
			j.mappings += len(t.Mappings)
			continue
		}
		j.item(n, "")
		v.writeTask(j, t, "  ")
		n++
	}
	j.endList(n, "")
	return j.end()
}

// addr is an address or a 64-bit id.
type addr = show.Hex

type jsonDocument struct {
	Format   string         `json:"format"`
	Version  int            `json:"version"`
	Machine  jsonMachine    `json:"machine"`
	Capture  *jsonCapture   `json:"capture,omitempty"`
	Atomic   *jsonAtomicity `json:"atomicity,omitempty"`
	CPUs     []jsonCPU      `json:"cpus"`
	Alarms   []string       `json:"alarms"`
	Warnings []jsonWarning  `json:"warnings"`
	Problems []string       `json:"problems"`
	LeftOut  []jsonLeftOut  `json:"left_out"`
	Modules  []jsonModule   `json:"modules"`
	Skipped  []string       `json:"not_named"`
	Counts   Counts         `json:"counts"`
	Tasks    []jsonTask     `json:"tasks"`
}

type jsonMachine struct {
	Hostname    string  `json:"hostname,omitempty"`
	Release     string  `json:"release,omitempty"`
	KernelVer   string  `json:"kernel_version,omitempty"`
	Arch        string  `json:"arch,omitempty"`
	BootID      string  `json:"boot_id,omitempty"`
	BootArgs    string  `json:"boot_args,omitempty"`
	BuildID     string  `json:"kernel_build_id,omitempty"`
	ToolVersion string  `json:"tool_version,omitempty"`
	Request     string  `json:"request,omitempty"`
	Loadavg     string  `json:"loadavg,omitempty"`
	PageSize    uint32  `json:"page_size,omitempty"`
	RealtimeNs  *uint64 `json:"realtime_ns,omitempty"`
	MonotonicNs *uint64 `json:"monotonic_ns,omitempty"`
	BoottimeNs  *uint64 `json:"boottime_ns,omitempty"`
	TextAddr    *addr   `json:"text_addr,omitempty"`
	PidNS       *uint64 `json:"pid_ns,omitempty"`
	PidNSFirst  *bool   `json:"pid_ns_is_first,omitempty"`
	Redacted    *bool   `json:"redacted,omitempty"`
}

type jsonCapture struct {
	Engine     string `json:"engine,omitempty"`
	Isolation  string `json:"isolation,omitempty"`
	StoppedNs  uint64 `json:"stopped_ns"`
	WindowNs   uint64 `json:"window_ns"`
	ArrivalNs  uint64 `json:"arrival_ns"`
	ReleaseNs  uint64 `json:"release_ns"`
	ElapsedNs  uint64 `json:"elapsed_ns"`
	CensusNs   uint64 `json:"census_ns"`
	MaxPauseNs uint64 `json:"max_pause_ns"`
	Tries      uint32 `json:"tries"`
	StopBroken uint32 `json:"stop_broken"`
	LeftOut    uint32 `json:"left_out"`
	Vanished   uint32 `json:"vanished"`
	BufferSize uint64 `json:"buffer_size"`
	BufferUsed uint64 `json:"buffer_used"`
}

// jsonAtomicity says how much of one instant the picture is.
type jsonAtomicity struct {
	Method   string    `json:"method"`
	Compared uint32    `json:"compared"`
	Ran      uint32    `json:"ran"`
	Gone     uint32    `json:"gone"`
	Missed   uint32    `json:"missed"`
	SpanNs   uint64    `json:"span_ns"`
	VerifyNs uint64    `json:"verify_ns"`
	Who      []jsonRan `json:"who"`
}

type jsonRan struct {
	Pid       uint32 `json:"pid"`
	Tid       uint32 `json:"tid"`
	Switches  uint64 `json:"switches"`
	RuntimeNs uint64 `json:"runtime_ns"`
}

// methodNames are the values of "method".
var methodNames = map[uint32]string{kcdata.AtomicityInWindow: "in_window", kcdata.AtomicityAfter: "after"}

func (v *view) jsonAtomicity() *jsonAtomicity {
	a := v.s.Atomicity
	if a == nil {
		return nil
	}
	out := &jsonAtomicity{
		Method: methodNames[a.Method], Compared: a.Compared, Ran: a.Ran, Gone: a.Gone, Missed: a.Missed,
		SpanNs: a.SpanNs, VerifyNs: a.VerifyNs, Who: []jsonRan{},
	}
	for _, r := range v.s.Ran {
		out.Who = append(out.Who, jsonRan{r.Tgid, r.Tid, r.Switches, r.RuntimeNs})
	}
	return out
}

type jsonCPU struct {
	CPU       uint32  `json:"cpu"`
	Kind      string  `json:"kind"`
	Cluster   uint32  `json:"cluster"`
	Stopped   bool    `json:"stopped"`
	Worked    bool    `json:"worked"`
	Missed    bool    `json:"missed"`
	Left      bool    `json:"left_running"`
	Throttled bool    `json:"throttled"`
	Idle      bool    `json:"idle"`
	RanTid    *uint32 `json:"ran_tid,omitempty"`
	RanTgid   *uint32 `json:"ran_tgid,omitempty"`
	NrRunning uint32  `json:"nr_running"`
	Tasks     uint32  `json:"tasks"`
	Threads   uint32  `json:"threads"`
}

type jsonWarning struct {
	Code string `json:"code,omitempty"`
	Text string `json:"text"`
}

type jsonLeftOut struct {
	Pid     uint32 `json:"pid"`
	Reason  string `json:"reason"`
	Errno   uint32 `json:"errno,omitempty"`
	Threads uint32 `json:"threads"`
}

type jsonModule struct {
	Name    string `json:"name"`
	Addr    addr   `json:"addr"`
	Size    uint64 `json:"size"`
	BuildID string `json:"build_id,omitempty"`
}

// document is all but the tasks.
func (v *view) document() jsonDocument {
	d := jsonDocument{
		Format: "stackshot-report", Version: JSONVersion,
		Machine: v.jsonMachine(), Capture: v.jsonCapture(), Atomic: v.jsonAtomicity(), Counts: v.counts,
		CPUs: []jsonCPU{}, Alarms: v.alarms(), Warnings: []jsonWarning{}, Problems: cleanAll(v.s.Problems),
		LeftOut: []jsonLeftOut{}, Modules: []jsonModule{}, Skipped: cleanAll(v.o.Skipped), Tasks: []jsonTask{},
	}
	if d.Alarms == nil {
		d.Alarms = []string{}
	}
	for i := range v.s.CPUs {
		d.CPUs = append(d.CPUs, jsonCPUOf(&v.s.CPUs[i]))
	}
	for _, w := range v.s.Warnings {
		d.Warnings = append(d.Warnings, jsonWarning{Clean(w.Code), Clean(w.Text)})
	}
	for _, e := range v.s.LeftOut {
		d.LeftOut = append(d.LeftOut, jsonLeftOut{e.Tgid, kcdata.LeftOutReason(e.Reason), e.Errno, e.Threads})
	}
	for _, m := range v.s.Modules {
		d.Modules = append(d.Modules, jsonModule{Clean(m.Name), addr(m.Addr), m.Size, hex.EncodeToString(m.BuildID)})
	}
	return d
}

func (v *view) jsonMachine() jsonMachine {
	s := v.s
	m := jsonMachine{
		Hostname: Clean(s.Hostname), Release: Clean(s.Release), KernelVer: Clean(strings.TrimSpace(s.Version)), Arch: Clean(s.Arch),
		BootID: Clean(strings.TrimSpace(s.BootID)), BootArgs: Clean(strings.TrimSpace(s.BootArgs)), BuildID: hex.EncodeToString(s.KernelBuild),
		ToolVersion: Clean(s.ToolVersion), Request: Clean(s.Request), Loadavg: Clean(strings.TrimSpace(s.Loadavg)), PageSize: s.PageSize,
	}
	if !s.HasMachine {
		return m
	}
	r := &s.Machine
	first, redacted := r.PidNSIsFirst != 0, r.Redacted != 0
	m.RealtimeNs, m.MonotonicNs, m.BoottimeNs = known(r.RealtimeNs), known(r.MonotonicNs), known(r.BoottimeNs)
	m.TextAddr, m.PidNS = known(addr(r.TextAddr)), known(r.PidNS)
	m.PidNSFirst, m.Redacted = &first, &redacted
	return m
}

func (v *view) jsonCapture() *jsonCapture {
	s, c := v.s, &v.s.Capture
	if !s.HasCapture {
		return nil
	}
	return &jsonCapture{
		Engine: Clean(s.Engine), Isolation: Clean(s.Isolation),
		StoppedNs: c.StoppedNs, WindowNs: c.WindowNs, ArrivalNs: c.ArrivalNs, ReleaseNs: c.ReleaseNs,
		ElapsedNs: c.ElapsedNs, CensusNs: c.CensusNs, MaxPauseNs: c.MaxPauseNs,
		Tries: c.Tries, StopBroken: c.StopBroken, LeftOut: c.LeftOut, Vanished: c.Vanished,
		BufferSize: c.BufferSize, BufferUsed: c.BufferUsed,
	}
}

func jsonCPUOf(c *kcdata.LinuxCPU) jsonCPU {
	out := jsonCPU{
		CPU: c.CPU, Kind: "smp", Cluster: c.Cluster,
		Stopped: c.Flags&kcdata.CPUStopped != 0, Worked: c.Flags&kcdata.CPUWorked != 0, Missed: c.Flags&kcdata.CPUMissed != 0,
		Left: c.Flags&kcdata.CPULeft != 0, Throttled: c.Flags&kcdata.CPUThrottled != 0, Idle: c.Flags&kcdata.CPUIdle != 0,
		NrRunning: c.NrRunning, Tasks: c.Tasks, Threads: c.Threads,
	}
	switch c.Kind {
	case kcdata.CPUKindE:
		out.Kind = "e"
	case kcdata.CPUKindP:
		out.Kind = "p"
	}
	if c.Flags&kcdata.CPURanKnown != 0 {
		out.RanTid, out.RanTgid = &c.RanTid, &c.RanTgid
	}
	return out
}

// known is a pointer to a value of which zero means "not read".
func known[T ~uint64](v T) *T {
	if v == 0 {
		return nil
	}
	return &v
}

// present is a pointer to v where the presence bits say that it was read.
func present[T any](bits, bit uint64, v T) *T {
	if bits&bit == 0 {
		return nil
	}
	return &v
}

func cleanAll(in []string) []string {
	out := make([]string, len(in))
	for i, s := range in {
		out[i] = Clean(s)
	}
	return out
}
