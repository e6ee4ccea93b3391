package report

import (
	"encoding/hex"
	"io"
	"math"

	"github.com/google/pprof/profile"

	"stackshot/internal/account"
	"stackshot/internal/alarm"
	"stackshot/internal/model"
	"stackshot/internal/show"
	"stackshot/kcdata"
)

// kernelFile names the kernel's own mapping, as perf does.
const kernelFile = "[kernel.kallsyms]"

// Pprof writes the stacks as a gzipped profile of package
// github.com/google/pprof/profile. Each thread that the text report would show with the
// same Options is a sample of two values: 1 thread, and the nanoseconds for which it has
// been off its CPU, at most or about (label age=about). The second value is 0 if the thread
// runs, and if it is not known (label age=unknown). Errors are the writer's and the
// package's.
func Pprof(w io.Writer, s *kcdata.Snapshot, o Options) error {
	p, err := newProfile(newView(s, o))
	if err != nil {
		return err
	}
	return p.Write(w)
}

// profileBuilder fills a profile. Not safe for concurrent use.
type profileBuilder struct {
	*profile.Profile
	v         *view
	mappings  map[profile.Mapping]*profile.Mapping // by themselves without their ID
	functions map[profile.Function]*profile.Function
	kernel    map[kcdata.UserPlace]*profile.Location // the addresses are the kernel's
	user      map[place]*profile.Location
	modules   map[uint64]*kcdata.Module // by kernel address; nil: no module holds it
}

func newProfile(v *view) (*profile.Profile, error) {
	b := &profileBuilder{
		Profile: &profile.Profile{
			SampleType:        []*profile.ValueType{{Type: "threads", Unit: "count"}, {Type: "off-cpu", Unit: "nanoseconds"}},
			DefaultSampleType: "threads",
			PeriodType:        &profile.ValueType{Type: "threads", Unit: "count"}, Period: 1,
		},
		v: v, mappings: map[profile.Mapping]*profile.Mapping{}, functions: map[profile.Function]*profile.Function{},
		kernel: map[kcdata.UserPlace]*profile.Location{}, user: map[place]*profile.Location{}, modules: map[uint64]*kcdata.Module{},
	}
	b.TimeNanos = int64(min(v.s.Machine.RealtimeNs, 1<<62))
	b.Comments = append([]string{account.BriefMachine(v.s)}, alarm.All(v.s, v.o.Absent)...)
	// The kernel's mapping is the first one: readers take the first for the program.
	kernel := b.mapping(profile.Mapping{File: kernelFile, BuildID: hex.EncodeToString(v.s.KernelBuild), Start: v.s.Machine.TextAddr, Limit: b.kernelEnd()})
	kernel.HasFunctions = true
	for _, t := range v.threads() {
		b.sample(t)
	}
	return b.Profile, b.CheckValid()
}

func (b *profileBuilder) sample(t *threadView) {
	s := &profile.Sample{
		Value: []int64{1, 0},
		Label: map[string][]string{
			"comm": {show.Clean(t.comm())}, "thread": {show.Clean(t.Name)}, "state": {t.state.Words},
		},
		NumLabel: map[string][]int64{"pid": {int64(t.task.ID)}, "tid": {int64(t.ID)}},
		NumUnit:  map[string][]string{"pid": {"pid"}, "tid": {"tid"}}, // readers assume these units; without them they lose a 0
	}
	if t.task.Cgroup != "" {
		s.Label["cgroup"] = []string{show.Clean(t.task.Cgroup)}
	}
	age := t.age
	if t.state.Class == model.Running {
		age = model.Age{Known: true} // it has been off its CPU for 0 ns
	}
	s.Value[1] = int64(min(age.Ns, math.MaxInt64))
	switch {
	case !age.Known:
		s.Label["age"] = []string{"unknown"}
	case age.About:
		s.Label["age"] = []string{"about"}
	}
	if word := t.userDoubt(); word != "" {
		s.Label["user_stack"] = []string{word}
	}
	if t.frames {
		for i, a := range t.Kernel {
			s.Location = append(s.Location, b.kernelLocation(kcdata.UserPlace{Addr: a, Exact: i == 0}))
		}
	}
	for i := range t.User {
		s.Location = append(s.Location, b.userLocation(place{t.task, t.UserPlace(i)}))
	}
	b.Sample = append(b.Sample, s)
}

// userDoubt is a word for a user stack that is or may be incomplete; "" for a complete
// stack and for none.
func (t *threadView) userDoubt() string {
	w := t.UserWalk
	switch {
	case len(t.User) == 0:
		return ""
	case chainOnly(t.Thread), w != nil && w.Flags&(kcdata.UserCallersUnsure|kcdata.UserTablesMissed) != 0:
		return "callers_may_be_missing"
	case w != nil && w.Flags&kcdata.UserComplete == 0:
		return "incomplete"
	}
	return ""
}

// kernelEnd is one more than the highest kernel address that no module holds: the file
// does not say where the kernel's text ends.
func (b *profileBuilder) kernelEnd() uint64 {
	end := b.v.s.Machine.TextAddr
	for _, t := range b.v.threads() {
		for _, a := range t.Kernel {
			if b.module(a) == nil && a >= end {
				end = a + 1
			}
		}
	}
	return end
}

// module returns the kernel module that holds address a, nil for none. It searches once
// for each address.
func (b *profileBuilder) module(a uint64) *kcdata.Module {
	return once(b.modules, a, func() *kcdata.Module {
		for i := range b.v.s.Modules {
			if m := &b.v.s.Modules[i]; a >= m.Addr && a-m.Addr < m.Size {
				return m
			}
		}
		return nil
	})
}

// mapping returns the profile's mapping that is equal to m but for the ID, which m lacks.
func (b *profileBuilder) mapping(m profile.Mapping) *profile.Mapping {
	return once(b.mappings, m, func() *profile.Mapping {
		m.ID = uint64(len(b.Mapping) + 1)
		b.Mapping = append(b.Mapping, &m)
		return &m
	})
}

func (b *profileBuilder) function(name, file string) *profile.Function {
	f := profile.Function{Name: name, SystemName: name, Filename: file}
	return once(b.functions, f, func() *profile.Function {
		f.ID = uint64(len(b.Function) + 1)
		b.Function = append(b.Function, &f)
		return &f
	})
}

// location adds a location. A return address lies behind the call, so the location gets the
// address of the byte before it, which is part of the call.
func (b *profileBuilder) location(p kcdata.UserPlace, m *profile.Mapping) *profile.Location {
	loc := &profile.Location{ID: uint64(len(b.Location) + 1), Address: p.Addr, Mapping: m}
	if !p.Exact && p.Addr > 0 {
		loc.Address--
	}
	b.Location = append(b.Location, loc)
	return loc
}

func (b *profileBuilder) kernelLocation(p kcdata.UserPlace) *profile.Location {
	return once(b.kernel, p, func() *profile.Location {
		m := b.Mapping[0]
		if mod := b.module(p.Addr); mod != nil {
			m = b.mapping(profile.Mapping{File: "[" + show.Clean(mod.Name) + "]", BuildID: hex.EncodeToString(mod.BuildID), Start: mod.Addr, Limit: mod.Addr + mod.Size})
		}
		loc := b.location(p, m)
		if sym, ok := b.v.s.Symbols.Name(p.Addr); ok {
			m.HasFunctions = true
			loc.Line = []profile.Line{{Function: b.function(show.Clean(sym.Name), "")}}
		}
		return loc
	})
}

func (b *profileBuilder) userLocation(p place) *profile.Location {
	return once(b.user, p, func() *profile.Location { return b.newUserLocation(p) })
}

func (b *profileBuilder) newUserLocation(p place) *profile.Location {
	frames := b.v.framesAt(p)
	var m *profile.Mapping
	if mm := frames[0].mapping; mm != nil {
		m = b.mapping(profile.Mapping{Start: mm.Start, Limit: mm.End, Offset: mm.Offset, File: show.Clean(mm.Path), BuildID: hex.EncodeToString(mm.BuildID)})
	}
	loc := b.location(p.UserPlace, m)
	for _, f := range frames {
		if f.Name == "" {
			continue
		}
		loc.Line = append(loc.Line, profile.Line{Function: b.function(show.Clean(f.Name), show.Clean(f.File)), Line: int64(f.Line)})
		if m != nil {
			m.HasFunctions, m.HasInlineFrames = true, m.HasInlineFrames || f.inlined
			m.HasFilenames, m.HasLineNumbers = m.HasFilenames || f.File != "", m.HasLineNumbers || f.Line > 0
		}
	}
	return loc
}
