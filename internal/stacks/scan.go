package stacks

import (
	"fmt"
	"strings"

	"stackshot/kcdata"
)

// task is one of a file.
type task struct {
	threads []thread
	maps    []Span // payloads of the arrays of its mappings
	notes   []Span // what was said of missed tables
	end     int    // offset of its end item
}

// thread is one of a file.
type thread struct {
	id    uint64
	snap  int // of the payload of its THREAD_SNAPSHOT; 0: none, or a short one
	found Found
	old   []Span // the items of the stack it has, ascending, behind the walk
	had   []byte // these items
	ours  bool   // it says how each frame was found; else a sample gave it
	end   int    // offset of its end item
}

var sizeOfThreadSnapshot = kcdata.SizeOf(&kcdata.ThreadSnapshot{})

// scan finds the tasks of a file and their threads.
func scan(plain []byte) (tasks []task, err error) {
	r, err := kcdata.NewReader(plain)
	if err != nil {
		return nil, err
	}
	var t *task
	var th *thread
	for it, err := range r.Items() {
		if err != nil {
			return nil, err
		}
		begins, ends := it.Type == kcdata.TypeContainerBegin, it.Type == kcdata.TypeContainerEnd
		switch {
		case it.Depth == 0 && begins:
			t = nil
			if kind := it.ContainerType(); kind == kcdata.TypeTask || kind == kcdata.TypeTransitioningTask {
				tasks = append(tasks, task{})
				t = &tasks[len(tasks)-1]
			}
		case t == nil:
		case it.Depth == 0 && ends:
			t.end, t = it.Offset, nil
		case it.Depth == 1 && begins && it.ContainerType() == kcdata.TypeThread:
			t.threads = append(t.threads, thread{id: it.ContainerID()})
			th = &t.threads[len(t.threads)-1]
		case it.Depth == 1 && ends && th != nil:
			th.end, th = it.Offset, nil
		case it.Depth == 1 && !begins && !ends:
			t.note(it)
		case it.Depth == 2 && th != nil:
			if err := th.note(plain, it); err != nil {
				return nil, err
			}
		}
	}
	return tasks, nil
}

// note files an item of a task.
func (t *task) note(it kcdata.Item) {
	elem, size, _ := it.Elem()
	switch {
	case elem == kcdata.TypeLinuxMapping && size == kcdata.SizeOf(&kcdata.LinuxMapping{}):
		t.maps = append(t.maps, Span{it.Offset + itemHeader, len(it.Data)})
	case it.Of() == kcdata.TypeLinuxEnrichFailed && strings.HasPrefix(string(it.Data), MissedWhat):
		t.notes = append(t.notes, spanOf(it))
	}
}

// mark has the task's mappings say which of their tables were missed, as maps do,
// and replaces what was said of that.
func (t *task) mark(plain []byte, maps []kcdata.Mapping, notes []string) (out []edit, err error) {
	missed := map[uint64]bool{} // by start
	for i := range maps {
		missed[maps[i].Start] = maps[i].Flags&kcdata.MappingTableMissed != 0
	}
	for _, at := range t.maps {
		var m kcdata.LinuxMapping
		size := kcdata.SizeOf(&m)
		records := make([]byte, 0, at.Len)
		for b := plain[at.Off:][:at.Len]; len(b) >= size; b = b[size:] {
			if err := kcdata.Unmarshal(b[:size], &m); err != nil {
				return nil, fmt.Errorf("mappings at %d: %w", at.Off, err)
			}
			m.Flags &^= kcdata.MappingTableMissed
			if missed[m.Start] {
				m.Flags |= kcdata.MappingTableMissed
			}
			records = kcdata.Marshal(records, &m)
		}
		out = append(out, edit{Span{at.Off, len(records)}, records})
	}
	for _, cut := range t.notes {
		out = append(out, edit{cut, nil})
	}
	put, err := PutNotes(notes)
	return append(out, edit{Span{t.end, 0}, put}), err
}

// note files an item of a thread.
func (t *thread) note(plain []byte, it kcdata.Item) error {
	if ours, err := t.found.Visit(it); ours {
		return err
	}
	if it.Type == kcdata.TypeThreadSnapshot && len(it.Data) >= sizeOfThreadSnapshot {
		t.snap = it.Offset + itemHeader
	}
	elem, _, _ := it.Elem()
	if elem != kcdata.TypeUserStackLR64 && it.Of() != kcdata.TypeLinuxUserHow {
		return nil
	}
	if t.found.Walk == nil {
		return nil // its own CPU took it
	}
	t.ours = t.ours || it.Of() == kcdata.TypeLinuxUserHow
	at := spanOf(it)
	t.old = append(t.old, at)
	t.had = append(t.had, plain[at.Off:at.Off+at.Len]...)
	return nil
}
