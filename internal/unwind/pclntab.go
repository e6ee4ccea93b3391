package unwind

import (
	"encoding/binary"
	"strings"

	"stackshot/internal/elffile"
	"stackshot/internal/gopclntab"
	"stackshot/kcdata"
)

// pclntab is the table of a Go binary that says how far the stack pointer has
// moved since a function's entry. Special functions are known by the stable bits of
// their flags, and by their names: their numbers change between releases.
type pclntab struct {
	*gopclntab.Table
	data []byte
}

const (
	flagTopFrame = 1 << 0
	flagSPWrite  = 1 << 1
)

// goRow is the rule of one pc in Go code.
type goRow struct {
	delta   uint64 // from the stack pointer to that of the function's entry
	top     bool   // the outermost frame of a stack
	start   bool   // and the runtime's first on a thread: if the program has C in it, C called it
	spWrite bool   // it changes stacks: only its frame pointer leads on
	exact   bool   // it was entered without a call: its return address is where the caller stood
	restore bool   // it is what a signal handler returns to
}

func (t *Table) loadGo(file *elffile.Layout) error {
	table, err := gopclntab.Open(t.code, file)
	if table == nil || err != nil {
		return err
	}
	data, err := t.code.Bytes(table.At, maxSection, table.Name)
	if err != nil {
		return err
	}
	t.golang = &pclntab{table, data}
	return nil
}

func (p *pclntab) fail(offset uint64, format string, args ...any) error {
	return damaged(p.Name, offset, format, args...)
}

func (p *pclntab) word(off uint64) uint32 { return binary.LittleEndian.Uint32(p.data[off:]) }

// rowAt returns the rule at pc, nil where pc is in no Go function.
func (p *pclntab) rowAt(pc uint64) (*row, error) {
	off := pc - p.Text
	start, at, ok := p.Find(p.word, off)
	if !ok {
		return nil, nil
	}
	if at > uint64(len(p.data)) || uint64(len(p.data))-at < p.FlagAt+1 {
		return nil, p.fail(at, "a function outside the table")
	}
	f := p.data[at:]
	const longest = 64 // no name that matters is longer
	name := elffile.Text(p.data, p.Names+uint64(binary.LittleEndian.Uint32(f[gopclntab.FuncName:])), longest)
	g := &goRow{}
	g.top = f[p.FlagAt]&flagTopFrame != 0
	// cgocallback changes stacks too, but keeps its frame on both.
	g.spWrite = f[p.FlagAt]&flagSPWrite != 0 && name != "runtime.cgocallback"
	g.start = g.top && name == "runtime.mstart"
	g.exact = name == "runtime.asyncPreempt" || name == "runtime.sigpanic"
	g.restore = strings.HasPrefix(name, "runtime.sigreturn")
	r := &row{how: kcdata.UserFramePclntab, golang: g}
	pcsp := binary.LittleEndian.Uint32(f[gopclntab.FuncSP:])
	if pcsp == 0 {
		return r, nil // no frame information: as if it had none
	}
	delta, err := p.delta(uint64(pcsp), off-start)
	g.delta = delta
	return r, err
}

// delta is the value of the pcsp table at offset from, at pc, relative to the
// function's start.
func (p *pclntab) delta(from, pc uint64) (uint64, error) {
	if from > uint64(len(p.data))-p.Values {
		return 0, p.fail(p.Values+from, "a table of stack sizes outside the table")
	}
	table := p.data[p.Values+from:]
	value, ok := p.Value(table[:min(len(table), maxProgram)], pc)
	if !ok {
		return 0, p.fail(p.Values+from, "no stack size for code at %#x of a function", pc)
	}
	if value < 0 || value%8 != 0 {
		return 0, p.fail(p.Values+from, "a stack size of %d", value)
	}
	return uint64(value), nil
}
