package unwind

import (
	"errors"
	"fmt"
	"math"

	"stackshot/kcdata"
)

// Code without a table still says where its return address is: whatever path
// leads from here to the function's ret, the instructions on it put the stack
// pointer there. C libraries such as musl have no tables at all.
//
// The path is followed over the instructions, not run: only what they do to the
// stack pointer and which registers they pop counts. It cannot be told that a
// call does not return, so what comes out is believed only if a call instruction
// lies before the return address.

const (
	maxSteps = 4096 // instructions looked at for one program counter
	maxPaths = 256  // branches remembered
)

// codePath is a way through a function: the stack pointer is then off from the
// value that register base has now.
type codePath struct {
	at    int // in the code
	base  int // amd64.sp or amd64.fp
	off   int64
	saved [16]savedAt // by DWARF number
}

// dwarfNumber is DWARF's number of a register by the machine's.
var dwarfNumber = [16]int{0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15}

type savedAt struct {
	base int // 0: not popped
	off  int64
}

// pathToRet looks for the path from the first byte of code to a ret. It goes
// straight on where it can, and takes branches in the order it met them.
func pathToRet(code []byte) (codePath, error) {
	seen := make([]bool, len(code))
	paths := []codePath{{base: amd64.sp}}
	for n, steps := 0, 0; n < len(paths); n++ {
		for p := paths[n]; p.at < len(code) && !seen[p.at] && steps < maxSteps; steps++ {
			seen[p.at] = true
			in, ok := decode(code, p.at)
			if !ok {
				break
			}
			if in.kind == insRet {
				return p, nil
			}
			if in.kind == insBranch && in.target >= 0 && len(paths) < maxPaths {
				other := p
				other.at = in.target
				paths = append(paths, other)
			}
			if !p.step(in) {
				break
			}
		}
	}
	return codePath{}, errors.New("no way to the end of the function is seen")
}

// step goes on behind an instruction; false: the path ends.
func (p *codePath) step(in instruction) bool {
	p.at = in.next
	switch in.kind {
	case insJump:
		p.at = in.target
	case insEnd:
		return false
	case insPush:
		p.off -= 8
	case insPop:
		reg := dwarfNumber[in.reg&15]
		if reg == amd64.sp {
			return false
		}
		if p.saved[reg].base == 0 {
			p.saved[reg] = savedAt{p.base, p.off}
		}
		p.off += 8
	case insMoveSP:
		p.off += in.value
	case insSetSP: // from the frame pointer, while it is the function's own
		if p.saved[amd64.fp].base != 0 {
			return false
		}
		p.base, p.off = amd64.fp, in.value
	case insLeave:
		if p.saved[amd64.fp].base != 0 {
			return false
		}
		p.saved[amd64.fp] = savedAt{amd64.fp, 0}
		p.base, p.off = amd64.fp, 8
	}
	return p.at >= 0 && p.off > math.MinInt32 && p.off < math.MaxInt32
}

// withoutTable finds the caller of code that no table of its file covers.
func (u *unwinder) withoutTable(t *Table, addr, lookup uint64) (*found, *stop) {
	u.flags |= kcdata.UserNoUnwindTable
	if u.arch != &amd64 {
		return u.byFramePointer()
	}
	path, err := t.pathAt(addr + u.pc - lookup)
	end := noTable(u.pc, err)
	if err == nil {
		var f *found
		if f, end = u.byPath(&path); end == nil {
			return f, nil
		}
	}
	if u.leaf || end.flag != kcdata.UserNoUnwindTable {
		return nil, end
	}
	return u.byOwnFramePointer(end)
}

// byOwnFramePointer is for code that has called and whose instructions do not say
// where it returns to: run times end their functions in ways of their own. What
// lies at its frame pointer is believed if a call leads there.
func (u *unwinder) byOwnFramePointer(why *stop) (*found, *stop) {
	f, end := u.byFramePointer()
	switch {
	case end == complete:
		return nil, complete // it does not return, and threads begin with a frame pointer of 0
	case end != nil && end.flag == kcdata.UserNoMoreBytes:
		return nil, end
	case end != nil:
		return nil, why
	}
	if ret, _ := f.regs.get(u.arch.pc); ret != 0 && !u.called(ret) {
		return nil, why
	}
	return f, nil
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
	f := u.caller(found{regs: u.regs, how: kcdata.UserFrameCFI})
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
	code, err := t.codeAt(addr-7, 7)
	return err == nil && endsWithCall(code)
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
		at := 7 - n
		in, ok := decode(append([]byte(nil), code[at:]...), 0)
		if ok && in.next == n && in.kind == insCall {
			return true
		}
	}
	return false
}

// pathAt is pathToRet at a link-time address, remembered.
func (t *Table) pathAt(addr uint64) (codePath, error) {
	got, ok := t.paths.get(addr)
	if !ok {
		code, err := t.codeAt(addr, maxCode)
		if err != nil {
			return codePath{}, err
		}
		got.path, got.err = pathToRet(code)
		t.paths.put(addr, got)
	}
	return got.path, got.err
}

type pathResult struct {
	path codePath
	err  error
}
