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

// unwinder makes user stacks of what the stop took of the user side, for one
// capture. Used by one goroutine.
type unwinder struct {
	stacks.Unwinder
	keep bool  // chain and bytes stay in the file
	away []int // CPUs that were not stopped

	// What tables were missed in the whole file.
	files map[fileID]bool
	short int // stacks that lack some
}

// newUnwinder is nil where nothing of user stacks is taken. away are the CPUs that
// were not stopped.
func (k *Collator) newUnwinder(w *capture.Wants, away []int) *unwinder {
	if w.Redact || w.UserStacks == capture.NoStacks || k.AsTaken {
		return nil
	}
	return &unwinder{
		Unwinder: stacks.Unwinder{Images: k.Images, Arch: k.Host.Arch, Left: UnwindBudget, ChainOnly: w.UserStacks == capture.ChainStacks, Frames: w.UserFrames},
		keep:     w.KeepStacks, away: away, files: map[fileID]bool{},
	}
}

// warnings are for whoever took the capture. The file says the same by its marks,
// which are gone once it is mended.
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

// task turns what was taken of each of the task's threads into its user stack. The
// task's mappings are known by then. A thread that runs on a CPU that was not stopped
// is not where its saved registers say, and its stack changes: it has the stack of
// its sample, or none.
func (u *unwinder) task(t *taskBytes) (out unwound, err error) {
	if u == nil {
		return out, nil
	}
	p := u.Process(image.Seen(int(t.linux.Tgid)), t.maps)
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

// apply puts the stacks in the place of what they are made of. Where a table was
// missed that stays too, so that the stack can be mended.
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
