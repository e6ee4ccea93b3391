package topology

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// ErrBadClass says that --cpu-class is not of the form "0-3=P,4-7=E".
var ErrBadClass = errors.New("want CPU=P or CPU=E")

// kinds sets the kind of every online CPU from the first source there is.
func (r *reader) kinds(cpus []CPU) {
	perf, okP := r.list("devices/cpu_core/cpus")
	eff, okE := r.list("devices/cpu_atom/cpus")
	low, _ := r.list("devices/cpu_lowpower/cpus")
	eff = append(eff, low...)
	hybrid := okP && okE
	var largest uint32
	for i := range cpus {
		largest = max(largest, cpus[i].Capacity)
	}
	for i := range cpus {
		cpu := &cpus[i]
		switch {
		case !cpu.Online:
		case hybrid && slices.Contains(perf, cpu.ID):
			cpu.Kind = KindP
		case hybrid && slices.Contains(eff, cpu.ID):
			cpu.Kind = KindE
		case largest > 0 && cpu.Capacity > 0 && cpu.Capacity < largest:
			cpu.Kind = KindE
		case hybrid || largest > 0:
			cpu.Kind = KindP
		}
	}
}

// withClasses gives a copy of t whose kinds are those of class, the text of
// --cpu-class. It must name every online CPU and no other: otherwise some kinds would
// be those of the option and some those of the machine, and a test would run on another
// machine than it describes. One class alone is allowed and means SMP.
func (t *Topology) withClasses(class string) (*Topology, error) {
	kinds, err := parseClasses(class)
	if err != nil {
		return nil, fmt.Errorf("--cpu-class: %w", err)
	}
	for _, id := range slices.Sorted(maps.Keys(kinds)) { // so that the error names the lowest CPU, not a random one
		if err := t.usable("--cpu-class", id); err != nil {
			return nil, err
		}
	}
	out := &Topology{CPUs: slices.Clone(t.CPUs)}
	for i := range out.CPUs {
		cpu := &out.CPUs[i]
		kind, ok := kinds[cpu.ID]
		if cpu.Online && !ok {
			return nil, &CPUError{Option: "--cpu-class", CPU: cpu.ID, Err: ErrNoClass}
		}
		cpu.Kind = kind
	}
	out.settle()
	return out, nil
}

// parseClasses reads "0-3=P,4-7=E"; "0,2=P,1,3=E" works too: a class holds for all
// parts of the list since the last class.
func parseClasses(s string) (map[int]Kind, error) {
	kinds := map[int]Kind{}
	var open []string
	for part := range strings.SplitSeq(s, ",") {
		list, class, ok := strings.Cut(part, "=")
		open = append(open, list)
		if !ok {
			continue
		}
		kind, ok := map[string]Kind{"P": KindP, "E": KindE}[strings.ToUpper(strings.TrimSpace(class))]
		if !ok {
			return nil, fmt.Errorf("%q: %w", part, ErrBadClass)
		}
		for _, list := range open {
			if err := claim(kinds, list, kind); err != nil {
				return nil, err
			}
		}
		open = nil
	}
	if len(open) > 0 {
		return nil, fmt.Errorf("%q: %w", strings.Join(open, ","), ErrBadClass)
	}
	return kinds, nil
}

func claim(kinds map[int]Kind, list string, kind Kind) error {
	lo, hi, err := parseRange(strings.TrimSpace(list))
	if err != nil {
		return err
	}
	for cpu := lo; cpu <= hi; cpu++ {
		if _, twice := kinds[cpu]; twice {
			return fmt.Errorf("CPU %d is named twice: %w", cpu, ErrBadClass)
		}
		kinds[cpu] = kind
	}
	return nil
}
