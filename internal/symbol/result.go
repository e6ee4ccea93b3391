package symbol

import (
	"stackshot/internal/strtab"
	"stackshot/kcdata"
)

// Result is the names of some tasks' addresses.
type Result struct {
	Tasks   map[*kcdata.Task]*kcdata.UserSymbolTable // those with an address of which something is known
	Skipped []Skip                                   // files that gave no names, or not all
	skips   map[Skip]bool                            // those of Skipped, each once
}

// Skip is something that was not read, and why.
type Skip struct{ What, Reason string }

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

func (res *Result) assemble(w *wanted, found map[*job]names) {
	res.Tasks = make(map[*kcdata.Task]*kcdata.UserSymbolTable, len(w.spots))
	for t, spots := range w.spots {
		if table := tableOf(spots, found); table.Len() > 0 {
			res.Tasks[t] = table
		}
	}
}

// tableOf names one task's places. Of a file that gives no name it has the module.
func tableOf(spots []spot, found map[*job]names) *kcdata.UserSymbolTable {
	var records []kcdata.LinuxUserSymbol
	strs := strtab.New()
	for _, s := range spots {
		r := kcdata.LinuxUserSymbol{Addr: s.Addr, Flags: s.Flag(), Module: strs.Add(s.job.module)}
		funcs := found[s.job][s.off]
		for _, f := range funcs {
			r.Name, r.Offset, r.File, r.Line = strs.Add(f.Name), f.Offset+s.back, strs.Add(f.File), f.Line
			records = append(records, r)
		}
		if len(funcs) == 0 && s.job.kind != jobPerf {
			records = append(records, r)
		}
	}
	return kcdata.NewUserSymbolTable(records, strs.Bytes())
}
