package latency

import (
	"fmt"

	"stackshot/internal/model"
	"stackshot/internal/show"
	"stackshot/kcdata"
)

// Who names a task, or a thread of one. Names are clean (show.Clean).
type Who struct {
	ID     show.Hex `json:"id"`               // container id, of the thread if it is one
	Pid    *uint32  `json:"pid,omitempty"`    // nil: the id is no pid
	Tid    *uint32  `json:"tid,omitempty"`    // nil: a task, or no thread id
	Task   string   `json:"task"`             // its name; may be empty
	Thread string   `json:"thread,omitempty"` // its name, where it differs
}

func whoTask(t *kcdata.Task) Who {
	return Who{ID: show.Hex(t.ID), Pid: show.Number(t.ID), Task: show.Clean(t.Name)}
}

func whoThread(t *kcdata.Task, th *kcdata.Thread) Who {
	w := whoTask(t)
	w.ID, w.Tid = show.Hex(th.ID), show.Number(th.ID)
	if th.Name != t.Name {
		w.Thread = show.Clean(th.Name)
	}
	return w
}

func (w Who) String() string {
	s := w.Task
	if s == "" {
		s = "?"
	}
	if w.Pid != nil {
		s += fmt.Sprintf(" [%d]", *w.Pid)
	}
	if w.Tid != nil && (w.Pid == nil || *w.Tid != *w.Pid) {
		s += fmt.Sprintf(" tid %d", *w.Tid)
	}
	if w.Tid == nil && w.Pid == nil {
		s += fmt.Sprintf(" id %#x", uint64(w.ID))
	}
	if w.Thread != "" {
		s += ` "` + w.Thread + `"`
	}
	return s
}

// place is where in the kernel a thread sleeps: the first frame that
// distinguishes it, else the symbol that /proc gave; "" where nobody knows.
func place(s *kcdata.Snapshot, th *kcdata.Thread) string {
	frames := model.SkipSleep(s.Symbols, th.Kernel)
	if len(frames) == 0 {
		if th.Wchan == "0" {
			return ""
		}
		return show.Clean(th.Wchan)
	}
	if sym, ok := s.Symbols.Name(frames[0]); ok {
		return show.Clean(sym.Name)
	}
	return fmt.Sprintf("%#x", frames[0])
}
