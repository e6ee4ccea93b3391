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
	err   error // the first one; it ends the evaluation
}

// evaluate runs code with first on the stack, nil for nothing.
func evaluate(code []byte, regs *registers, mem *memory, first ...uint64) (uint64, error) {
	e := &expression{in: cursor.Cursor{Data: code}, stack: first, regs: regs, mem: mem}
	for n := 0; e.in.Left() > 0 && e.err == nil; n++ {
		if n == maxOps {
			return 0, fmt.Errorf("DWARF expression of more than %d steps", maxOps)
		}
		e.step(e.in.U8())
		if e.in.Bad {
			e.fail(errors.New("DWARF expression ends early"))
		}
		if len(e.stack) > maxStack {
			e.fail(errStack)
		}
	}
	return e.pop(), e.err
}

func (e *expression) fail(err error) {
	if e.err == nil {
		e.err = err
	}
}

func (e *expression) push(v uint64) { e.stack = append(e.stack, v) }

// pop takes the last value; of an empty stack 0, which is an error.
func (e *expression) pop() uint64 {
	n := len(e.stack) - 1
	if n < 0 {
		e.fail(errStack)
		return 0
	}
	v := e.stack[n]
	e.stack = e.stack[:n]
	return v
}

// step does one operation, by its number in DWARF 5, table 7.9.
func (e *expression) step(op uint8) {
	switch {
	case op >= 0x30 && op <= 0x4f: // lit0-lit31
		e.push(uint64(op - 0x30))
	case op >= 0x70 && op <= 0x8f: // breg0-breg31
		e.register(uint64(op - 0x70))
	case op == 0x92: // bregx
		e.register(e.in.ULEB())
	case int(op) < len(constants) && constants[op] != nil:
		e.push(constants[op](&e.in))
	case op >= 0x12 && op <= 0x17:
		e.shuffle(op)
	case op == 0x06: // deref
		e.deref(8)
	case op == 0x94: // deref_size
		e.deref(int(e.in.U8()))
	case op == 0x19 || op == 0x1f || op == 0x20 || op == 0x23:
		e.unary(op)
	case int(op) < len(binaries) && binaries[op] != nil:
		e.binary(op)
	case op == 0x28 || op == 0x2f: // bra, skip
		e.branch(op)
	case op == 0x96: // nop
	default:
		e.fail(fmt.Errorf("DWARF expression: operation %#x", op))
	}
}

// register pushes the value of a register plus the offset behind it.
func (e *expression) register(reg uint64) {
	offset := e.in.SLEB()
	v, ok := e.regs.get(int(min(reg, maxRegister)))
	if !ok {
		e.fail(fmt.Errorf("register %d is not known", reg))
	}
	e.push(v + uint64(offset))
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

func (e *expression) shuffle(op uint8) {
	s, n := e.stack, len(e.stack)
	need := [...]int{0x12: 1, 0x13: 1, 0x14: 2, 0x15: 1, 0x16: 2, 0x17: 3}[op]
	if op == 0x15 {
		need += int(e.in.U8())
	}
	if n < need {
		e.fail(errStack)
		return
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
}

// deref replaces an address by the size bytes that lie there.
func (e *expression) deref(size int) {
	addr := e.pop()
	if size < 1 || size > 8 {
		e.fail(errStack)
		return
	}
	v, ok := e.mem.bytes(addr, size)
	if !ok {
		e.fail(errMemory(addr))
	}
	e.push(v)
}

func (e *expression) unary(op uint8) {
	v := e.pop()
	switch op {
	case 0x19: // abs
		if int64(v) < 0 {
			v = -v
		}
	case 0x1f: // neg
		v = -v
	case 0x20: // not
		v = ^v
	case 0x23: // plus_uconst
		v += e.in.ULEB()
	}
	e.push(v)
}

func (e *expression) binary(op uint8) {
	b, a := e.pop(), e.pop()
	if b == 0 && (op == 0x1b || op == 0x1d) {
		e.fail(errors.New("DWARF expression divides by zero"))
		return
	}
	e.push(binaries[op](a, b))
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

func (e *expression) branch(op uint8) {
	delta := int(int16(e.in.U16()))
	if op == 0x28 && e.pop() == 0 {
		return
	}
	to := e.in.Pos + delta
	if to < 0 || to > len(e.in.Data) {
		e.fail(errors.New("DWARF expression branches outside itself"))
		return
	}
	e.in.Pos = to
}
