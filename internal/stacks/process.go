package stacks

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"stackshot/internal/image"
	"stackshot/internal/show"
	"stackshot/internal/unwind"
	"stackshot/kcdata"
)

// Process is a task's code: its mappings, the tables of their files, and which of
// them were wanted and not read. Used by one goroutine.
type Process struct {
	code   unwind.Process
	u      *Unwinder
	proc   image.Process
	maps   []kcdata.Mapping
	tables map[*kcdata.Mapping]*unwind.Table
	missed map[*kcdata.Mapping]error
	short  bool // the stack at hand wanted something of missed
}

// errSpent is why a file is not read any more.
var errSpent = errors.New("the time for unwind tables is spent")

// Process makes a task's code of its mappings, which ascend; without mappings nothing is
// known of it. It reaches the files through proc, as long as that process lives, and
// reads a table only when a stack leads there.
func (u *Unwinder) Process(proc image.Process, maps []kcdata.Mapping) *Process {
	if u.work == nil {
		u.work = new(unwind.Work)
	}
	p := &Process{
		code: unwind.Process{Arch: u.Arch, Work: u.work}, u: u, proc: proc, maps: maps,
		tables: map[*kcdata.Mapping]*unwind.Table{}, missed: map[*kcdata.Mapping]error{},
	}
	if len(maps) > 0 {
		p.code.Find = p.find
		p.code.Missed = func() bool { return p.short }
	}
	return p
}

func (p *Process) find(pc uint64) (*kcdata.Mapping, *unwind.Table) {
	m, ok := kcdata.FindMapping(p.maps, pc)
	if !ok {
		return nil, nil
	}
	table, asked := p.tables[m]
	if !asked {
		table = p.table(m)
		p.tables[m] = table
	}
	p.short = p.short || table == nil && p.missed[m] != nil
	return m, table
}

// table is the unwind table of a mapping's file; nil: there is none, or it was
// not read.
func (p *Process) table(m *kcdata.Mapping) *unwind.Table {
	if m.Flags&kcdata.MappingVDSO == 0 && !image.MappedFile(m) {
		return nil
	}
	if p.u.Left <= 0 {
		p.miss(m, errSpent)
		return nil
	}
	began := time.Now()
	v, err := p.u.Images.Load(p.proc, m, "unwind", loadTable)
	p.u.Left -= time.Since(began)
	if err != nil {
		p.miss(m, err)
		return nil
	}
	k := v.(*keptTable)
	if k.Table != nil {
		k.code.from.Store(&codeSource{p, m})
	}
	return k.Table
}

// miss notes that something of a file was needed and not read.
func (p *Process) miss(m *kcdata.Mapping, err error) {
	p.short = true
	if p.missed[m] == nil {
		p.missed[m] = err
	}
}

// Late says whether a second attempt may read more of its files.
func (p *Process) Late() bool {
	for _, err := range p.missed {
		if image.IsTransient(err) || errors.Is(err, errSpent) {
			return true
		}
	}
	return false
}

// maxReasons bounds Mark.
const maxReasons = 4

// MissedWhat begins the notes of Mark, in LINUX_ENRICH_FAILED.
const MissedWhat = "unwind table: "

// Mark marks the mappings whose tables were needed and not read, and no others. It
// gives one note for each file: "unwind table: PATH: reason".
func (p *Process) Mark() (notes []string) {
	for i := range p.maps {
		m := &p.maps[i]
		m.Flags &^= kcdata.MappingTableMissed
		err := p.missed[m]
		if err == nil {
			continue
		}
		m.Flags |= kcdata.MappingTableMissed
		if note := fmt.Sprintf("%s%s: %v", MissedWhat, m.Path, show.WithoutPath(err)); !slices.Contains(notes, note) {
			notes = append(notes, note)
		}
	}
	if more := len(notes) - maxReasons; more > 0 {
		notes = append(notes[:maxReasons], fmt.Sprintf("%s%d more files: not read", MissedWhat, more))
	}
	return notes
}
