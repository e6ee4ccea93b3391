package unwind

import "stackshot/internal/cursor"

// What an amd64 instruction does to the stack pointer.
type insKind uint8

const (
	insOther  insKind = iota
	insRet            // return
	insEnd            // nothing comes after it, or what it does is not known
	insJump           // by value, from behind it
	insBranch         // that, or on
	insCall           // the stack pointer is the same afterwards
	insPush           // eight bytes: reg, -1 for anything else
	insPop            // into reg
	insMoveSP         // by value
	insSetSP          // to the frame pointer plus value
	insLoseSP         // by what is not known: room of a size that was computed, an alignment
	insLeave          // frame pointer to stack pointer, pop frame pointer
	insSetFP          // to the stack pointer
)

// The stack pointer and the frame pointer as the machine numbers them.
const (
	machineSP = 4
	machineFP = 5
)

type instruction struct {
	kind  insKind
	reg   int
	value int64
	next  int // its length, bytes
}

// decoder is the state of reading one instruction. The encodings are those of
// Intel's manual, volume 2, appendix A, as far as compilers and C libraries use
// them in 64-bit mode.
type decoder struct {
	c     cursor.Cursor
	rex   uint8
	short bool // operand size prefix
	op    uint8
	modrm uint8
	mode  uint8 // two upper bits of modrm
	reg   int   // middle bits of modrm
	rm    int   // lower bits, with REX.B
	base  int   // base register of a memory operand; -1: other
	disp  int64
}

// Forms of operands.
const (
	formModRM = 1 << iota
	formImm8
	formImm16
	formImm // of the operand size, at most four bytes
	formBad
)

// decode reads the instruction that code begins with; false: it is not known, or
// does not end in code.
func decode(code []byte) (instruction, bool) {
	d := &decoder{c: cursor.Cursor{Data: code}, base: -1}
	d.prefixes()
	in := d.one()
	in.next = d.c.Pos
	return in, !d.c.Bad
}

func (d *decoder) prefixes() {
	for range 14 { // an instruction has at most 15 bytes
		d.op = d.c.U8()
		switch d.op {
		case 0x66:
			d.short = true
		case 0x26, 0x2e, 0x36, 0x3e, 0x64, 0x65, 0x67, 0xf0, 0xf2, 0xf3:
		default:
			if d.op&0xf0 == 0x40 {
				d.rex, d.op = d.op, d.c.U8()
			}
			return
		}
	}
}

func (d *decoder) one() instruction {
	switch d.op {
	case 0x0f:
		return d.two()
	case 0xc4:
		b := d.c.U8()
		d.c.U8()
		return d.extended(b & 0x1f)
	case 0xc5:
		d.c.U8()
		return d.extended(1)
	case 0x62:
		b := d.c.U8()
		d.c.Take(2)
		return d.extended(b & 7)
	}
	form := oneByte(d.op)
	if form&formBad != 0 {
		d.c.Bad = true
	}
	if form&formModRM != 0 {
		d.operand()
	}
	value := d.immediate(form)
	return d.meaning(value)
}

// two reads the instructions behind 0x0f.
func (d *decoder) two() instruction {
	switch op := d.c.U8(); {
	case op == 0x0b || op == 0xff: // ud2, ud0
		return instruction{kind: insEnd}
	case op >= 0x80 && op <= 0x8f:
		return instruction{kind: insBranch, value: int64(int32(d.c.U32()))}
	case op == 0x38:
		d.op = d.c.U8()
		d.operand()
	case op == 0x3a:
		d.op = d.c.U8()
		d.operand()
		d.c.U8()
	case op == 0x05 || op == 0x06 || op >= 0x30 && op <= 0x37 || op == 0x77 || op == 0xa2 || op == 0xaa || op >= 0xc8 && op <= 0xcf:
	case op == 0xa0 || op == 0xa8:
		return instruction{kind: insPush, reg: -1}
	case op == 0xa1 || op == 0xa9:
		return instruction{kind: insMoveSP, value: 8}
	default:
		d.operand()
		if immediateOfTwo(op) {
			d.c.U8()
		}
	}
	return instruction{}
}

func immediateOfTwo(op uint8) bool {
	switch op {
	case 0x70, 0x71, 0x72, 0x73, 0xa4, 0xac, 0xba, 0xc2, 0xc4, 0xc5, 0xc6:
		return true
	}
	return false
}

// extended reads what is behind a VEX or EVEX prefix.
func (d *decoder) extended(table uint8) instruction {
	op := d.c.U8()
	if table == 1 && op == 0x77 {
		return instruction{}
	}
	d.operand()
	if table == 3 || table == 1 && immediateOfTwo(op) {
		d.c.U8()
	}
	return instruction{}
}

func oneByte(op uint8) int {
	switch {
	case op < 0x40:
		return [8]int{formModRM, formModRM, formModRM, formModRM, formImm8, formImm, formBad, formBad}[op&7]
	case op >= 0x50 && op <= 0x5f, op >= 0x6c && op <= 0x6f, op >= 0x90 && op <= 0x99, op >= 0x9b && op <= 0x9f:
		return 0
	case op >= 0x70 && op <= 0x7f, op >= 0xb0 && op <= 0xb7, op >= 0xe0 && op <= 0xe7:
		return formImm8
	case op >= 0x84 && op <= 0x8f, op >= 0xd0 && op <= 0xd3, op >= 0xd8 && op <= 0xdf:
		return formModRM
	case op >= 0xa4 && op <= 0xa7, op >= 0xaa && op <= 0xaf, op >= 0xb8 && op <= 0xbf, op >= 0xec && op <= 0xef:
		return 0
	}
	form, ok := oneByteForms[op]
	if !ok {
		return formBad
	}
	return form
}

var oneByteForms = map[uint8]int{
	0x63: formModRM, 0x68: formImm, 0x69: formModRM | formImm, 0x6a: formImm8, 0x6b: formModRM | formImm8,
	0x80: formModRM | formImm8, 0x81: formModRM | formImm, 0x83: formModRM | formImm8,
	0xa8: formImm8, 0xa9: formImm, 0xc0: formModRM | formImm8, 0xc1: formModRM | formImm8,
	0xc2: formImm16, 0xc3: 0, 0xc6: formModRM | formImm8, 0xc7: formModRM | formImm, 0xc9: 0,
	0xcc: 0, 0xcd: formImm8, 0xe8: formImm, 0xe9: formImm, 0xeb: formImm8, 0xf4: 0, 0xf5: 0,
	0xf6: formModRM, 0xf7: formModRM, 0xf8: 0, 0xf9: 0, 0xfa: 0, 0xfb: 0, 0xfc: 0, 0xfd: 0,
	0xfe: formModRM, 0xff: formModRM,
}

// operand reads modrm, sib and displacement.
func (d *decoder) operand() {
	d.modrm = d.c.U8()
	d.mode, d.reg = d.modrm>>6, int(d.modrm>>3&7)
	low := int(d.modrm & 7)
	high := int(d.rex&1) << 3
	d.rm = low | high
	if d.mode == 3 {
		return
	}
	d.base = d.rm
	if low == 4 {
		sib := d.c.U8()
		d.base = int(sib&7) | high
		if sib&0x38 != 0x20 || d.rex&2 != 0 { // it has an index
			d.base = -1
		}
		low = int(sib & 7)
	}
	switch {
	case d.mode == 0 && low == 5:
		d.base = -1
		d.c.U32()
	case d.mode == 1:
		d.disp = int64(int8(d.c.U8()))
	case d.mode == 2:
		d.disp = int64(int32(d.c.U32()))
	}
}

func (d *decoder) immediate(form int) int64 {
	switch {
	case d.op >= 0xb8 && d.op <= 0xbf && d.rex&8 != 0:
		return int64(d.c.U64())
	case d.op >= 0xb8 && d.op <= 0xbf:
		form |= formImm
	case d.op == 0xf6 && d.reg < 2:
		form |= formImm8
	case d.op == 0xf7 && d.reg < 2:
		form |= formImm
	}
	switch {
	case form&formImm8 != 0:
		return int64(int8(d.c.U8()))
	case form&formImm16 != 0, form&formImm != 0 && d.short && d.op != 0xe8 && d.op != 0xe9:
		return int64(int16(d.c.U16()))
	case form&formImm != 0:
		return int64(int32(d.c.U32()))
	}
	return 0
}

// meaning tells what an instruction of the one-byte table does.
func (d *decoder) meaning(value int64) instruction {
	op := d.op
	switch {
	case op >= 0x50 && op <= 0x57:
		return instruction{kind: insPush, reg: int(op-0x50) | int(d.rex&1)<<3}
	case op == 0x68, op == 0x6a, op == 0x9c:
		return instruction{kind: insPush, reg: -1}
	case op >= 0x58 && op <= 0x5f:
		return instruction{kind: insPop, reg: int(op-0x58) | int(d.rex&1)<<3}
	case op == 0x9d: // popf
		return instruction{kind: insMoveSP, value: 8}
	case op >= 0x70 && op <= 0x7f, op >= 0xe0 && op <= 0xe3:
		return instruction{kind: insBranch, value: value}
	case op == 0xc2, op == 0xc3:
		return instruction{kind: insRet}
	case op == 0xc9:
		return instruction{kind: insLeave}
	case op == 0xe8:
		return instruction{kind: insCall, value: value}
	case op == 0xe9, op == 0xeb:
		return instruction{kind: insJump, value: value}
	case op == 0xcc, op == 0xf4:
		return instruction{kind: insEnd}
	case op == 0xff:
		return d.group5()
	}
	return d.stackPointer(value)
}

func (d *decoder) group5() instruction {
	switch d.reg {
	case 2, 3:
		return instruction{kind: insCall}
	case 4, 5: // to where is not known
		return instruction{kind: insEnd}
	case 6:
		return instruction{kind: insPush, reg: -1}
	}
	return instruction{}
}

// stackPointer finds what else writes to the stack pointer.
func (d *decoder) stackPointer(value int64) instruction {
	const sp, fp = machineSP, machineFP
	toRM := d.mode == 3 && d.rm == sp
	toReg := d.reg == sp && d.rex&4 == 0
	switch {
	case (d.op == 0x81 || d.op == 0x83) && toRM && d.reg == 0:
		return instruction{kind: insMoveSP, value: value}
	case (d.op == 0x81 || d.op == 0x83) && toRM && d.reg == 5:
		return instruction{kind: insMoveSP, value: -value}
	case (d.op == 0x81 || d.op == 0x83) && toRM && d.reg == 4, d.op == 0x29 && toRM: // and, sub
		return instruction{kind: insLoseSP}
	case (d.op == 0x81 || d.op == 0x83) && toRM && d.reg != 7: // all but a comparison
		return instruction{kind: insEnd}
	case d.op == 0x8d && toReg && d.base == 4:
		return instruction{kind: insMoveSP, value: d.disp}
	case d.op == 0x8d && toReg && d.base == 5:
		return instruction{kind: insSetSP, value: d.disp}
	case d.op == 0x89 && toRM && d.reg == 5 && d.rex&4 == 0, d.op == 0x8b && toReg && d.mode == 3 && d.rm == 5:
		return instruction{kind: insSetSP}
	case d.op == 0x89 && d.mode == 3 && d.rm == fp && d.reg == sp && d.rex&4 == 0, d.op == 0x8b && d.reg == fp && d.rex&4 == 0 && d.mode == 3 && d.rm == sp:
		return instruction{kind: insSetFP}
	case (d.op == 0x8d || d.op == 0x8b) && toReg, d.op == 0x89 && toRM, d.op == 0x87 && (toRM || toReg && d.mode == 3), d.op < 0x40 && d.op&7 == 1 && d.op&0x38 != 0x38 && toRM:
		return instruction{kind: insEnd}
	case d.op == 0x8f: // pop into memory or a register
		if d.mode == 3 {
			return instruction{kind: insPop, reg: d.rm}
		}
		return instruction{kind: insMoveSP, value: 8}
	}
	return instruction{}
}
