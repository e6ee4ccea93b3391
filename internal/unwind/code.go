package unwind

import (
	"encoding/binary"
	"fmt"

	"stackshot/kcdata"
)

// withoutTable finds the caller of code that no table of its file covers.
func (u *unwinder) withoutTable(t *Table, addr, lookup uint64) (*found, *stop) {
	u.flags |= kcdata.UserNoUnwindTable
	if u.arch != &amd64 {
		return u.guess()
	}
	at := addr + u.pc - lookup
	path, err := t.pathAt(at)
	end := noTable(u.pc, err)
	if err == nil {
		var f *found
		if f, end = u.byPath(&path); end == nil {
			if ret, _ := f.regs.get(u.arch.pc); ret == 0 {
				return u.pathToZero(t, at, f)
			}
			if f.returns = u.ownPath(t, at, &path, f); !f.returns {
				u.flags |= kcdata.UserCallersUnsure
			}
			return f, nil
		}
	}
	if u.leaf || end.flag != kcdata.UserNoUnwindTable {
		return nil, end
	}
	return u.byOwnFramePointer(t, at, end)
}

// pathToZero is for a path that ends in a return address of 0. Behind a call that does
// not return, the path is another function's, and the word that it leads to is often 0.
// So the function's own frame pointer counts first. Without one the frame is taken for
// the outermost, and nothing proves it.
func (u *unwinder) pathToZero(t *Table, at uint64, f *found) (*found, *stop) {
	if !u.leaf {
		if own, end := u.byOwnFramePointer(t, at, complete); end == nil {
			return own, nil
		}
	}
	u.flags |= kcdata.UserCallersUnsure
	return f, nil
}

// guess believes the frame pointer. A function without a frame, or one that uses the
// register for something else, then hides its callers.
func (u *unwinder) guess() (*found, *stop) {
	f, end := u.byFramePointer()
	if end == nil || end == complete {
		u.flags |= kcdata.UserCallersUnsure
	}
	return f, end
}

// byOwnFramePointer is for code that has called, and whose instructions do not say
// where it returns to: it does not return, or ends in a special way, as functions of
// language runtimes do. It believes the record at the frame pointer if a call leads
// there. Only ownFrame can prove that no caller is missing. Threads begin with a frame
// pointer of 0, so 0 counts as the outermost frame, without being a proof of it.
func (u *unwinder) byOwnFramePointer(t *Table, at uint64, why *stop) (*found, *stop) {
	f, end := u.byFramePointer()
	switch {
	case end == complete:
		u.flags |= kcdata.UserCallersUnsure
		return nil, complete
	case end != nil && end.flag == kcdata.UserNoMoreBytes:
		return nil, end
	case end != nil:
		return nil, why
	}
	ret, _ := f.regs.get(u.arch.pc)
	if ret != 0 && !u.called(ret) {
		return nil, why
	}
	if !u.ownFrame(t, at, ret) {
		u.flags |= kcdata.UserCallersUnsure
	}
	return f, nil
}

// ownFrame says whether the frame record is that of the function at hand: the call
// before the return address leads to code that makes a frame and then comes to at,
// with the stack pointer as far below that frame as it is. What a call through a
// register or memory leads to is not known.
func (u *unwinder) ownFrame(t *Table, at, ret uint64) bool {
	made, sp := u.madeBy(t, at, ret)
	fp, _ := u.regs.get(u.arch.fp)
	return made.framed && !made.loose && fp-sp == made.above
}

// ownPath says whether a path leads out of the function at hand. Behind a call that does
// not return lies another function, whose path would skip callers. A path without calls
// is the function's own if it begins where the function stands, or where a callee is
// known to return to. Otherwise the call before the return address must lead to code
// that comes to at, equally deep in the stack.
func (u *unwinder) ownPath(t *Table, at uint64, p *codePath, f *found) bool {
	if (u.leaf || u.returns) && !p.calls {
		return true
	}
	ret, _ := f.regs.get(u.arch.pc)
	above, _ := f.regs.get(u.arch.sp)
	made, sp := u.madeBy(t, at, ret)
	if p.base == amd64.fp && p.off == -recordOff {
		return made.framed
	}
	return made.reached && above-8-sp == made.depth
}

// madeBy is what the function that the call before ret leads to has made of its stack
// when it comes to at, and where the stack pointer is; nothing if either is not known.
func (u *unwinder) madeBy(t *Table, at, ret uint64) (frameResult, uint64) {
	sp, known := u.regs.get(u.arch.sp)
	entry, ok := u.calledBefore(t, ret)
	if !ok || !known {
		return frameResult{}, 0
	}
	return t.frameAt(entry, at), sp
}

// calledBefore is where the direct call before a return address leads to, link-time,
// if that is in the same file.
func (u *unwinder) calledBefore(t *Table, ret uint64) (entry uint64, ok bool) {
	m, other := u.p.Find(ret)
	if m == nil || other != t {
		return 0, false
	}
	addr, ok := t.AddrOf(ret - m.Start + m.Offset)
	if !ok {
		return 0, false
	}
	code, err := t.codeAt(addr-5, 5)
	if err != nil || len(code) < 5 || code[0] != 0xe8 {
		return 0, false
	}
	return addr + uint64(int64(int32(binary.LittleEndian.Uint32(code[1:])))), true
}

func (u *unwinder) byPath(p *codePath) (*found, *stop) {
	read := func(s savedAt) (uint64, *stop) {
		v, ok := u.regs.get(s.base)
		if !ok {
			return 0, noTable(u.pc, fmt.Errorf("register %d is not known", s.base))
		}
		v, _, end := u.word(v + uint64(s.off))
		return v, end
	}
	ret, end := read(savedAt{p.base, p.off})
	if end != nil {
		return nil, end
	}
	if ret != 0 && !u.called(ret) {
		return nil, noTable(u.pc, fmt.Errorf("no call leads to %#x", ret))
	}
	f := u.caller(found{regs: u.regs, how: kcdata.UserFrameCode})
	for reg, s := range p.saved {
		if s.base == 0 {
			continue
		}
		if v, end := read(s); end == nil {
			f.regs.set(reg, v)
		} else {
			f.regs.forget(reg)
		}
	}
	base, _ := u.regs.get(p.base)
	f.regs.set(u.arch.sp, base+uint64(p.off)+8)
	f.regs.set(u.arch.pc, ret)
	return f, nil
}

// called says whether a call instruction ends at a return address, or a signal
// handler returns to it.
func (u *unwinder) called(ret uint64) bool {
	m, t := u.p.Find(ret)
	if m == nil || t == nil {
		return m != nil // generated code: cannot be looked at
	}
	addr, ok := t.AddrOf(ret - m.Start + m.Offset)
	if !ok {
		return false
	}
	if t.restores(addr) {
		return true
	}
	if u.arch.lr >= 0 {
		code, err := t.codeAt(addr-4, 4)
		return err == nil && isLinkedCall(code)
	}
	code, err := t.codeAt(addr-7, 7)
	return err == nil && endsWithCall(code)
}

// isLinkedCall knows arm64's BL and BLR, the latter with authentication too.
func isLinkedCall(code []byte) bool {
	if len(code) < 4 {
		return false
	}
	in := binary.LittleEndian.Uint32(code)
	return in&0xfc000000 == 0x94000000 || in&0xfefff000 == 0xd63f0000
}

// endsWithCall knows call rel32 and call through a register or memory.
func endsWithCall(code []byte) bool {
	if len(code) < 7 {
		return false
	}
	if code[2] == 0xe8 {
		return true
	}
	for n := 2; n <= 7; n++ {
		if in, ok := decode(code[7-n:]); ok && in.next == n && in.kind == insCall {
			return true
		}
	}
	return false
}
