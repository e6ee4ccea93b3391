package account

import (
	"cmp"
	"fmt"
	"strings"

	"stackshot/internal/model"
	"stackshot/internal/show"
	"stackshot/kcdata"
)

// Who names a task, or a thread of a task. Names are clean (show.Clean).
type Who struct {
	ID     show.Hex `json:"id"`               // container id, of the thread if it is one
	Pid    *uint32  `json:"pid,omitempty"`    // nil: the id is no pid
	Tid    *uint32  `json:"tid,omitempty"`    // nil: a task, or no thread id
	Task   string   `json:"task"`             // its name; may be empty
	Thread string   `json:"thread,omitempty"` // its name, if that is not the task's
}

// WhoTask names a task.
func WhoTask(t *kcdata.Task) Who {
	return Who{ID: show.Hex(t.ID), Pid: show.Number(t.ID), Task: show.Clean(t.Name)}
}

// WhoThread names a thread of t.
func WhoThread(t *kcdata.Task, th *kcdata.Thread) Who {
	w := WhoTask(t)
	w.ID, w.Tid = show.Hex(th.ID), show.Number(th.ID)
	if th.Name != t.Name {
		w.Thread = show.Clean(th.Name)
	}
	return w
}

// String is the name in full, for a table.
func (w Who) String() string {
	var s show.Parts
	s.Add("%s", cmp.Or(w.Task, "?"))
	if w.Pid != nil {
		s.Add("[%d]", *w.Pid)
	}
	if w.Tid != nil && (w.Pid == nil || *w.Tid != *w.Pid) {
		s.Add("tid %d", *w.Tid)
	}
	s.If(w.Tid == nil && w.Pid == nil, "id %#x", uint64(w.ID))
	s.If(w.Thread != "", `"%s"`, w.Thread)
	return s.Join(" ")
}

// Task names a task in the lines of the report.
func Task(t *kcdata.Task) string {
	name := cmp.Or(show.Clean(t.Name), "?")
	if t.ID == 0 && (t.Name == "" || strings.HasPrefix(t.Name, "swapper")) {
		name = "idle threads"
	}
	return fmt.Sprintf("%s [%d]", name, t.ID)
}

// Thread names a thread in the lines of the report, by its task and its number.
func Thread(t *kcdata.Task, tid uint64) string {
	if tid>>32 != 0 { // kcdata.Thread.IsIdle
		return fmt.Sprintf("idle thread of CPU %d", uint32(tid))
	}
	if tid == t.ID {
		return Task(t)
	}
	return fmt.Sprintf("%s tid %d", Task(t), tid)
}

// NSTidsJSON are the numbers of a thread in the deeper pid namespaces, outermost first; nil
// if it is in none.
func NSTidsJSON(t *kcdata.Thread) []show.Object {
	if len(t.NS) == 0 {
		return nil
	}
	return show.List(t.NS, func(n *kcdata.LinuxThreadNS) show.Object {
		return show.Object{{"inode", n.Inode}, {"tid", n.Tid}}
	})
}

// Age follows a state and says for how long; "" if that is not known.
func Age(a model.Age) string {
	switch {
	case !a.Known:
		return ""
	case a.About:
		return " for about " + show.Duration(a.Ns)
	}
	return " for up to " + show.Duration(a.Ns)
}
