package symbol

import (
	"context"
	"fmt"

	"stackshot/internal/cursor"
	"stackshot/internal/elffile"
)

// lineMachine executes the line table of one unit.
type lineMachine struct {
	head *lineHead
	in   cursor.Cursor
	rows []lineRow

	addr, opIndex uint64
	file          uint64
	line          int64
}

// run gives the rows in the order of the table.
func (m *lineMachine) run(ctx context.Context) ([]lineRow, error) {
	m.reset()
	for n := 0; m.in.Left() > 0; n++ {
		if n%4096 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if len(m.rows)*16 > maxUnitBytes {
			return nil, fmt.Errorf("%d rows: %w", len(m.rows), elffile.ErrTooBig)
		}
		m.step()
		if m.in.Bad {
			return nil, fmt.Errorf("an instruction beyond the %d bytes: %w", len(m.in.Data), elffile.ErrDamaged)
		}
	}
	return m.rows, nil
}

func (m *lineMachine) reset() { m.addr, m.opIndex, m.file, m.line = 0, 0, 1, 1 }

// step executes one instruction (DWARF 5, section 6.2.5).
func (m *lineMachine) step() {
	h := m.head
	op := m.in.U8()
	if op >= h.opcodeBase {
		m.advance(uint64((op - h.opcodeBase) / h.lineRange))
		m.line += int64(h.lineBase) + int64((op-h.opcodeBase)%h.lineRange)
		m.emit()
		return
	}
	switch op {
	case 0: // extended
		m.extended()
	case 1: // copy
		m.emit()
	case 2: // advance_pc
		m.advance(m.in.ULEB())
	case 3: // advance_line
		m.line += m.in.SLEB()
	case 4: // set_file
		m.file = m.in.ULEB()
	case 8: // const_add_pc
		m.advance(uint64((255 - h.opcodeBase) / h.lineRange))
	case 9: // fixed_advance_pc
		m.addr += uint64(m.in.U16())
		m.opIndex = 0
	default: // says nothing of a line
		for range h.lengths[op-1] {
			m.in.ULEB()
		}
	}
}

// extended executes an instruction that says its own length (section 6.2.5.3).
func (m *lineMachine) extended() {
	in := cursor.Cursor{Data: m.in.Take(m.in.ULEB())}
	if in.Left() == 0 {
		return
	}
	switch in.U8() {
	case 1: // end_sequence
		m.rows = append(m.rows, lineRow{addr: m.addr, file: gap})
		m.reset()
	case 2: // set_address
		if in.Left() == 4 {
			m.addr = uint64(in.U32())
		} else {
			m.addr = in.U64()
		}
		m.opIndex = 0
	case 3: // define_file
		m.head.readFile(&in)
	}
	m.in.Bad = m.in.Bad || in.Bad
}

// advance goes on by operations, of which an instruction may have several.
func (m *lineMachine) advance(ops uint64) {
	each := uint64(m.head.maxOps)
	m.addr += uint64(m.head.minInst) * ((m.opIndex + ops) / each)
	m.opIndex = (m.opIndex + ops) % each
}

func (m *lineMachine) emit() {
	row := lineRow{addr: m.addr, file: uint32(min(m.file, maxLineFiles))}
	if m.line > 0 {
		row.line = uint32(m.line)
	}
	m.rows = append(m.rows, row)
}
