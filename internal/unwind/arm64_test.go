package unwind

import (
	"debug/elf"
	"encoding/binary"
	"slices"
	"testing"

	"stackshot/internal/elffile"
	"stackshot/kcdata"
)

// handmade is one file of hand-written call frame information, loaded at the
// address it is linked for.
type handmade struct {
	amd64   bool // else arm64
	section frameSection
	cies    map[string]uint64
}

const (
	codeStart = 0x400000
	codeEnd   = 0x500000
)

// function adds the rules of [begin, end). Registers as in DWARF for the machine.
func (h *handmade) function(begin, end uint64, augmentation string, program ...byte) {
	if h.cies == nil {
		h.cies = map[string]uint64{}
		h.section = frameSection{name: ".eh_frame", eh: true}
	}
	le := binary.LittleEndian
	record := func(body []byte) uint64 {
		at := len(h.section.data)
		h.section.data = append(le.AppendUint32(h.section.data, uint32(len(body))), body...)
		return uint64(at)
	}
	cie, ok := h.cies[augmentation]
	if !ok {
		body := append([]byte{0, 0, 0, 0, 1}, augmentation...)
		initial, returns := []byte{0x0c, 31, 0}, byte(30) // def_cfa sp, 0
		if h.amd64 {
			initial, returns = []byte{0x0c, 7, 8, 0x90, 1}, 16 // def_cfa rsp, 8; return address at -8
		}
		body = append(body, 0, 1, 0x78, returns) // code by 1, data by -8
		if augmentation != "" {
			body = append(body, 1, encAbsolute)
		}
		cie = record(append(body, initial...))
		h.cies[augmentation] = cie
	}
	body := le.AppendUint32(nil, uint32(uint64(len(h.section.data))+4-cie))
	body = le.AppendUint64(le.AppendUint64(body, begin), end-begin)
	if augmentation != "" {
		body = append(body, 0)
	}
	record(append(body, program...))
}

func (h *handmade) process(t *testing.T, arch string) *Process {
	t.Helper()
	if err := h.section.index(); err != nil {
		t.Fatal(err)
	}
	table := &Table{
		arch: archOf(arch), sections: []*frameSection{&h.section}, code: elffile.NewReader(noCode{}, 0),
		segments: []elf.ProgHeader{{Type: elf.PT_LOAD, Flags: elf.PF_X, Vaddr: codeStart, Filesz: codeEnd - codeStart, Memsz: codeEnd - codeStart}},
	}
	m := &kcdata.Mapping{LinuxMapping: kcdata.LinuxMapping{Start: codeStart, End: codeEnd}, Path: "made"}
	return &Process{Arch: arch, Find: func(pc uint64) (*kcdata.Mapping, *Table) {
		if pc >= codeStart && pc < codeEnd {
			return m, table
		}
		return nil, nil
	}}
}

type noCode struct{}

func (noCode) ReadAt(b []byte, _ int64) (int, error) { return len(b), nil }

const stackBase = 0xffff0000

// stackOf is a stack from sp on; words[i] is at sp + 8·i.
func stackOf(words map[int]uint64, n int) []kcdata.UserBytes {
	data := make([]byte, n*8)
	for i, w := range words {
		binary.LittleEndian.PutUint64(data[i*8:], w)
	}
	return []kcdata.UserBytes{{Addr: stackBase, Data: data}}
}

func armRegisters(pc, lr, fp uint64) []uint64 {
	r := make([]uint64, 34)
	r[29], r[30], r[31], r[32] = fp, lr, stackBase, pc
	return r
}

// leaf at 0x1000 without a frame; middle at 0x2000 with 32 bytes by the stack
// pointer and a signed return address; bottom at 0x3000 with a frame record;
// start at 0x4000 without a caller.
func armProgram() *handmade {
	h := &handmade{}
	h.function(codeStart+0x1000, codeStart+0x1100, "zR")
	// negate_ra_state; then at 8: def_cfa_offset 32, x29 at -32, x30 at -24; at 64: restored.
	h.function(codeStart+0x2000, codeStart+0x2100, "zRB", 0x2d, 0x48, 0x0e, 32, 0x9d, 4, 0x9e, 3, 0x78, 0x0a, 0xde, 0xdd, 0x0e, 0)
	h.function(codeStart+0x3000, codeStart+0x3100, "zR", 0x44, 0x0e, 48, 0x9d, 6, 0x9e, 5, 0x44, 0x0d, 29)
	h.function(codeStart+0x4000, codeStart+0x4100, "zR", 0x07, 30)
	return h
}

func TestArm64(t *testing.T) {
	const (
		leaf, middle, bottom, start = codeStart + 0x1010, codeStart + 0x2020, codeStart + 0x3020, codeStart + 0x4020
		signed                      = 0x2a<<48 | bottom // as pointer authentication leaves it
	)
	p := armProgram().process(t, "arm64")
	const record = stackBase + 32 // bottom's frame record
	stack := stackOf(map[int]uint64{0: record, 1: signed, 4: 0, 5: start}, 16)
	in := Input{Registers: armRegisters(leaf, middle, stackBase), Stack: stack}
	want := []uint64{leaf, middle, bottom, start}
	how := []byte{kcdata.UserFrameRegs, kcdata.UserFrameLR, kcdata.UserFrameCFI, kcdata.UserFrameCFI}
	if r := p.Unwind(in); !slices.Equal(r.PCs, want) || !slices.Equal(r.How, how) || r.Flags != kcdata.UserUnwound|kcdata.UserComplete {
		t.Errorf("%#x %v %#x %v, want %#x %v", r.PCs, r.How, r.Flags, r.Err, want, how)
	}
	// The same from the chain alone: without a single byte of the stack.
	in = Input{Registers: in.Registers, Chain: []kcdata.LinuxUserLink{{FP: stackBase, PC: signed}, {FP: record, PC: start}}}
	how[2], how[3] = kcdata.UserFrameFP, kcdata.UserFrameFP
	if r := p.Unwind(in); !slices.Equal(r.PCs, want) || !slices.Equal(r.How, how) || r.Flags != kcdata.UserUnwound|kcdata.UserComplete {
		t.Errorf("by the chain: %#x %v %#x %v, want %#x %v", r.PCs, r.How, r.Flags, r.Err, want, how)
	}
	if r := p.Chain(in); !slices.Equal(r.PCs, []uint64{leaf, bottom, start}) {
		t.Errorf("chain: %#x", r.PCs)
	}
	// In the epilogue x29 and x30 are the caller's again: restore is not "undefined".
	in = Input{Registers: armRegisters(codeStart+0x2000+0x48, bottom, record), Stack: stackOf(map[int]uint64{4: 0, 5: start}, 16)}
	if r := p.Unwind(in); len(r.PCs) != 3 || r.PCs[1] != bottom || r.How[1] != kcdata.UserFrameLR || r.Flags&kcdata.UserComplete == 0 {
		t.Errorf("epilogue: %#x %v %#x %v", r.PCs, r.How, r.Flags, r.Err)
	}
}

// Functions whose rules lead to where nothing was copied, or to another stack: each at its
// offset 0x48, called by bottom. Rules are the same on both machines.
func TestRulesOfTheLeaf(t *testing.T) {
	const leaf, bottom, start = codeStart + 0x6048, codeStart + 0x3020, codeStart + 0x4020
	const whole, short = kcdata.UserUnwound | kcdata.UserComplete, kcdata.UserUnwound | kcdata.UserNoMoreBytes
	for _, c := range []struct {
		what  string
		rules []byte
		pcs   []uint64
		flags uint32
	}{
		// 32 bytes with x29 at the bottom, given back: no rule says that x29 is the caller's again.
		{"popped", []byte{0x48, 0x0e, 32, 0x9d, 4, 0x70, 0x0e, 0}, []uint64{leaf, bottom, start}, whole},
		{"popped, with a frame pointer", []byte{0x48, 0x0e, 16, 0x9d, 2, 0x0d, 29, 0x70, 0x0c, 31, 0}, []uint64{leaf, bottom, start}, whole},
		// Less than x29's place was given back, so it was not popped.
		{"below the stack pointer", []byte{0x48, 0x0e, 24, 0x9d, 4, 0x70, 0x0e, 0}, []uint64{leaf, bottom}, short},
		{"below it, with a frame pointer", []byte{0x48, 0x0e, 16, 0x9d, 4, 0x0d, 29, 0x70, 0x0c, 31, 0}, []uint64{leaf, bottom}, short},
		{"below it, after a larger frame", []byte{0x48, 0x0e, 24, 0x0a, 0x0e, 64, 0x9d, 4, 0x0b, 0x9d, 4, 0x70, 0x0e, 0}, []uint64{leaf, bottom}, short},
		{"below it, before a larger frame", []byte{0x48, 0x9d, 4, 0x71, 0x0e, 32}, []uint64{leaf, bottom}, short},
		{"below it, with a frame pointer far below", []byte{0x48, 0x0e, 16, 0x9d, 4, 0x0c, 29, 48, 0x70, 0x0c, 31, 0}, []uint64{leaf, bottom}, short},
		{"deeper before", []byte{0x48, 0x0e, 32, 0x0e, 16, 0x0a, 0x0e, 24, 0x0b, 0x9d, 4, 0x70, 0x0e, 0}, []uint64{leaf, bottom, start}, whole},
		{"in another frame, far below", []byte{0x0c, 1, 16, 0x09, 31, 8, 0x2f, 29, 1}, []uint64{leaf, bottom}, short},
		{"return address in a register", []byte{0x09, 30, 9}, []uint64{leaf, bottom, start}, whole},
		{"a value, not a place", []byte{0x48, 0x0e, 32, 0x14, 29, 4, 0x70, 0x0e, 0}, []uint64{leaf, bottom}, short},
		{"return address in memory", []byte{0x2f, 30, 0}, []uint64{leaf, bottom, start}, whole},
		{"by the argument", []byte{0x0c, 0, 16}, []uint64{leaf, bottom, start}, whole | kcdata.UserCallersUnsure},
	} {
		h := armProgram()
		h.function(codeStart+0x6000, codeStart+0x6100, "zR", c.rules...)
		registers := armRegisters(leaf, bottom, stackBase+16)
		registers[0], registers[8], registers[9] = stackBase, stackBase, bottom
		if c.rules[0] == 0x09 {
			registers[30] = 0
		}
		r := h.process(t, "arm64").Unwind(Input{Registers: registers, Stack: stackOf(map[int]uint64{0: bottom, 2: 0, 3: start}, 16)})
		if !slices.Equal(r.PCs, c.pcs) || r.Flags != c.flags {
			t.Errorf("%s: %#x %#x %v, want %#x %#x", c.what, r.PCs, r.Flags, r.Err, c.pcs, c.flags)
		}
	}
}

// The same of a function that has called: there nothing of it is below the stack pointer.
func TestOnlyTheLeafPops(t *testing.T) {
	const leaf, caller, bottom = codeStart + 0x1010, codeStart + 0x6048, codeStart + 0x3020
	h := armProgram()
	h.function(codeStart+0x6000, codeStart+0x6100, "zR", 0x48, 0x0e, 32, 0x9d, 4, 0x9e, 1, 0x70, 0x0e, 8)
	in := Input{Registers: armRegisters(leaf, caller, stackBase+16), Stack: stackOf(map[int]uint64{0: bottom, 3: codeStart + 0x4020}, 16)}
	if r := h.process(t, "arm64").Unwind(in); !slices.Equal(r.PCs, []uint64{leaf, caller, bottom}) || r.Flags&kcdata.UserNoMoreBytes == 0 {
		t.Errorf("%#x %#x %v", r.PCs, r.Flags, r.Err)
	}
}

// Where calls push, a frame takes room, unless its return address is in a register. And the
// caller of an instruction is another one.
func TestFramesWithoutRoom(t *testing.T) {
	const leaf, caller, end = codeStart + 0x1010, codeStart + 0x2010, codeStart + 0x3010
	for _, c := range []struct {
		what  string
		rules []byte
		di    uint64
		pcs   []uint64
	}{
		{"in a register", []byte{0x0e, 0, 0x09, 16, 5}, caller, []uint64{leaf, caller, end}},
		{"in a register, its own", []byte{0x0e, 0, 0x09, 16, 5}, leaf, []uint64{leaf}},
		{"in memory", []byte{0x0e, 0, 0x2f, 16, 0}, 0, []uint64{leaf}},
	} {
		h := &handmade{amd64: true}
		h.function(codeStart+0x1000, codeStart+0x1100, "zR", c.rules...)
		h.function(codeStart+0x2000, codeStart+0x2100, "zR", 0x0e, 16)
		h.function(codeStart+0x3000, codeStart+0x3100, "zR", 0x07, 16)
		registers := make([]uint64, 21)
		registers[14], registers[16], registers[19] = c.di, leaf, stackBase
		r := h.process(t, "amd64").Unwind(Input{Registers: registers, Stack: stackOf(map[int]uint64{0: caller, 1: end}, 16)})
		if !slices.Equal(r.PCs, c.pcs) {
			t.Errorf("%s: %#x %#x %v, want %#x", c.what, r.PCs, r.Flags, r.Err, c.pcs)
		}
	}
}

// A handler at 0x1000 returns to the vDSO's restorer at 0x5000, which has 'S';
// the kernel saved leaf's registers.
func TestArm64Signal(t *testing.T) {
	h := armProgram()
	h.function(codeStart+0x5000-4, codeStart+0x5010, "zRS")
	p := h.process(t, "arm64")
	const leaf, middle, bottom, start = codeStart + 0x1004, codeStart + 0x2020, codeStart + 0x3020, codeStart + 0x4020
	const regs = 39   // of x0, in words: siginfo, ucontext to fault_address
	const stack = 128 // where the interrupted stack is, in words
	const oldSP = stackBase + stack*8
	words := map[int]uint64{regs + 29: oldSP, regs + 30: middle, regs + 31: oldSP, regs + 32: leaf,
		stack: oldSP + 32, stack + 1: bottom, stack + 4: 0, stack + 5: start}
	in := Input{Registers: armRegisters(codeStart+0x1010, codeStart+0x5000, 0), Stack: stackOf(words, 256)}
	want := []uint64{codeStart + 0x1010, codeStart + 0x5000, leaf, middle, bottom, start}
	r := p.Unwind(in)
	if !slices.Equal(r.PCs, want) || r.How[2] != kcdata.UserFrameSignal || r.How[3] != kcdata.UserFrameLR || r.Flags != kcdata.UserUnwound|kcdata.UserComplete {
		t.Errorf("%#x %v %#x %v, want %#x", r.PCs, r.How, r.Flags, r.Err, want)
	}
}

// Go on arm64: the link register is at the bottom of a frame, the frame pointer
// one word below.
func TestArm64Go(t *testing.T) {
	golang, err := pclntabOf(smallPclntab())
	if err != nil {
		t.Fatal(err)
	}
	text := golang.Text
	h := armProgram()
	p := h.process(t, "arm64")
	_, table := p.Find(codeStart)
	table.golang = golang
	f, goexit := text+0x10, text+0x44
	in := Input{Registers: armRegisters(f, 0, 0), Stack: stackOf(map[int]uint64{0: f + 8, 3: goexit}, 8)}
	r := p.Unwind(in)
	if want := []uint64{f, f + 8, goexit}; !slices.Equal(r.PCs, want) || r.Flags != kcdata.UserUnwound|kcdata.UserComplete {
		t.Errorf("%#x %v %#x %v, want %#x", r.PCs, r.How, r.Flags, r.Err, want)
	}
	// Before it has made its frame, its caller is in the link register.
	in = Input{Registers: armRegisters(text+4, f+8, 0), Stack: stackOf(map[int]uint64{0: goexit}, 8)}
	r = p.Unwind(in)
	if want := []uint64{text + 4, f + 8, goexit}; !slices.Equal(r.PCs, want) || r.How[1] != kcdata.UserFrameLR || r.Flags != kcdata.UserUnwound|kcdata.UserComplete {
		t.Errorf("%#x %v %#x %v, want %#x", r.PCs, r.How, r.Flags, r.Err, want)
	}
}
