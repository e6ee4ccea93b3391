package symbol

import (
	"slices"

	"stackshot/internal/strtab"
	"stackshot/kcdata"
)

// Result is the names of some tasks' addresses.
type Result struct {
	Tasks   map[*kcdata.Task]*Names // those with an address of which something is known
	Skipped []Skip                  // files that gave no names, or not all
	skips   map[Skip]bool           // those of Skipped, each once
}

// Skip is something that was not read, and why.
type Skip struct{ What, Reason string }

// Names is what the places of one task are in. It is constant.
type Names struct {
	places []kcdata.UserPlace      // ascending
	funcs  [][]kcdata.UserFunction // of each, innermost first
}

// skip lists a job's errors.
func (res *Result) skip(o outcome) {
	for _, err := range o.errs {
		s := Skip{o.job.what(), reason(err)}
		if !res.skips[s] {
			res.skips[s] = true
			res.Skipped = append(res.Skipped, s)
		}
	}
}

// what is the job's file for people.
func (j *job) what() string {
	if j.kind == jobPerf {
		return j.sources[0].Mapping.Path
	}
	return j.module
}

func (res *Result) assemble(w *wanted, names map[*job]map[uint64]*named) {
	res.Tasks = make(map[*kcdata.Task]*Names, len(w.spots))
	for t, spots := range w.spots {
		slices.SortFunc(spots, func(a, b spot) int { return a.Compare(b.UserPlace) })
		n := &Names{}
		for _, s := range spots {
			if funcs := s.functions(names[s.job][s.off]); funcs != nil {
				n.places, n.funcs = append(n.places, s.UserPlace), append(n.funcs, funcs)
			}
		}
		if len(n.places) > 0 {
			res.Tasks[t] = n
		}
	}
}

// functions are those of one address; a file that gives no name is still its
// module.
func (s *spot) functions(n *named) []kcdata.UserFunction {
	if n == nil || len(n.funcs) == 0 {
		if s.job.kind == jobPerf || s.job.module == "" {
			return nil
		}
		return []kcdata.UserFunction{{Module: s.job.module}}
	}
	out := make([]kcdata.UserFunction, len(n.funcs))
	for i, f := range n.funcs {
		out[i] = kcdata.UserFunction{Name: f.name, Module: s.job.module, Offset: f.delta + s.back, File: f.file, Line: f.line}
	}
	return out
}

// Table gives the names the form that the report reads.
func (n *Names) Table() *kcdata.UserSymbolTable {
	var records []kcdata.LinuxUserSymbol
	strs := strtab.New()
	for i, p := range n.places {
		for _, f := range n.funcs[i] {
			records = append(records, kcdata.LinuxUserSymbol{
				Addr: p.Addr, Offset: f.Offset, Line: f.Line, Flags: p.Flag(),
				Name: strs.Add(f.Name), Module: strs.Add(f.Module), File: strs.Add(f.File),
			})
		}
	}
	return kcdata.NewUserSymbolTable(records, strs.Bytes())
}
