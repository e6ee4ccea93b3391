package collate

import (
	"fmt"
	"slices"
	"time"

	"stackshot/internal/capture"
	"stackshot/internal/image"
	"stackshot/internal/stacks"
	"stackshot/kcdata"
)

// UnwindBudget bounds the time in which one capture reads the unwind tables of all
// files. Code whose table was not read in time is unwound by frame pointer, and marked.
const UnwindBudget = 4 * time.Second

// unwinder makes user stacks from the user side that the stop took, for one capture. One
// goroutine uses it.
type unwinder struct {
	stacks.Unwinder
	keep bool  // chain and bytes stay in the file
	away []int // CPUs that were not stopped

	// Tables that were missed, in the whole file.
	files map[fileID]bool
	short int // stacks that lack some
}

// newUnwinder returns nil if no user stacks are wanted, or none were taken. away are the
// CPUs that were not stopped.
func (k *Collator) newUnwinder(w *capture.Wants, away []int) *unwinder {
	if w.Redact || w.UserStacks == capture.NoStacks || k.KeepUserSide {
		return nil
	}
	return &unwinder{
		Unwinder: stacks.Unwinder{Images: k.Images, Arch: k.Host.Arch, Left: UnwindBudget, ChainOnly: w.UserStacks == capture.ChainStacks, Frames: w.UserFrames},
		keep:     w.KeepStacks, away: away, files: map[fileID]bool{},
	}
}

// warnings are for the caller. The file says the same by the marks of its stacks, which
// are removed when the stacks are unwound again.
func (u *unwinder) warnings() []kcdata.Warning {
	if u == nil || u.short == 0 {
		return nil
	}
	return []kcdata.Warning{{Code: "unwind_tables_missed", Text: fmt.Sprintf(
		"unwind tables of %d files were not read: callers may be missing in %d user stacks, which symbolize --unwind can make anew from the file",
		len(u.files), u.short)}}
}

// unwound are the user stacks of a task, before anything of it has changed.
type unwound struct {
	threads []unwoundThread
	notes   []string // of missed tables, "what: reason"
	late    bool     // a later look may miss fewer
}

type unwoundThread struct {
	at    int                   // of the task's threads
	walk  *kcdata.LinuxUserWalk // as it is to be
	items []byte
}

// task makes the user stack of each thread of a task, whose mappings must be known. A
// thread on a CPU that was not stopped is not where its saved registers say, and its
// stack changes. Its user stack is that of its sample, if there is one.
func (u *unwinder) task(t *taskBytes) (out unwound, err error) {
	if u == nil {
		return out, nil
	}
	p := u.Process(image.Seen(t.pid), t.maps)
	for i := range t.threads {
		th := &t.threads[i]
		if u.stale(th) || th.stack || !th.user.Usable() {
			continue // its own CPU took it, or there is none
		}
		walk, found := *th.user.Walk, th.user
		found.Walk = &walk
		items, err := stacks.Put(u.Thread(p, &found))
		if err != nil {
			return out, err
		}
		out.threads = append(out.threads, unwoundThread{i, &walk, items})
	}
	if !u.ChainOnly {
		out.notes, out.late = p.Mark(), p.Late()
	}
	return out, nil
}

func (u *unwinder) stale(th *threadAt) bool { return slices.Contains(u.away, th.onCPU) }

// apply replaces the user side of each thread by its user stack. If a table was missed, the
// user side stays too, so that the stack can be unwound again later.
func (u *unwinder) apply(t *taskBytes, made unwound) error {
	if u == nil {
		return nil
	}
	kept := make([]bool, len(t.threads))
	for _, one := range made.threads {
		th := &t.threads[one.at]
		kept[one.at] = u.keep
		if one.walk.Flags&kcdata.UserTablesMissed != 0 {
			u.short++
			kept[one.at] = true
			if !u.keep && len(th.user.Raw) > 0 {
				one.walk.Flags |= kcdata.UserKeptToMend
			}
		}
		th.user.Walk = one.walk
		if err := th.user.Mark(th.snap); err != nil {
			return err
		}
		t.items.InsertBefore(th.end, one.items)
	}
	for i := range t.threads {
		th := &t.threads[i]
		if kept[i] || u.keep && !u.stale(th) {
			continue
		}
		for _, raw := range th.user.Raw {
			t.items.Remove(raw)
		}
	}
	t.load.notes = append(t.load.notes, made.notes...)
	for _, m := range t.maps {
		if m.Flags&kcdata.MappingTableMissed != 0 {
			u.files[fileID{m.DevMajor, m.DevMinor, m.Inode}] = true
		}
	}
	return nil
}
