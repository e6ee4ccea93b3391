package stacks

import (
	"bytes"
	"errors"
	"fmt"

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
// buffer. local says that the capture was made on this machine since its last boot: then
// Redo reaches files through the processes too. A thread of which nothing was kept
// keeps its stack. What was kept only to mend a stack leaves the file when the stack no
// longer lacks a table. Redo changes the marks of the mappings in s as those of the file.
// Errors: ErrNotKept, ErrOtherFile, the reader's.
func (u *Unwinder) Redo(plain []byte, s *kcdata.Snapshot, local bool) ([]byte, Tally, error) {
	var sum Tally
	plain, err := kcdata.Renew(plain)
	if err != nil {
		return nil, sum, err
	}
	file, err := kcdata.EditBuffer(bytes.Clone(plain)) // the caller's stays as it is
	if err != nil {
		return nil, sum, err
	}
	tasks, err := scan(file)
	if err != nil {
		return nil, sum, err
	}
	if len(tasks) != len(s.Tasks) {
		return nil, sum, ErrOtherFile
	}
	for i := range tasks {
		if err := u.task(file, &tasks[i], s.Tasks[i], local, &sum); err != nil {
			return nil, sum, err
		}
	}
	if sum.Threads == 0 {
		return nil, sum, ErrNotKept
	}
	out, err := file.Edited()
	if err != nil {
		return nil, sum, fmt.Errorf("the file with its new stacks: %w", err)
	}
	return out, sum, nil
}

// task makes the stacks of a task's threads anew, and its marks of what was missed.
func (u *Unwinder) task(file *kcdata.Editor, at *task, t *kcdata.Task, local bool, sum *Tally) error {
	proc := ""
	if local {
		proc = "/proc"
	}
	p := u.Process(image.Of(t, proc), t.Mappings) // it may have ended
	before, left := sum.Threads, false            // a stack that lacks tables stays as it is
	for i := range at.threads {
		th := &at.threads[i]
		if !th.found.Usable() || len(th.found.Raw) == 0 || len(th.old) > 0 && !th.ours {
			left = left || th.found.Walk != nil && th.found.Walk.Flags&kcdata.UserTablesMissed != 0
			continue
		}
		stack, err := u.again(th, p)
		if err != nil {
			return fmt.Errorf("stack of thread %d: %w", th.id, err)
		}
		sum.Threads++
		if !bytes.Equal(stack, th.had) {
			sum.Changed++
		}
		if th.found.Walk.Flags&kcdata.UserTablesMissed != 0 {
			sum.Short++
		}
		if err := th.edit(file, stack); err != nil {
			return fmt.Errorf("stack of thread %d: %w", th.id, err)
		}
	}
	if sum.Threads == before || left {
		return nil
	}
	return at.mark(file, t.Mappings, p.Mark())
}

// edit puts a thread's new stack in the place of the old.
func (th *thread) edit(file *kcdata.Editor, stack []byte) error {
	w := th.found.Walk
	if w.Flags&(kcdata.UserKeptToMend|kcdata.UserTablesMissed) == kcdata.UserKeptToMend {
		w.Flags &^= kcdata.UserKeptToMend
		th.old = append(th.old, th.found.Raw...)
	}
	for _, at := range th.old {
		file.Remove(at)
	}
	file.InsertBefore(th.end, stack)
	return th.found.Mark(th.snap)
}

// again makes the items of a thread's stack.
func (u *Unwinder) again(th *thread, p *Process) ([]byte, error) {
	one := *u
	w := th.found.Walk
	one.ChainOnly = w.Flags&(kcdata.UserUnwound|kcdata.UserNoLoadInfo|kcdata.UserFewRegisters) == 0
	if w.Flags&kcdata.UserTruncated != 0 && w.Frames > 0 {
		one.Frames = int(w.Frames) // as many as were asked for
	}
	const after = kcdata.UserComplete | kcdata.UserUnwound | kcdata.UserNoLoadInfo | kcdata.UserNoMoreBytes | kcdata.UserNoUnwindTable |
		kcdata.UserAltStack | kcdata.UserTruncated | kcdata.UserTablesMissed | kcdata.UserCallersUnsure | kcdata.UserNoMapping | kcdata.UserNoRegister
	w.Flags &^= after
	return Put(one.Thread(p, &th.found))
}
