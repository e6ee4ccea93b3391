package stacks

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"stackshot/kcdata"
)

// Errors of Redo that callers tell apart.
var (
	ErrNotKept   = errors.New("the file holds no stacks to unwind: it was taken without --keep-stacks")
	ErrOtherFile = errors.New("the snapshot is not of this file")
)

// Tally counts what Redo did.
type Tally struct {
	Threads int // whose stack was made anew
	Changed int // of them, that have other frames now
}

// Redo unwinds a file again. plain is what s was parsed from; the result is a new
// buffer. local says that the file is of this machine since its last boot: then
// files are reached through the processes too. A thread of which nothing was kept
// has the stack it had. Errors: ErrNotKept, ErrOtherFile, the reader's.
func (u *Unwinder) Redo(plain []byte, s *kcdata.Snapshot, local bool) ([]byte, Tally, error) {
	threads, tasks, err := scan(plain)
	var sum Tally
	if err != nil {
		return nil, sum, err
	}
	if tasks != len(s.Tasks) {
		return nil, sum, ErrOtherFile
	}
	plain = bytes.Clone(plain)
	out := make([]byte, 0, len(plain)+len(plain)/16)
	at := 0
	for i := range threads {
		th := &threads[i]
		if !th.found.Usable() || len(th.found.Raw) == 0 || len(th.old) > 0 && !th.ours {
			continue
		}
		stack, err := u.again(th, s.Tasks[th.task], local)
		if err != nil {
			return nil, sum, fmt.Errorf("stack of thread %d: %w", th.id, err)
		}
		if th.snap > 0 {
			th.found.Mark(plain[th.snap:])
		}
		sum.Threads++
		if !bytes.Equal(stack, th.had) {
			sum.Changed++
		}
		walk := kcdata.Marshal(nil, th.found.Walk)
		out = append(append(out, plain[at:th.found.WalkAt]...), walk...)
		at = th.found.WalkAt + len(walk)
		for _, cut := range th.old {
			out = append(out, plain[at:cut.Off]...)
			at = cut.Off + cut.Len
		}
		out = append(append(out, plain[at:th.end]...), stack...)
		at = th.end
	}
	if sum.Threads == 0 {
		return nil, sum, ErrNotKept
	}
	out = append(out, plain[at:]...)
	if _, err := kcdata.Check(out); err != nil {
		return nil, sum, fmt.Errorf("the file with its new stacks cannot be read: %w", err)
	}
	return out, sum, nil
}

// again makes the items of a thread's stack.
func (u *Unwinder) again(th *thread, task *kcdata.Task, local bool) ([]byte, error) {
	u.allowance()
	one := *u
	w := th.found.Walk
	one.ChainOnly = w.Flags&kcdata.UserUnwound == 0 && w.Flags&kcdata.UserNoLoadInfo == 0
	if w.Flags&kcdata.UserTruncated != 0 && w.Frames > 0 {
		one.Frames = int(w.Frames) // as many as were asked for
	}
	const after = kcdata.UserComplete | kcdata.UserUnwound | kcdata.UserNoLoadInfo | kcdata.UserNoMoreBytes | kcdata.UserNoUnwindTable | kcdata.UserAltStack | kcdata.UserTruncated |
		kcdata.UserCallersUnsure | kcdata.UserNoMapping
	w.Flags &^= after
	pid := 0
	if local {
		pid = int(task.ID)
	}
	r := one.Thread(one.Process(pid, task.Mappings), &th.found)
	u.Left = one.Left
	return Put(r)
}

var sizeOfThreadSnapshot = kcdata.SizeOf(&kcdata.ThreadSnapshot{})

// thread is one of a file.
type thread struct {
	task  int // index of its task in the file
	id    uint64
	snap  int // of the payload of its THREAD_SNAPSHOT; 0: none, or a short one
	found Found
	old   []Span // the items of the stack it has, ascending, behind the walk
	had   []byte // these items
	ours  bool   // it says how each frame was found; else a sample gave it
	end   int    // offset of its end item
}

// scan finds the threads of a file and counts its tasks.
func scan(plain []byte) (threads []thread, tasks int, err error) {
	r, err := kcdata.NewReader(plain)
	if err != nil {
		return nil, 0, err
	}
	var th *thread
	inTask := false
	for it, err := range r.Items() {
		if err != nil {
			return nil, 0, err
		}
		switch begins := it.Type == kcdata.TypeContainerBegin; {
		case it.Depth == 0:
			t := it.ContainerType()
			if inTask = begins && (t == kcdata.TypeTask || t == kcdata.TypeTransitioningTask); inTask {
				tasks++
			}
		case it.Depth == 1 && begins && inTask && it.ContainerType() == kcdata.TypeThread:
			threads = append(threads, thread{task: tasks - 1, id: it.ContainerID()})
			th = &threads[len(threads)-1]
		case it.Depth == 1 && it.Type == kcdata.TypeContainerEnd && th != nil:
			th.end, th = it.Offset, nil
		case it.Depth == 2 && th != nil:
			if err := th.note(plain, it); err != nil {
				return nil, 0, err
			}
		}
	}
	return threads, tasks, nil
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
	defines := it.Type == kcdata.TypeDefinition && len(it.Data) >= 4 && kcdata.Type(binary.LittleEndian.Uint32(it.Data)) == kcdata.TypeLinuxUserHow
	if elem != kcdata.TypeUserStackLR64 && it.Type != kcdata.TypeLinuxUserHow && !defines {
		return nil
	}
	if t.found.Walk == nil {
		return nil // its own CPU took it
	}
	t.ours = t.ours || it.Type == kcdata.TypeLinuxUserHow
	at := spanOf(it)
	t.old = append(t.old, at)
	t.had = append(t.had, plain[at.Off:at.Off+at.Len]...)
	return nil
}
