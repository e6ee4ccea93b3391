package latency

import (
	"fmt"

	"stackshot/internal/show"
	"stackshot/kcdata"
)

// ID is a container id: text in JSON, because readers there may keep numbers as
// doubles, which lose the low bits.
type ID uint64

// MarshalText writes the id as "0x1f".
func (id ID) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "%#x", uint64(id)), nil }

// Who names a task, or a thread of one. Names are clean (show.Clean).
type Who struct {
	ID     ID      `json:"id"`               // container id, of the thread if it is one
	Pid    *uint32 `json:"pid,omitempty"`    // nil: the id is no pid
	Tid    *uint32 `json:"tid,omitempty"`    // nil: a task, or no thread id
	Task   string  `json:"task"`             // its name; may be empty
	Thread string  `json:"thread,omitempty"` // its name, where it differs
}

func whoTask(t *kcdata.Task) Who {
	return Who{ID: ID(t.ID), Pid: number(t.ID), Task: show.Clean(t.Name)}
}

func whoThread(t *kcdata.Task, th *kcdata.Thread) Who {
	w := whoTask(t)
	w.ID, w.Tid = ID(th.ID), number(th.ID)
	if th.Name != t.Name {
		w.Thread = show.Clean(th.Name)
	}
	return w
}

// number is an id as the pid or tid it is; idle threads of CPUs have none.
func number(id uint64) *uint32 {
	if id >= 1<<32 {
		return nil
	}
	n := uint32(id)
	return &n
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
