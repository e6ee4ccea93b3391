package stacks

import (
	"strings"

	"stackshot/kcdata"
)

// task is one of a file.
type task struct {
	threads []thread
	maps    []kcdata.Position // arrays of its mappings
	notes   []kcdata.Position // what was said of missed tables
	end     kcdata.Position
}

// thread is one of a file.
type thread struct {
	id    uint64
	snap  kcdata.Position // its THREAD_SNAPSHOT; zero: none, or a short one
	found UserSide
	old   []kcdata.Position // the items of the stack it has, behind the walk
	had   []byte            // these items
	ours  bool              // it says how each frame was found; else a sample gave it
	end   kcdata.Position
}

var sizeOfThreadSnapshot = kcdata.SizeOf(&kcdata.ThreadSnapshot{})

// scan finds the tasks of a file and their threads.
func scan(file *kcdata.Editor) (tasks []task, err error) {
	var t *task
	var th *thread
	for it, err := range file.Items() {
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
			t.end, t = it.Position(), nil
		case it.Depth == 1 && begins && it.ContainerType() == kcdata.TypeThread:
			t.threads = append(t.threads, thread{id: it.ContainerID()})
			th = &t.threads[len(t.threads)-1]
		case it.Depth == 1 && ends && th != nil:
			th.end, th = it.Position(), nil
		case it.Depth == 1 && !begins && !ends:
			t.note(it)
		case it.Depth == 2 && th != nil:
			if err := th.note(it); err != nil {
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
		t.maps = append(t.maps, it.Position())
	case it.Of() == kcdata.TypeLinuxEnrichFailed && strings.HasPrefix(string(it.Data), MissedWhat):
		t.notes = append(t.notes, it.Position())
	}
}

// mark has the task's mappings say which of their tables were missed, as maps do,
// and replaces what was said of that.
func (t *task) mark(file *kcdata.Editor, maps []kcdata.Mapping, notes []string) error {
	missed := map[uint64]uint32{} // by start: MappingTableMissed or 0
	for i := range maps {
		missed[maps[i].Start] = maps[i].Flags & kcdata.MappingTableMissed
	}
	for _, at := range t.maps {
		if err := kcdata.Patch(at, func(m *kcdata.LinuxMapping) {
			m.Flags = m.Flags&^kcdata.MappingTableMissed | missed[m.Start]
		}); err != nil {
			return err
		}
	}
	for _, at := range t.notes {
		file.Remove(at)
	}
	put, err := PutNotes(notes)
	file.InsertBefore(t.end, put)
	return err
}

// note files an item of a thread.
func (t *thread) note(it kcdata.Item) error {
	if ours, err := t.found.Visit(it); ours {
		return err
	}
	if it.Type == kcdata.TypeThreadSnapshot && len(it.Data) >= sizeOfThreadSnapshot {
		t.snap = it.Position()
	}
	elem, _, _ := it.Elem()
	if elem != kcdata.TypeUserStackLR64 && it.Of() != kcdata.TypeLinuxUserHow {
		return nil
	}
	if t.found.Walk == nil {
		return nil // its own CPU took it
	}
	t.ours = t.ours || it.Of() == kcdata.TypeLinuxUserHow
	t.old = append(t.old, it.Position())
	t.had = append(t.had, it.Position().Bytes()...)
	return nil
}
