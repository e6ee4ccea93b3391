package latency

import "stackshot/kcdata"

// Phases is where one CPU's time went while it was held: kcdata.LinuxPhases.
// From EnterNs to ExitNs they follow each other.
type Phases struct {
	CPU       uint32  `json:"cpu"`
	TotalNs   uint64  `json:"total_ns"`
	EnterNs   uint64  `json:"enter_ns"`
	ArrivalNs uint64  `json:"arrival_ns"`
	HoldNs    uint64  `json:"hold_ns"`
	CensusNs  uint64  `json:"census_ns"`
	QueueNs   uint64  `json:"queue_ns"`
	RecordNs  uint64  `json:"record_ns"`
	DrainNs   uint64  `json:"drain_ns"`
	VerifyNs  uint64  `json:"verify_ns"`
	ReleaseNs uint64  `json:"release_ns"`
	ExitNs    uint64  `json:"exit_ns"`
	RestNs    int64   `json:"rest_ns"`             // total less all phases: 0 where they add up
	UnwindNs  *uint64 `json:"unwind_ns,omitempty"` // of record_ns; nil: not measured
	Cycles    *uint64 `json:"cycles,omitempty"`    // nil: no PMU
	Instrs    *uint64 `json:"instrs,omitempty"`
}

// phase is one column of the table and one letter of the bar.
type phase struct {
	name   string
	letter byte
}

// phases are the phases in the order of time; list gives the times.
var phases = [...]phase{
	{"enter", 'e'}, {"arrival", 'a'}, {"hold", 'h'}, {"census", 'c'}, {"queue", 'q'},
	{"record", 'R'}, {"drain", 'd'}, {"verify", 'v'}, {"release", 'r'}, {"exit", 'x'},
}

func (p *Phases) list() [len(phases)]uint64 {
	return [...]uint64{
		p.EnterNs, p.ArrivalNs, p.HoldNs, p.CensusNs, p.QueueNs,
		p.RecordNs, p.DrainNs, p.VerifyNs, p.ReleaseNs, p.ExitNs,
	}
}

func phasesOf(r *kcdata.LinuxPhases) Phases {
	p := Phases{
		CPU: r.CPU, TotalNs: r.TotalNs, EnterNs: r.EnterNs, ArrivalNs: r.ArrivalNs, HoldNs: r.HoldNs, CensusNs: r.CensusNs,
		QueueNs: r.QueueNs, RecordNs: r.RecordNs, DrainNs: r.DrainNs, VerifyNs: r.VerifyNs, ReleaseNs: r.ReleaseNs, ExitNs: r.ExitNs,
	}
	if r.Present&kcdata.PhasesHaveUnwind != 0 {
		p.UnwindNs = &r.UnwindNs
	}
	if r.Present&kcdata.PhasesHaveCycles != 0 {
		p.Cycles, p.Instrs = &r.Cycles, &r.Instrs
	}
	p.RestNs = p.rest()
	return p
}

// rest is the total less all phases, as far as an int64 holds it.
func (p *Phases) rest() int64 {
	sum := uint64(0)
	for _, ns := range p.list() {
		sum = add(sum, ns)
	}
	if sum > p.TotalNs {
		return -int64(min(sum-p.TotalNs, 1<<63-1))
	}
	return int64(min(p.TotalNs-sum, 1<<63-1))
}

// sumPhases adds up the CPUs. What not every CPU has measured has no sum.
func sumPhases(cpus []Phases) *Phases {
	if len(cpus) == 0 {
		return nil
	}
	s := cpus[0]
	s.CPU = 0
	s.UnwindNs, s.Cycles, s.Instrs = copied(s.UnwindNs), copied(s.Cycles), copied(s.Instrs)
	for i := range cpus[1:] {
		c := &cpus[i+1]
		for _, f := range [...]struct {
			to   *uint64
			from uint64
		}{
			{&s.TotalNs, c.TotalNs}, {&s.EnterNs, c.EnterNs}, {&s.ArrivalNs, c.ArrivalNs}, {&s.HoldNs, c.HoldNs},
			{&s.CensusNs, c.CensusNs}, {&s.QueueNs, c.QueueNs}, {&s.RecordNs, c.RecordNs}, {&s.DrainNs, c.DrainNs},
			{&s.VerifyNs, c.VerifyNs}, {&s.ReleaseNs, c.ReleaseNs}, {&s.ExitNs, c.ExitNs},
		} {
			*f.to = add(*f.to, f.from)
		}
		s.UnwindNs, s.Cycles, s.Instrs = addKnown(s.UnwindNs, c.UnwindNs), addKnown(s.Cycles, c.Cycles), addKnown(s.Instrs, c.Instrs)
	}
	s.RestNs = s.rest()
	return &s
}

func copied(p *uint64) *uint64 {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}

func addKnown(a, b *uint64) *uint64 {
	if a == nil || b == nil {
		return nil
	}
	v := add(*a, *b)
	return &v
}
