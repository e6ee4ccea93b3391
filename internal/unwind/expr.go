package unwind

import (
	"errors"
	"fmt"

	"stackshot/internal/cursor"
)

const (
	maxOps   = 1000 // operations run of one expression
	maxStack = 64
)

var errStack = errors.New("DWARF expression: its stack is too small or too large")

// errMemory says that an address was wanted which is not among the bytes.
type errMemory uint64

func (e errMemory) Error() string { return fmt.Sprintf("no memory at %#x", uint64(e)) }

// expression evaluates what occurs in call frame information: constants,
// registers, arithmetic, comparisons, branches and memory.
type expression struct {
	in    cursor.Cursor
	stack []uint64
	regs  *registers
	mem   *memory
}

// evaluate runs code with first on the stack, nil for nothing.
func evaluate(code []byte, regs *registers, mem *memory, first ...uint64) (uint64, error) {
	e := &expression{in: cursor.Cursor{Data: code}, stack: first, regs: regs, mem: mem}
	for n := 0; e.in.Left() > 0; n++ {
		if n == maxOps {
			return 0, fmt.Errorf("DWARF expression of more than %d steps", maxOps)
		}
		if err := e.step(e.in.U8()); err != nil {
			return 0, err
		}
		if e.in.Bad {
			return 0, errors.New("DWARF expression ends early")
		}
		if len(e.stack) > maxStack {
			return 0, errStack
		}
	}
	v, ok := e.pop()
	if !ok {
		return 0, errStack
	}
	return v, nil
}

func (e *expression) push(v uint64) { e.stack = append(e.stack, v) }

func (e *expression) pop() (uint64, bool) {
	n := len(e.stack) - 1
	if n < 0 {
		return 0, false
	}
	v := e.stack[n]
	e.stack = e.stack[:n]
	return v, true
}

// Operations, by their numbers in DWARF 5 table 7.9.
func (e *expression) step(op uint8) error {
	switch {
	case op >= 0x30 && op <= 0x4f: // lit0-lit31
		e.push(uint64(op - 0x30))
		return nil
	case op >= 0x70 && op <= 0x8f: // breg0-breg31
		return e.register(int(op-0x70), e.in.SLEB())
	case op == 0x92: // bregx
		reg := e.in.ULEB()
		return e.register(int(min(reg, maxRegister)), e.in.SLEB())
	case int(op) < len(constants) && constants[op] != nil:
		e.push(constants[op](&e.in))
		return nil
	case op >= 0x12 && op <= 0x17:
		return e.shuffle(op)
	case op == 0x06 || op == 0x94: // deref, deref_size
		return e.deref(op)
	case op == 0x19 || op == 0x1f || op == 0x20 || op == 0x23:
		return e.unary(op)
	case int(op) < len(binaries) && binaries[op] != nil:
		return e.binary(op)
	case op == 0x28 || op == 0x2f: // bra, skip
		return e.branch(op)
	case op == 0x96: // nop
		return nil
	}
	return fmt.Errorf("DWARF expression: operation %#x", op)
}

func (e *expression) register(reg int, offset int64) error {
	v, ok := e.regs.get(reg)
	if !ok {
		return fmt.Errorf("register %d is not known", reg)
	}
	e.push(v + uint64(offset))
	return nil
}

// constants are the operations that push what stands behind them.
var constants = [0x12]func(in *cursor.Cursor) uint64{
	0x03: (*cursor.Cursor).U64, // addr
	0x08: func(in *cursor.Cursor) uint64 { return uint64(in.U8()) },
	0x09: func(in *cursor.Cursor) uint64 { return uint64(int8(in.U8())) },
	0x0a: func(in *cursor.Cursor) uint64 { return uint64(in.U16()) },
	0x0b: func(in *cursor.Cursor) uint64 { return uint64(int16(in.U16())) },
	0x0c: func(in *cursor.Cursor) uint64 { return uint64(in.U32()) },
	0x0d: func(in *cursor.Cursor) uint64 { return uint64(int32(in.U32())) },
	0x0e: (*cursor.Cursor).U64,
	0x0f: (*cursor.Cursor).U64,
	0x10: (*cursor.Cursor).ULEB,
	0x11: func(in *cursor.Cursor) uint64 { return uint64(in.SLEB()) },
}

func (e *expression) shuffle(op uint8) error {
	s, n := e.stack, len(e.stack)
	need := [...]int{0x12: 1, 0x13: 1, 0x14: 2, 0x15: 1, 0x16: 2, 0x17: 3}[op]
	if op == 0x15 {
		need += int(e.in.U8())
	}
	if n < need {
		return errStack
	}
	switch op {
	case 0x12, 0x14, 0x15: // dup, over, pick
		e.push(s[n-need])
	case 0x13: // drop
		e.stack = s[:n-1]
	case 0x16: // swap
		s[n-1], s[n-2] = s[n-2], s[n-1]
	case 0x17: // rot
		s[n-1], s[n-2], s[n-3] = s[n-2], s[n-3], s[n-1]
	}
	return nil
}

func (e *expression) deref(op uint8) error {
	size := 8
	if op == 0x94 {
		size = int(e.in.U8())
	}
	addr, ok := e.pop()
	if !ok || size < 1 || size > 8 {
		return errStack
	}
	v, ok := e.mem.bytes(addr, size)
	if !ok {
		return errMemory(addr)
	}
	e.push(v)
	return nil
}

func (e *expression) unary(op uint8) error {
	v, ok := e.pop()
	if !ok {
		return errStack
	}
	switch op {
	case 0x19: // abs
		if int64(v) < 0 {
			v = -v
		}
	case 0x1f:
		v = -v
	case 0x20:
		v = ^v
	case 0x23: // plus_uconst
		v += e.in.ULEB()
	}
	e.push(v)
	return nil
}

func (e *expression) binary(op uint8) error {
	b, _ := e.pop()
	a, ok := e.pop()
	if !ok {
		return errStack
	}
	if b == 0 && (op == 0x1b || op == 0x1d) {
		return errors.New("DWARF expression divides by zero")
	}
	e.push(binaries[op](a, b))
	return nil
}

// binaries are the operations on two values; comparisons are signed.
var binaries = [0x30]func(a, b uint64) uint64{
	0x1a: func(a, b uint64) uint64 { return a & b },
	0x1b: func(a, b uint64) uint64 { return uint64(int64(a) / int64(b)) },
	0x1c: func(a, b uint64) uint64 { return a - b },
	0x1d: func(a, b uint64) uint64 { return a % b },
	0x1e: func(a, b uint64) uint64 { return a * b },
	0x21: func(a, b uint64) uint64 { return a | b },
	0x22: func(a, b uint64) uint64 { return a + b },
	0x24: func(a, b uint64) uint64 { return a << b },
	0x25: func(a, b uint64) uint64 { return a >> b },
	0x26: func(a, b uint64) uint64 { return uint64(int64(a) >> b) },
	0x27: func(a, b uint64) uint64 { return a ^ b },
	0x29: func(a, b uint64) uint64 { return truth(a == b) },
	0x2a: func(a, b uint64) uint64 { return truth(int64(a) >= int64(b)) },
	0x2b: func(a, b uint64) uint64 { return truth(int64(a) > int64(b)) },
	0x2c: func(a, b uint64) uint64 { return truth(int64(a) <= int64(b)) },
	0x2d: func(a, b uint64) uint64 { return truth(int64(a) < int64(b)) },
	0x2e: func(a, b uint64) uint64 { return truth(a != b) },
}

func truth(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

func (e *expression) branch(op uint8) error {
	delta := int(int16(e.in.U16()))
	if op == 0x28 {
		v, ok := e.pop()
		if !ok {
			return errStack
		}
		if v == 0 {
			return nil
		}
	}
	to := e.in.Pos + delta
	if to < 0 || to > len(e.in.Data) {
		return errors.New("DWARF expression branches outside itself")
	}
	e.in.Pos = to
	return nil
}
