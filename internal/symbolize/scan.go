package symbolize

import "stackshot/kcdata"

// taskItems is where, in one task of a file, names stand or could.
type taskItems struct {
	behind   kcdata.Position   // what an item that is not there goes behind; zero: before end
	end      kcdata.Position   // of the task
	strings  []kcdata.Position // the last string table
	table    []byte            // its content
	symbols  []kcdata.Position // arrays of records
	records  []kcdata.LinuxUserSymbol
	lastPath uint32 // the highest offset in the string table that a mapping names
}

// scan finds the tasks of a file, in its order.
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

// note files an item that stands in the task itself. Names go behind the task's
// mappings, else before its end.
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
