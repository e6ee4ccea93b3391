package unwind

import (
	"errors"
	"fmt"

	"stackshot/kcdata"
)

// byGo finds the caller of a Go function. Go code keeps no register for its
// caller but the frame pointer.
func (u *unwinder) byGo(g *goRow) (*found, *stop) {
	switch {
	case g.start:
		return u.aboveStart(g)
	case g.top:
		return nil, complete
	case g.restore:
		return u.bySignalFrame()
	case g.spWrite:
		return u.byFramePointerOf(g)
	}
	return u.byGoFrame(g)
}

// aboveStart goes on from the runtime's first function on a thread to the C code that
// has called it. What else is there is Go's own and was never called.
func (u *unwinder) aboveStart(g *goRow) (*found, *stop) {
	f, end := u.byGoFrame(g)
	if end != nil {
		return nil, end
	}
	ret, _ := f.regs.get(u.arch.pc)
	m, t := u.p.Find(ret)
	if t == nil {
		return nil, u.outermost()
	}
	addr, _ := t.AddrOf(ret - m.Start + m.Offset)
	if t.inGo(addr-1) || !u.called(ret) {
		return nil, complete
	}
	return f, nil
}

// inGo says whether addr, link-time, is in a Go function.
func (t *Table) inGo(addr uint64) bool {
	if t.golang == nil {
		return false
	}
	_, _, ok := t.golang.Find(t.golang.word, addr-t.golang.Text)
	return ok
}

// byGoFrame goes by how far the stack pointer has moved since the function's entry.
func (u *unwinder) byGoFrame(g *goRow) (*found, *stop) {
	sp, ok := u.regs.get(u.arch.sp)
	if !ok {
		return nil, noTable(u.pc, errors.New("the stack pointer of Go code is not known"))
	}
	f := u.caller(found{how: kcdata.UserFramePclntab, exact: g.exact})
	if u.arch.lr < 0 {
		return f, u.goFramePushed(g, sp, f)
	}
	return f, u.goFrameLinked(g, sp, f)
}

// byFramePointerOf crosses from the scheduler's stack to the goroutine's, as far
// as both were taken. A frame pointer of 0 is that of a stack's first frame.
func (u *unwinder) byFramePointerOf(g *goRow) (*found, *stop) {
	fp, ok := u.regs.get(u.arch.fp)
	if !ok {
		return nil, noTable(u.pc, errors.New("a change of stacks without a frame pointer"))
	}
	if fp == 0 {
		return nil, u.outermost()
	}
	f, end := u.frameRecord(fp, kcdata.UserFrameFP)
	if end != nil {
		return nil, end
	}
	if u.arch.lr >= 0 {
		f.regs.set(u.arch.sp, fp+8+g.delta) // Go's record is one word below its frame
	}
	f.moved = true
	return f, nil
}

// goFramePushed: amd64. The call pushed the return address; a function with a
// frame pushes the frame pointer behind it and then points at it.
func (u *unwinder) goFramePushed(g *goRow, sp uint64, f *found) *stop {
	cfa := sp + g.delta + 8
	ret, _, end := u.word(cfa - 8)
	if end != nil {
		return end
	}
	f.regs.set(u.arch.sp, cfa)
	f.regs.set(u.arch.pc, ret)
	u.goFramePointer(cfa-16, f)
	return nil
}

// goFrameLinked: arm64. A function with a frame saves the link register at its
// bottom, and the frame pointer one word below.
func (u *unwinder) goFrameLinked(g *goRow, sp uint64, f *found) *stop {
	f.regs.set(u.arch.sp, sp+g.delta)
	u.goFramePointer(sp-8, f)
	if g.delta > 0 {
		ret, _, end := u.word(sp)
		f.regs.set(u.arch.pc, ret)
		return end
	}
	ret, ok := u.regs.get(u.arch.lr)
	if !ok || !u.exact {
		return noTable(u.pc, fmt.Errorf("code at %#x has no frame", u.pc))
	}
	f.how = kcdata.UserFrameLR
	f.regs.set(u.arch.pc, ret)
	return nil
}

// goFramePointer restores the frame pointer if the function has set its own,
// which says whether it has saved the caller's yet.
func (u *unwinder) goFramePointer(saved uint64, f *found) {
	fp, ok := u.regs.get(u.arch.fp)
	if !ok {
		return
	}
	if fp == saved {
		if fp, _, ok = u.mem.word(saved); !ok {
			return
		}
	}
	f.regs.set(u.arch.fp, fp)
}
