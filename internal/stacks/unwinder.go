package stacks

import (
	"io"
	"strings"
	"time"

	"stackshot/internal/image"
	"stackshot/internal/unwind"
	"stackshot/kcdata"
)

// Unwinder makes user stacks. Used by one goroutine.
type Unwinder struct {
	Images    *image.Cache
	Arch      string        // as uname says it
	Left      time.Duration // for reading the tables of all files; stacks that need more files do without them
	ChainOnly bool          // the frame-pointer chain alone is asked for
	Frames    int           // of one stack, at most

	work *unwind.Work // of all processes; made with the first
}

// Thread makes the stack of one thread of a process, and says in f.Walk how it went.
func (u *Unwinder) Thread(p *Process, f *UserSide) unwind.Result {
	var r unwind.Result
	w := f.Walk
	p.short = false
	if u.ChainOnly || p.code.Find == nil {
		r = p.code.Chain(f.input(u.Frames))
	} else {
		r = p.code.Unwind(f.input(u.Frames))
		w.Flags = w.Flags&^kcdata.UserTruncated | kcdata.UserUnwound
	}
	w.Flags |= r.Flags
	if w.Flags&kcdata.UserWalked != 0 && w.StackEnd == 0 {
		w.Flags |= kcdata.UserAltStack
	}
	w.Frames = uint32(len(r.PCs))
	// Where an earlier unwinding ended says nothing of this one.
	if r.StopAddr != 0 || w.Flags&(kcdata.UserComplete|kcdata.UserUnwound) != 0 {
		w.StopAddr = r.StopAddr
	}
	return r
}

// Put writes the items of a stack for a thread's container.
func Put(r unwind.Result) ([]byte, error) {
	if len(r.PCs) == 0 {
		return nil, nil
	}
	const heads = 64 // of two items, and their padding
	w := kcdata.NewBuffer(heads + 9*len(r.PCs))
	if err := w.Uint64s(kcdata.TypeUserStackLR64, r.PCs); err != nil {
		return nil, err
	}
	err := w.Bytes(kcdata.TypeLinuxUserHow, r.How)
	return w.Written(), err
}

// PutNotes writes the items of Mark's notes for a task's container.
func PutNotes(notes []string) ([]byte, error) {
	w := kcdata.NewBuffer(0)
	for _, s := range notes {
		s = strings.ReplaceAll(s, "\x00", "")
		if err := w.String(kcdata.TypeLinuxEnrichFailed, s); err != nil {
			return nil, err
		}
	}
	return w.Written(), nil
}

// loadTable makes a keptTable of a file. A file that is no ELF file, or of another
// architecture, counts as read: its table is nil.
func loadTable(r io.ReaderAt, size int64) (any, error) {
	code := &codeReader{size: size, file: r}
	t, err := unwind.NewTable(code, size)
	if err != nil {
		return &keptTable{}, nil
	}
	code.file = nil
	return &keptTable{t, code}, nil
}

// keptTable is a table that lives on when its file is closed.
type keptTable struct {
	*unwind.Table // nil: the file holds none
	code          *codeReader
}

// Cost is for the cache.
func (k *keptTable) Cost() int64 {
	if k.Table == nil {
		return 0
	}
	return k.Table.Cost()
}
