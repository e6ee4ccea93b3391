package verdict

import (
	"fmt"
	"strings"

	"stackshot/internal/account"
	"stackshot/internal/show"
	"stackshot/internal/waits"
	"stackshot/kcdata"
)

// maxName bounds the name of a thread in a sentence, in cells. What the kernel keeps is far
// shorter; a hostile file's is not.
const maxName = 64

// maxOwners is how many owners a clause names.
const maxOwners = 2

// Thread names a thread, by its task, its number and its own name.
func Thread(task *kcdata.Task, t *kcdata.Thread) string {
	s := Name(task, t)
	if t.Name != "" && t.Name != task.Name {
		s += ` "` + short(t.Name) + `"`
	}
	return s
}

// Name names a thread by its task and its number alone.
func Name(task *kcdata.Task, t *kcdata.Thread) string {
	return account.Thread(&kcdata.Task{ID: task.ID, Name: short(task.Name)}, t.ID)
}

// short is a name, clean and cut to maxName cells. Of a long one most is not even looked at.
func short(name string) string {
	return show.Fit(show.Clean(name[:min(len(name), 8*maxName)]), maxName)
}

// Owner names an owner, one that the file does not have too.
func Owner(o *waits.Owner) string {
	switch {
	case isProcess(o):
		return "process " + process(o)
	case o.Whole && o.Thread == nil && o.Tid != 0:
		return fmt.Sprintf("process %d (not in this file)", o.Pid)
	case o.Whole && o.Thread == nil:
		return "a process (not in this file)"
	}
	if o.Thread != nil && o.Task != nil {
		return Thread(o.Task, o.Thread)
	}
	if o.Forked != nil {
		return forked(o) + " before a fork"
	}
	if o.Tid == 0 {
		return "a thread (not in this file)"
	}
	return fmt.Sprintf("tid %d of task %d (not in this file)", o.Tid, o.Pid)
}

// forked names a thread that is not in the process that waits for its lock.
func forked(o *waits.Owner) string {
	return Name(o.Forked, &kcdata.Thread{ID: uint64(o.Tid)})
}

// isProcess reports whether o is a process as a whole, and the file has it.
func isProcess(o *waits.Owner) bool { return o.Whole && o.Task != nil && o.Thread != nil }

// names gives a thread its full name once, and its number from then on: in one sentence the
// same thread is named several times.
type names map[*kcdata.Thread]bool

func (n names) thread(task *kcdata.Task, t *kcdata.Thread) string {
	if n[t] {
		return fmt.Sprintf("tid %d", t.ID)
	}
	if n != nil {
		n[t] = true
	}
	return Thread(task, t)
}

// owner is who can end the wait w.
func (n names) owner(o *waits.Owner, w *waits.Wait) string {
	switch {
	case isProcess(o):
		return n.whole(o, w.Task)
	case o.Thread != nil && o.Thread == w.Thread:
		return "it"
	case o.Thread != nil && o.Task != nil:
		return n.thread(o.Task, o.Thread)
	}
	return Owner(o)
}

// list names the owners of a wait: at most maxOwners, and how many more there are.
func (n names) list(w *waits.Wait, owners []waits.Owner) string {
	word := " and "
	if w.AnyOwner {
		word = " or "
	}
	var parts show.Parts
	for i := range owners[:min(len(owners), maxOwners)] {
		parts.Add("%s", n.owner(&owners[i], w))
	}
	if more := len(owners) - maxOwners; more > 0 {
		return parts.Join(", ") + word + fmt.Sprintf("%d more", more)
	}
	return parts.Join(word)
}

// clause says what w's thread waits for and, if they are known, who can end that: "waits for
// the mutex 0x5570 that db [7] holds".
func (n names) clause(w *waits.Wait, owners []waits.Owner, redacted bool) string {
	if w.File != nil && w.File.File != nil && tellsFile(w) {
		return n.atFile(w, owners, redacted)
	}
	what := "waits for " + thingOf(w, redacted)
	if len(owners) == 0 {
		return what
	}
	who := n.list(w, owners)
	one := len(owners) == 1
	switch owners[0].Relation {
	case waits.Holds:
		probably := ""
		if w.Evidence == waits.Stack && w.Confidence == waits.Likely {
			probably = " probably"
		}
		if one && owners[0].Forked != nil {
			return what + " that " + forked(&owners[0]) + " held before a fork"
		}
		return what + " that " + who + probably + held(one, owners[0].Dead, who) + midst(w.Kind, owners[0].Thread)
	case waits.Last:
		return what + " that " + who + " took last"
	case waits.Child:
		return "waits for its child " + who
	case waits.Joined:
		return "waits for the end of " + who
	case waits.Tracer:
		return "waits for its tracer " + who
	case waits.Execs:
		return "waits for its vfork child " + who
	case waits.Dumps:
		return what + ", which " + who + " takes"
	case waits.Reaps:
		return what + ": " + who + " has not reaped a zombie"
	case waits.Runs:
		return "waits for the CPU that " + who + plural(one, " has", " have")
	case waits.Server, waits.Pager:
		return what + ", served by " + who
	}
	return what + " of " + who
}

func held(one, dead bool, who string) string {
	switch {
	case dead:
		return " held when it died"
	case who == "it":
		return " holds itself"
	}
	return plural(one, " holds", " hold")
}

// midst says in which call t holds the position of a file; "" if that is not known.
func midst(k waits.Kind, t *kcdata.Thread) string {
	if k != waits.FilePosition || t == nil || len(t.Files) == 0 {
		return ""
	}
	switch t.Files[0].Op {
	case kcdata.FileOpRead:
		return " in the middle of a read"
	case kcdata.FileOpWrite:
		return " in the middle of a write"
	}
	return ""
}

func plural(one bool, single, many string) string {
	if one {
		return single
	}
	return many
}

// Phrase says what a thread waits for: words that follow its name.
func Phrase(w *waits.Wait, redacted bool) string {
	return names(nil).clause(w, w.Owners, redacted)
}

// Tells reports whether Phrase says more of a thread than its state and its stack do: whom it
// waits for, for which lock, or at which file system.
func Tells(w *waits.Wait) bool {
	return w != nil && (len(w.Owners) > 0 || w.Resource != waits.Resource{} || w.Probably != nil || w.File != nil && w.File.File != nil && tellsFile(w))
}

// Notes are what is to be said beside a wait, clean and at most maxNotes.
func Notes(w *waits.Wait) string {
	var parts show.Parts
	parts.If(w.Timed, "it ends at a timeout")
	for _, note := range w.Notes[:min(len(w.Notes), maxNotes)] {
		parts.Add("%s", show.Fit(show.Clean(note), maxNote))
	}
	parts.If(len(w.Notes) > maxNotes, "and %d more", len(w.Notes)-maxNotes)
	return strings.Join(parts, "; ")
}

// Bounds of Notes: entries, and the cells of one.
const (
	maxNotes = 3
	maxNote  = 160
)
