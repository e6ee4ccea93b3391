package stacks

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"stackshot/internal/image"
	"stackshot/kcdata"
)

// Errors of Redo that callers tell apart.
var (
	ErrNotKept   = errors.New("the file holds no stacks to unwind: it was taken without --keep-stacks, and of the unwind tables none was missed, or all have been made up for already")
	ErrOtherFile = errors.New("the snapshot is not of this file")
)

// Tally counts what Redo did.
type Tally struct {
	Threads int // whose stack was made anew
	Changed int // of them, that have other frames now
	Short   int // of them, that lack an unwind table: UserTablesMissed
}

// Redo unwinds a file again. plain is what s was parsed from; the result is a new
// buffer. local says that the file is of this machine since its last boot: then
// files are reached through the processes too. A thread of which nothing was kept
// has the stack it had; what was kept only to mend a stack leaves the file with the
// last table that it lacks. The marks of mappings in s change with the file's.
// Errors: ErrNotKept, ErrOtherFile, the reader's.
func (u *Unwinder) Redo(plain []byte, s *kcdata.Snapshot, local bool) ([]byte, Tally, error) {
	var sum Tally
	plain, err := kcdata.Renew(plain)
	if err != nil {
		return nil, sum, err
	}
	tasks, err := scan(plain)
	if err != nil {
		return nil, sum, err
	}
	if len(tasks) != len(s.Tasks) {
		return nil, sum, ErrOtherFile
	}
	plain = bytes.Clone(plain)
	var edits []edit
	for i := range tasks {
		put, err := u.task(&tasks[i], plain, s.Tasks[i], local, &sum)
		if err != nil {
			return nil, sum, err
		}
		edits = append(edits, put...)
	}
	if sum.Threads == 0 {
		return nil, sum, ErrNotKept
	}
	out, err := apply(plain, edits)
	if err != nil {
		return nil, sum, err
	}
	if _, err := kcdata.Check(out); err != nil {
		return nil, sum, fmt.Errorf("the file with its new stacks cannot be read: %w", err)
	}
	return out, sum, nil
}

// edit replaces a piece of a file.
type edit struct {
	Span
	put []byte
}

// apply makes the edits, of which those of one place keep their order. A record that
// is shorter than its kind would have one reach into the next.
func apply(plain []byte, edits []edit) ([]byte, error) {
	slices.SortStableFunc(edits, func(a, b edit) int { return a.Off - b.Off })
	out := make([]byte, 0, len(plain)+len(plain)/16)
	at := 0
	for _, e := range edits {
		if e.Off < at || e.Off+e.Len > len(plain) {
			return nil, fmt.Errorf("the records at %d of the file overlap", e.Off)
		}
		out = append(append(out, plain[at:e.Off]...), e.put...)
		at = e.Off + e.Len
	}
	return append(out, plain[at:]...), nil
}

// task makes the stacks of a task's threads anew, and its marks of what was missed.
func (u *Unwinder) task(at *task, plain []byte, t *kcdata.Task, local bool, sum *Tally) ([]edit, error) {
	proc := image.Process{Pid: t.ID, Start: t.Linux.StartBoottime} // it may have ended
	if local {
		proc.Proc = "/proc"
	}
	p := u.Process(proc, t.Mappings)
	var edits []edit
	before, left := sum.Threads, false // a stack that lacks tables stays as it is
	for i := range at.threads {
		th := &at.threads[i]
		if !th.found.Usable() || len(th.found.Raw) == 0 || len(th.old) > 0 && !th.ours {
			left = left || th.found.Walk != nil && th.found.Walk.Flags&kcdata.UserTablesMissed != 0
			continue
		}
		stack, err := u.again(th, p)
		if err != nil {
			return nil, fmt.Errorf("stack of thread %d: %w", th.id, err)
		}
		if th.snap > 0 {
			th.found.Mark(plain[th.snap:])
		}
		sum.Threads++
		if !bytes.Equal(stack, th.had) {
			sum.Changed++
		}
		if th.found.Walk.Flags&kcdata.UserTablesMissed != 0 {
			sum.Short++
		}
		edits = append(edits, th.edits(stack)...)
	}
	if sum.Threads == before || left {
		return edits, nil
	}
	marks, err := at.mark(plain, t.Mappings, p.Mark())
	return append(edits, marks...), err
}

// edits put a thread's new stack in the place of the old.
func (th *thread) edits(stack []byte) (out []edit) {
	w := th.found.Walk
	if w.Flags&(kcdata.UserKeptToMend|kcdata.UserTablesMissed) == kcdata.UserKeptToMend {
		w.Flags &^= kcdata.UserKeptToMend
		for _, raw := range th.found.Raw {
			out = append(out, edit{raw, nil})
		}
	}
	walk := kcdata.Marshal(nil, w)
	out = append(out, edit{Span{th.found.WalkAt, len(walk)}, walk})
	for _, cut := range th.old {
		out = append(out, edit{cut, nil})
	}
	return append(out, edit{Span{th.end, 0}, stack})
}

// again makes the items of a thread's stack.
func (u *Unwinder) again(th *thread, p *Process) ([]byte, error) {
	one := *u
	w := th.found.Walk
	one.ChainOnly = w.Flags&kcdata.UserUnwound == 0 && w.Flags&kcdata.UserNoLoadInfo == 0
	if w.Flags&kcdata.UserTruncated != 0 && w.Frames > 0 {
		one.Frames = int(w.Frames) // as many as were asked for
	}
	const after = kcdata.UserComplete | kcdata.UserUnwound | kcdata.UserNoLoadInfo | kcdata.UserNoMoreBytes | kcdata.UserNoUnwindTable |
		kcdata.UserAltStack | kcdata.UserTruncated | kcdata.UserTablesMissed | kcdata.UserCallersUnsure | kcdata.UserNoMapping
	w.Flags &^= after
	return Put(one.Thread(p, &th.found))
}
