package symbolize

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"stackshot/internal/strtab"
	"stackshot/kcdata"
)

// ErrBadTable says that a task's mappings point outside their string table. If names were
// appended to the table, they would become the paths of these mappings.
var ErrBadTable = errors.New("a mapping's path lies outside the string table")

// ErrOtherFile says that a snapshot was not read from the bytes given with it.
var ErrOtherFile = errors.New("the snapshot is not of this file")

// Rewrite puts the names of n into the file plain (see kcdata.Unwrap), of which s is the
// whole snapshot. The result is plain itself if no name is new. Errors:
// ErrBadTable, ErrOtherFile; the reader's *kcdata.FormatError for a file that breaks off.
func Rewrite(plain []byte, s *kcdata.Snapshot, n Namer) ([]byte, Tally, error) {
	var sum Tally
	if _, err := kcdata.Check(plain); err != nil {
		return nil, sum, err
	}
	if s == nil {
		return nil, sum, ErrOtherFile
	}
	all := make([]names, len(s.Tasks))
	for i, t := range s.Tasks {
		_, all[i] = ask(t, n, &sum)
	}
	if sum.New == 0 {
		return plain, sum, nil
	}
	today, err := kcdata.Renew(plain)
	if err != nil {
		return nil, sum, err
	}
	file, err := kcdata.EditBuffer(today)
	if err != nil {
		return nil, sum, err
	}
	tasks, err := scan(file)
	if err != nil {
		return nil, sum, err
	}
	if len(s.Tasks) != len(tasks) {
		return nil, sum, ErrOtherFile
	}
	for i, fresh := range all { // the tasks are in the same order
		if len(fresh) == 0 {
			continue
		}
		if err := tasks[i].edit(file, fresh); err != nil {
			return nil, sum, fmt.Errorf("names of task %d: %w", s.Tasks[i].ID, err)
		}
	}
	out, err := file.Edited()
	if err != nil {
		return nil, sum, fmt.Errorf("the file with its names: %w", err)
	}
	return out, sum, nil
}

// edit puts fresh into a task. It replaces the items of names that the task has, and adds
// those that it does not have.
func (t *taskItems) edit(file *kcdata.Editor, fresh names) error {
	if t.lastPath > 0 && int64(t.lastPath) >= int64(len(t.table)) {
		return fmt.Errorf("offset %#x of %#x bytes: %w", t.lastPath, len(t.table), ErrBadTable)
	}
	table := strtab.Over(t.table)
	records := t.merged(table, fresh)
	strings, symbols := kcdata.NewBuffer(0), kcdata.NewBuffer(0)
	err := errors.Join(strings.Bytes(kcdata.TypeLinuxMapStrings, table.Bytes()), symbols.StructArray(kcdata.TypeLinuxUserSymbol, records))
	t.put(file, t.strings, strings.Written())
	t.put(file, t.symbols, symbols.Written())
	return err
}

// put puts item in the place of the first old one and removes the others. Without an old
// one, item goes behind the mappings, else before the end of the task.
func (t *taskItems) put(file *kcdata.Editor, old []kcdata.Position, item []byte) {
	switch {
	case len(old) > 0:
		file.Replace(old[0], item)
		for _, more := range old[1:] {
			file.Remove(more)
		}
	case !t.behind.IsZero():
		file.InsertAfter(t.behind, item)
	default:
		file.InsertBefore(t.end, item)
	}
}

// merged returns the records of the file and those of fresh, which replace the file's.
func (t *taskItems) merged(table *strtab.Table, fresh names) []kcdata.LinuxUserSymbol {
	all := slices.DeleteFunc(slices.Clone(t.records), func(r kcdata.LinuxUserSymbol) bool { return replaced(&r, fresh) })
	for i := range all {
		r := &all[i]
		r.Name, r.Module, r.File = t.inTable(r.Name), t.inTable(r.Module), t.inTable(r.File)
	}
	all = append(all, records(table, fresh)...)
	slices.SortStableFunc(all, func(a, b kcdata.LinuxUserSymbol) int { return cmp.Compare(a.Addr, b.Addr) })
	return all
}

// replaced reports whether fresh has all that readers look up in a record. A record without
// a flag serves both kinds of address, exact ones and return addresses.
func replaced(r *kcdata.LinuxUserSymbol, fresh names) bool {
	exact := fresh[kcdata.UserPlace{Addr: r.Addr, Exact: true}] != nil
	call := fresh[kcdata.UserPlace{Addr: r.Addr}] != nil
	switch r.Flags & (kcdata.UserSymbolExact | kcdata.UserSymbolReturn) {
	case kcdata.UserSymbolExact:
		return exact
	case kcdata.UserSymbolReturn:
		return call
	}
	return exact && call
}

// records returns the records of n, ascending, and puts their names into table.
func records(table *strtab.Table, n names) []kcdata.LinuxUserSymbol {
	var out []kcdata.LinuxUserSymbol
	for _, p := range slices.SortedFunc(maps.Keys(n), kcdata.UserPlace.Compare) {
		for _, f := range n[p] {
			out = append(out, kcdata.LinuxUserSymbol{
				Addr: p.Addr, Offset: f.Offset, Line: f.Line, Flags: p.Flag(),
				Name: table.Add(f.Name), Module: table.Add(f.Module), File: table.Add(f.File),
			})
		}
	}
	return out
}

// inTable returns off, or 0 if off lies outside the table as it was: a reader found
// no string there, and must not find one in the longer table.
func (t *taskItems) inTable(off uint32) uint32 {
	if int64(off) >= int64(len(t.table)) {
		return 0
	}
	return off
}

// taskItems says where in one task of a file the items of names are, or would go.
type taskItems struct {
	behind   kcdata.Position   // a new item goes behind it; zero: before end
	end      kcdata.Position   // of the task
	strings  []kcdata.Position // the last string table
	table    []byte            // its content
	symbols  []kcdata.Position // arrays of records
	records  []kcdata.LinuxUserSymbol
	lastPath uint32 // the highest offset in the string table that a mapping names
}

// scan finds the tasks of a file, in the order of the file.
func scan(file *kcdata.Editor) (tasks []taskItems, err error) {
	var open *taskItems
	for it, err := range file.Items() {
		if err != nil {
			return nil, err
		}
		switch {
		case it.Depth == 0 && it.Type == kcdata.TypeContainerBegin:
			open = nil
			if t := it.ContainerType(); t == kcdata.TypeTask || t == kcdata.TypeTransitioningTask {
				tasks = append(tasks, taskItems{})
				open = &tasks[len(tasks)-1]
			}
		case open != nil && it.Depth == 0:
			open.end, open = it.Position(), nil
		case open != nil && it.Depth == 1:
			open.note(it)
		}
	}
	return tasks, nil
}

// note takes down an item of the task itself if it has to do with names or mappings.
func (t *taskItems) note(it kcdata.Item) {
	elem, _, _ := it.Elem()
	switch {
	case it.Of() == kcdata.TypeLinuxMapStrings:
		t.strings, t.table, t.behind = []kcdata.Position{it.Position()}, it.Data, it.Position()
	case elem == kcdata.TypeLinuxMapping:
		t.behind = it.Position()
		for _, m := range kcdata.Elements[kcdata.LinuxMapping](it) {
			t.lastPath = max(t.lastPath, m.Path)
		}
	case elem == kcdata.TypeLinuxUserSymbol:
		t.symbols = append(t.symbols, it.Position())
		t.records = append(t.records, kcdata.Elements[kcdata.LinuxUserSymbol](it)...)
	}
}
