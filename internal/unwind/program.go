package unwind

import (
	"encoding/binary"
	"fmt"

	"github.com/go-delve/delve/pkg/dwarf/frame"

	"stackshot/internal/cursor"
)

// Call frame instructions that delve's reader does not know, or reads otherwise
// than the standard or the compilers mean; the rest are its constants.
const (
	cfaNegateRAStatePC   = 0x2c // arm64: says only how a return address is signed
	cfaNegateRAState     = 0x2d // the same
	cfaGNUArgsSize       = 0x2e // of no use for unwinding
	cfaGNUNegativeOffset = 0x2f
)

// Caps of one program. The largest seen in 2,000 files of a distribution: 20,051
// bytes of an FDE, 23 of a CIE.
const (
	maxProgram    = 1 << 16 // bytes of call frame instructions, rewritten too
	maxRegister   = 255
	maxSaved      = 256     // remembered states
	maxSaves      = 1 << 18 // rules in all states that are remembered: each is copied
	maxExpression = 256     // bytes
)

// program rewrites call frame instructions for delve's reader, which trusts them:
// it panics where they end early, takes DW_CFA_restore for "undefined", forgets
// the data alignment of DW_CFA_val_offset, and has no vendor instructions.
type program struct {
	in      cursor.Cursor
	out     []byte
	fde     *fde
	section *frameSection
	initial map[uint64][]byte // what the CIE says of a register; nil while in the CIE
	rules   map[uint64][]byte // what the instructions rewritten so far say
	depth   int
	saves   int // rules remembered so far
}

// portable returns the CIE's and the FDE's instructions in a form that delve's
// reader runs as they are meant.
func portable(s *frameSection, f *fde) (common, own []byte, err error) {
	p := &program{section: s, fde: f, rules: map[uint64][]byte{}}
	if common, err = p.rewrite(f.cie.instructions); err != nil {
		return nil, nil, err
	}
	p.initial, p.rules = p.rules, map[uint64][]byte{}
	own, err = p.rewrite(f.instructions)
	return common, own, err
}

func (p *program) rewrite(instructions []byte) ([]byte, error) {
	if len(instructions) > maxProgram {
		return nil, fmt.Errorf("%d bytes of call frame instructions", len(instructions))
	}
	p.in, p.out, p.depth = cursor.Cursor{Data: instructions}, make([]byte, 0, len(instructions)), 0
	for p.in.Left() > 0 {
		if err := p.instruction(); err != nil {
			return nil, err
		}
		if p.in.Bad {
			return nil, fmt.Errorf("call frame instructions end early")
		}
		if len(p.out) > maxProgram { // one byte may say again what many said
			return nil, fmt.Errorf("more than %d bytes of call frame instructions", maxProgram)
		}
	}
	return p.out, nil
}

func (p *program) instruction() error {
	start := p.in.Pos
	op := p.in.U8()
	switch op & 0xc0 {
	case frame.DW_CFA_advance_loc:
		p.keep(start)
		return nil
	case frame.DW_CFA_offset:
		p.in.ULEB()
		return p.rule(uint64(op&0x3f), start)
	case frame.DW_CFA_restore:
		return p.restore(uint64(op & 0x3f))
	}
	return p.extended(op, start)
}

func (p *program) extended(op uint8, start int) error {
	in := &p.in
	switch op {
	case frame.DW_CFA_nop, cfaNegateRAState, cfaNegateRAStatePC:
		return nil
	case cfaGNUArgsSize:
		in.ULEB()
		return nil
	case frame.DW_CFA_set_loc:
		p.setLoc()
		return nil
	case frame.DW_CFA_advance_loc1:
		in.Take(1)
	case frame.DW_CFA_advance_loc2:
		in.Take(2)
	case frame.DW_CFA_advance_loc4:
		in.Take(4)
	case frame.DW_CFA_def_cfa, frame.DW_CFA_def_cfa_sf:
		in.ULEB()
		in.SLEB()
	case frame.DW_CFA_def_cfa_register, frame.DW_CFA_def_cfa_offset, frame.DW_CFA_def_cfa_offset_sf:
		in.SLEB()
	case frame.DW_CFA_def_cfa_expression:
		p.expression()
	case frame.DW_CFA_remember_state:
		p.saves += 1 + len(p.initial) + len(p.rules)
		if p.depth++; p.depth > maxSaved || p.saves > maxSaves {
			return fmt.Errorf("more remembered states than %d, or rules in them than %d", maxSaved, maxSaves)
		}
	case frame.DW_CFA_restore_state:
		if p.depth--; p.depth < 0 {
			return fmt.Errorf("a state is restored that was not remembered")
		}
	default:
		return p.register(op, start)
	}
	p.keep(start)
	return nil
}

// register handles the instructions whose first operand is a register.
func (p *program) register(op uint8, start int) error {
	in := &p.in
	reg := in.ULEB()
	switch op {
	case frame.DW_CFA_restore_extended:
		return p.restore(reg)
	case frame.DW_CFA_undefined, frame.DW_CFA_same_value:
	case frame.DW_CFA_offset_extended, frame.DW_CFA_register, frame.DW_CFA_offset_extended_sf, frame.DW_CFA_val_offset_sf:
		in.SLEB()
	case frame.DW_CFA_expression, frame.DW_CFA_val_expression:
		p.expression()
	case frame.DW_CFA_val_offset:
		return p.restate(reg, frame.DW_CFA_val_offset_sf, int64(in.ULEB()))
	case cfaGNUNegativeOffset:
		return p.restate(reg, frame.DW_CFA_offset_extended_sf, -int64(in.ULEB()))
	default:
		return fmt.Errorf("call frame instruction %#x", op)
	}
	return p.rule(reg, start)
}

// expression passes over an expression. Rows keep them, so a long one is refused.
func (p *program) expression() {
	n := p.in.ULEB()
	p.in.Bad = p.in.Bad || n > maxExpression
	p.in.Take(n)
}

// keep copies the instruction that begins at start.
func (p *program) keep(start int) { p.out = append(p.out, p.in.Data[start:p.in.Pos]...) }

// rule copies an instruction that sets the rule of reg.
func (p *program) rule(reg uint64, start int) error {
	if reg > maxRegister {
		return fmt.Errorf("register %d", reg)
	}
	p.rules[reg] = p.in.Data[start:p.in.Pos]
	p.keep(start)
	return nil
}

// restate writes the rule of reg with a signed, factored offset.
func (p *program) restate(reg uint64, op byte, offset int64) error {
	if reg > maxRegister {
		return fmt.Errorf("register %d", reg)
	}
	text := cursor.AppendSLEB(binary.AppendUvarint([]byte{op}, reg), offset)
	p.rules[reg] = text
	p.out = append(p.out, text...)
	return nil
}

// restore says again what the CIE said of reg: if nothing, its value is the
// caller's.
func (p *program) restore(reg uint64) error {
	if reg > maxRegister {
		return fmt.Errorf("register %d", reg)
	}
	if p.initial == nil {
		return fmt.Errorf("a CIE restores register %d", reg)
	}
	text, ok := p.initial[reg]
	if !ok {
		text = binary.AppendUvarint([]byte{frame.DW_CFA_same_value}, reg)
	}
	p.out = append(p.out, text...)
	return nil
}

// setLoc decodes the address, of which delve's reader knows one form.
func (p *program) setLoc() {
	base := p.section.addr
	if len(p.section.data) > 0 && len(p.in.Data) > 0 {
		base += uint64(cap(p.section.data) - cap(p.in.Data)) // in.data is a part of data
	}
	loc := p.section.pointer(&p.in, p.fde.cie.encoding, base)
	p.out = append(p.out, frame.DW_CFA_set_loc)
	p.out = binary.LittleEndian.AppendUint64(p.out, loc)
}

// run executes the rewritten instructions up to pc by delve's reader, from a
// .debug_frame of one CIE and one FDE with plain addresses.
func run(f *fde, common, own []byte, pc uint64) (ctx *frame.FrameContext, err error) {
	// Everything that it is known to panic on has been refused above; the
	// reader is somebody else's all the same.
	defer func() {
		if r := recover(); r != nil {
			ctx, err = nil, fmt.Errorf("call frame instructions: %v", r)
		}
	}()
	entries, err := frame.Parse(plainRecords(f, common, own), binary.LittleEndian, 0, 8, 0)
	if err != nil {
		return nil, err
	}
	return entries[0].EstablishFrame(pc)
}

func plainRecords(f *fde, common, own []byte) []byte {
	body := append(binary.LittleEndian.AppendUint32(nil, 0xffffffff), 3, 0) // CIE id, version, no augmentation
	body = binary.AppendUvarint(body, f.cie.codeAlign)
	body = cursor.AppendSLEB(body, f.cie.dataAlign)
	body = append(binary.AppendUvarint(body, f.cie.retReg), common...)
	out := append(binary.LittleEndian.AppendUint32(nil, uint32(len(body))), body...)

	body = binary.LittleEndian.AppendUint32(nil, 0) // the CIE is at 0
	body = binary.LittleEndian.AppendUint64(body, f.begin)
	body = append(binary.LittleEndian.AppendUint64(body, f.end-f.begin), own...)
	out = binary.LittleEndian.AppendUint32(out, uint32(len(body)))
	return append(out, body...)
}
