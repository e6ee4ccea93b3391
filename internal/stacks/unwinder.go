package stacks

import (
	"io"
	"time"

	"stackshot/internal/image"
	"stackshot/internal/unwind"
	"stackshot/kcdata"
)

// Unwinder makes user stacks. Used by one goroutine.
type Unwinder struct {
	Images    *image.Cache
	Arch      string        // as uname says it
	Left      time.Duration // for reading the tables of all files; when it is spent the rest is unwound without
	ChainOnly bool          // the frame-pointer chain alone is asked for
	Frames    int           // of one stack, at most

	work *unwind.Work // of all processes
}

// allowance is made once.
func (u *Unwinder) allowance() *unwind.Work {
	if u.work == nil {
		u.work = new(unwind.Work)
	}
	return u.work
}

// Thread makes the stack of one thread of a process, and says in f.Walk how it went.
func (u *Unwinder) Thread(p *unwind.Process, f *Found) unwind.Result {
	var r unwind.Result
	w := f.Walk
	if u.ChainOnly || p.Find == nil {
		r = p.Chain(f.input(u.Frames))
	} else {
		r = p.Unwind(f.input(u.Frames))
		w.Flags = w.Flags&^kcdata.UserTruncated | kcdata.UserUnwound
	}
	w.Flags |= r.Flags
	if w.Flags&kcdata.UserWalked != 0 && w.StackEnd == 0 {
		w.Flags |= kcdata.UserAltStack
	}
	w.Frames = uint32(len(r.PCs))
	if r.StopAddr != 0 || w.Flags&kcdata.UserComplete != 0 {
		w.StopAddr = r.StopAddr
	}
	return r
}

// Put writes a stack, as it stands in a thread's container.
func Put(r unwind.Result) ([]byte, error) {
	if len(r.PCs) == 0 {
		return nil, nil
	}
	const heads = 1 << 10 // of two items and a definition
	w := kcdata.NewWriter(make([]byte, heads+9*len(r.PCs)))
	if err := w.Uint64s(kcdata.TypeUserStackLR64, r.PCs); err != nil {
		return nil, err
	}
	if err := w.DefineLen(kcdata.TypeLinuxUserHow, len(r.How)); err != nil {
		return nil, err
	}
	err := w.Bytes(kcdata.TypeLinuxUserHow, r.How)
	return w.Written(), err
}

// Process is a task's code; maps ascend. Without mappings nothing is known of it. pid is its
// number if it may live on this machine, else 0. Tables are asked for when a stack
// leads there.
func (u *Unwinder) Process(pid int, maps []kcdata.Mapping) *unwind.Process {
	p := &unwind.Process{Arch: u.Arch, Work: u.allowance()}
	if len(maps) == 0 {
		return p
	}
	tables := map[*kcdata.Mapping]*unwind.Table{}
	p.Find = func(pc uint64) (*kcdata.Mapping, *unwind.Table) {
		m, ok := kcdata.FindMapping(maps, pc)
		if !ok {
			return nil, nil
		}
		table, asked := tables[m]
		if !asked {
			table = u.table(pid, m)
			tables[m] = table
		}
		return m, table
	}
	return p
}

// table is the unwind table of a mapping's file; nil: there is none to be had.
func (u *Unwinder) table(pid int, m *kcdata.Mapping) *unwind.Table {
	if m.Flags&kcdata.MappingVDSO == 0 && !image.MappedFile(m) || u.Left <= 0 {
		return nil
	}
	began := time.Now()
	v, err := u.Images.Load(pid, m, "unwind", loadTable)
	u.Left -= time.Since(began)
	if err != nil {
		return nil
	}
	k := v.(*keptTable)
	k.code.from.Store(&codeSource{u, pid, *m})
	return k.Table
}

// keptTable is a table that lives on when its file is closed.
type keptTable struct {
	*unwind.Table
	code *codeReader
}

func loadTable(r io.ReaderAt, size int64) (any, error) {
	code := &codeReader{size: size, file: r}
	t, err := unwind.NewTable(code, size)
	if err != nil {
		return nil, err
	}
	code.file = nil
	return &keptTable{t, code}, nil
}
