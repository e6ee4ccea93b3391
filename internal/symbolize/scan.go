package symbolize

import (
	"encoding/binary"

	"stackshot/kcdata"
)

// span is a piece of a file: [from, to).
type span struct{ from, to int }

// taskItems is where, in one task of a file, names stand or could.
type taskItems struct {
	insert   int    // where an item that is not there goes
	strings  span   // the last string table; empty: none
	table    []byte // its content
	symbols  []span // arrays of records
	records  []kcdata.LinuxUserSymbol
	lastPath uint32 // the highest offset in the string table that a mapping names
}

// scan finds the tasks of a plain buffer, in file order.
func scan(plain []byte) (tasks []taskItems, err error) {
	r, err := kcdata.NewReader(plain)
	if err != nil {
		return nil, err
	}
	var open *taskItems
	for it, err := range r.Items() {
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
		case open != nil && it.Depth == 0: // its end
			if open.insert == 0 {
				open.insert = it.Offset
			}
			open = nil
		case open != nil && it.Depth == 1:
			open.note(it, itemSpan(plain, it))
		}
	}
	return tasks, nil
}

// itemSpan is an item with its header and padding.
func itemSpan(plain []byte, it kcdata.Item) span {
	const headerSize = 16
	size := binary.LittleEndian.Uint32(plain[it.Offset+4:])
	return span{it.Offset, it.Offset + headerSize + int(size)}
}

// note files an item that stands in the task itself. Names go behind the task's
// mappings, else before its end.
func (t *taskItems) note(it kcdata.Item, at span) {
	elem, _, _ := it.Elem()
	switch {
	case it.Of() == kcdata.TypeLinuxMapStrings:
		t.strings, t.table, t.insert = at, it.Data, at.to
	case elem == kcdata.TypeLinuxMapping:
		t.insert = at.to
		for _, m := range kcdata.Elements[kcdata.LinuxMapping](it) {
			t.lastPath = max(t.lastPath, m.Path)
		}
	case elem == kcdata.TypeLinuxUserSymbol:
		t.symbols = append(t.symbols, at)
		t.records = append(t.records, kcdata.Elements[kcdata.LinuxUserSymbol](it)...)
	}
}
