package unwind

import (
	"errors"
	"math"
)

// Code without a table still says where its return address is: on every path from
// here to the function's ret, the instructions move the stack pointer there. C
// libraries such as musl have no tables at all.
//
// pathToRet follows the instructions and does not execute them: only what they do to
// the stack pointer, and which registers they pop, counts. It does not know whether a
// call returns. So its result counts only if a call instruction lies before the return
// address, and is certain only if that call leads here.

const (
	maxSteps = 4096 // instructions looked at for one program counter
	maxPaths = 256  // branches remembered
)

// codePath is a way through a function: the stack pointer is then off from the
// value that register base has now.
type codePath struct {
	at    uint64 // link-time
	base  int    // amd64.sp or amd64.fp
	off   int64
	saved [16]savedAt // by DWARF number
	calls bool        // it leads over a call, which may not return
}

// dwarfNumber is DWARF's number of a register by the machine's.
var dwarfNumber = [16]int{0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15}

type savedAt struct {
	base int // 0: not popped
	off  int64
}

// pathToRet looks for the path from start to a ret. It goes straight on as far as it
// can, and then takes the branches in the order in which it met them.
func pathToRet(v *codeView, start uint64) (codePath, error) {
	seen := make(map[uint64]bool)
	paths := []codePath{{at: start, base: amd64.sp}}
	for n, steps := 0, 0; n < len(paths); n++ {
		for p := paths[n]; !seen[p.at] && steps < maxSteps; steps++ {
			seen[p.at] = true
			in, ok := v.decode(p.at)
			if !ok {
				break
			}
			if in.kind == insRet {
				return p, nil
			}
			if in.kind == insBranch && len(paths) < maxPaths {
				other := p
				other.at = in.target(p.at)
				paths = append(paths, other)
			}
			if !p.step(in) {
				break
			}
		}
	}
	if v.err != nil {
		return codePath{}, v.err
	}
	return codePath{}, errNoPath
}

var errNoPath = errors.New("no way to the end of the function is seen")

// step goes on behind an instruction; false: the path ends.
func (p *codePath) step(in instruction) bool {
	from := p.at
	p.at += uint64(in.next)
	switch in.kind {
	case insJump:
		p.at = in.target(from)
	case insEnd, insLoseSP:
		return false
	case insCall:
		p.calls = true
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
	return p.off > math.MinInt32 && p.off < math.MaxInt32
}

// pathAt is pathToRet at a link-time address, remembered if all of it could be read.
func (t *Table) pathAt(addr uint64) (codePath, error) {
	got, ok := t.paths.get(addr)
	if !ok {
		v := codeView{t: t}
		if got.found, got.err = pathToRet(&v, addr); v.err == nil {
			t.paths.put(addr, got)
		}
	}
	return got.found, got.err
}

const (
	maxInstruction = 15 // bytes
	maxWindows     = 8  // pieces of code of maxCode bytes that one question reads
)

// codeView is the code of a file, by link-time address, as one question needs it:
// jumps lead out of what was read first. Used by one goroutine.
type codeView struct {
	t       *Table
	windows []codeWindow
	err     error // of reading
}

type codeWindow struct {
	start uint64
	data  []byte
}

// decode reads the instruction at addr; false: there is none that is known.
func (v *codeView) decode(addr uint64) (instruction, bool) { return decode(v.from(addr)) }

// from is the code from addr on: a whole instruction, unless the segment ends there.
func (v *codeView) from(addr uint64) []byte {
	for _, w := range v.windows {
		off := addr - w.start
		if n := uint64(len(w.data)); off < n && (n-off >= maxInstruction || n < maxCode) {
			return w.data[off:]
		}
	}
	if v.err != nil || len(v.windows) == maxWindows {
		return nil
	}
	data, err := v.t.codeAt(addr, maxCode)
	if err != nil {
		v.err = err
		return nil
	}
	v.windows = append(v.windows, codeWindow{addr, data})
	return data
}

// target is where a jump at addr leads.
func (in instruction) target(addr uint64) uint64 {
	return addr + uint64(in.next) + uint64(in.value)
}
