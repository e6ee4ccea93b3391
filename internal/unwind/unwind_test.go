package unwind

import (
	"bytes"
	"debug/elf"
	"slices"
	"strings"
	"testing"

	"stackshot/kcdata"
)

// Generated code has no file: its frame pointers lead on, and are believed only
// up the stack.
func TestGeneratedCode(t *testing.T) {
	h := &handmade{}
	h.function(codeStart+0x4000, codeStart+0x4100, "zR", 0x07, 30)
	files := h.process(t, "arm64").Find
	jit := &kcdata.Mapping{LinuxMapping: kcdata.LinuxMapping{Start: 0x10000, End: 0x20000, Flags: kcdata.MappingAnon}}
	p := &Process{Arch: "arm64", Find: func(pc uint64) (*kcdata.Mapping, *Table) {
		if pc >= jit.Start && pc < jit.End {
			return jit, nil
		}
		return files(pc)
	}}
	words := map[int]uint64{2: stackBase + 48, 3: 0x11000, 6: 0, 7: codeStart + 0x4010}
	in := Input{Registers: armRegisters(0x10010, 0, stackBase+16), Stack: stackOf(words, 16)}
	r := p.Unwind(in)
	want := []uint64{0x10010, 0x11000, codeStart + 0x4010}
	if !slices.Equal(r.PCs, want) || !slices.Equal(r.How, []byte{1, 2, 2}) || r.Flags != kcdata.UserUnwound|kcdata.UserComplete|kcdata.UserCallersUnsure {
		t.Errorf("%#x %v %#x %v, want %#x", r.PCs, r.How, r.Flags, r.Err, want)
	}
	// The same code of a file that could not be read: callers may be missing.
	jit.Path, jit.Flags = "/gone", 0
	if r := p.Unwind(in); !slices.Equal(r.PCs, want) || r.Flags&kcdata.UserNoUnwindTable == 0 {
		t.Errorf("%#x %#x", r.PCs, r.Flags)
	}
	in.Registers = armRegisters(0x10010, 0, stackBase-16)
	if r := p.Unwind(in); len(r.PCs) != 1 || r.Flags&kcdata.UserNoUnwindTable == 0 || r.Err == nil {
		t.Errorf("a frame pointer below the stack: %#x %#x %v", r.PCs, r.Flags, r.Err)
	}
}

func TestInputThatIsNone(t *testing.T) {
	p := armProgram().process(t, "arm64")
	if r := p.Unwind(Input{Registers: make([]uint64, 5)}); r.Err == nil || r.PCs != nil {
		t.Errorf("%+v", r)
	}
	q := *p
	q.Arch = "riscv64"
	if r := q.Unwind(Input{Registers: make([]uint64, 34)}); r.Err == nil || r.PCs != nil {
		t.Errorf("%+v", r)
	}
	if r := q.Chain(Input{Registers: make([]uint64, 34)}); r.Err == nil {
		t.Errorf("%+v", r)
	}
	blind := Process{Arch: "arm64"}
	links := []kcdata.LinuxUserLink{{FP: 16, PC: 5}}
	if r := blind.Unwind(Input{Registers: armRegisters(7, 0, 0), Chain: links, ChainComplete: true}); !slices.Equal(r.PCs, []uint64{7, 5}) || r.Flags != kcdata.UserNoLoadInfo|kcdata.UserComplete {
		t.Errorf("without mappings: %#x %#x", r.PCs, r.Flags)
	}
	r := p.Unwind(Input{Registers: armRegisters(0x1234, 0, 0)})
	if len(r.PCs) != 1 || r.Flags != kcdata.UserUnwound|kcdata.UserNoMapping || r.StopAddr != 0x1234 {
		t.Errorf("a pc in no mapping: %#x %#x %#x", r.PCs, r.Flags, r.StopAddr)
	}
}

// A frame that leads to itself, or down the stack, is no frame.
func TestNoLoops(t *testing.T) {
	p := armProgram().process(t, "arm64")
	const bottom = codeStart + 0x3020
	in := Input{Registers: armRegisters(bottom, 0, stackBase), Stack: stackOf(map[int]uint64{0: stackBase, 1: bottom}, 4), Max: 1000}
	if r := p.Unwind(in); len(r.PCs) > 2 || r.Flags&kcdata.UserComplete != 0 || r.Err == nil {
		t.Errorf("%d frames %#x %v", len(r.PCs), r.Flags, r.Err)
	}
}

func TestExpressions(t *testing.T) {
	regs := registers{}
	regs.set(7, 1000)
	mem := newMemory(&Input{Stack: stackOf(map[int]uint64{0: 0x1122334455667788}, 1)})
	for _, c := range []struct {
		code []byte
		want uint64
		err  bool
	}{
		// The expression of .plt: rsp + 8 + (rip & 15 >= 11) << 3, with 13 in place of rip.
		{[]byte{0x77, 8, 0x3d, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22}, 1016, false},
		{[]byte{0x77, 8, 0x35, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22}, 1008, false},
		{[]byte{0x0c, 0, 0, 0xff, 0xff, 0x06}, 0x1122334455667788, false},
		{[]byte{0x0c, 0, 0, 0xff, 0xff, 0x94, 2}, 0x7788, false},
		{[]byte{0x31, 0x32, 0x33, 0x17, 0x1c}, 0xffffffffffffffff, false}, // 3 1 2: 1 - 2
		{[]byte{0x38, 0x12, 0x15, 0, 0x1e, 0x22}, 72, false},
		{[]byte{0x31, 0x28, 1, 0, 0x00, 0x35}, 5, false}, // the branch jumps over what is no operation
		{[]byte{0x11, 0x7f, 0x19}, 1, false},
		{[]byte{0x2f, 0xfd, 0xff}, 0, true}, // a loop
		{[]byte{0x77, 8, 0x06}, 0, true},    // memory that is not there
		{[]byte{0x70, 0}, 0, true},          // a register that is not known
		{[]byte{0x31, 0x30, 0x1b}, 0, true},
		{[]byte{0x22}, 0, true},
		{[]byte{0x0e, 1}, 0, true},
		{[]byte{0xe0}, 0, true},
		{nil, 0, true},
	} {
		got, err := evaluate(c.code, &regs, mem)
		if (err != nil) != c.err || err == nil && got != c.want {
			t.Errorf("% x: %#x, %v; want %#x", c.code, got, err, c.want)
		}
	}
}

// Instructions of vendors, and rare ones: each program gives the same rules in another way.
func TestVendorInstructions(t *testing.T) {
	plain := []byte{0x0e, 32, 0x9d, 4}
	for name, program := range map[string][]byte{
		"args size":            {0x2e, 16, 0x0e, 32, 0x9d, 4},
		"negate ra state":      {0x2d, 0x0e, 32, 0x2c, 0x9d, 4},
		"negative offset":      {0x0e, 32, 0x2f, 29, 0x7c, 0x9d, 4},
		"restored and saved":   {0x0e, 32, 0x9d, 6, 0xdd, 0x9d, 4},
		"remembered":           {0x0e, 32, 0x9d, 4, 0x0a, 0x9d, 9, 0x0e, 0, 0x0b},
		"set_loc":              {0x01, 0x08, 0, 0x40, 0, 0, 0, 0, 0, 0x0e, 32, 0x9d, 4, 0x01, 0x80, 0, 0x40, 0, 0, 0, 0, 0, 0x0e, 99},
		"extended offset":      {0x0e, 32, 0x05, 29, 4},
		"extended offset, two": {0x0e, 32, 0x11, 29, 4},
	} {
		a, b := rowOf(t, plain), rowOf(t, program)
		if a == nil || b == nil || cfaPlain(a) != cfaPlain(b) || !slices.EqualFunc(a.regs, b.regs, sameRule) {
			t.Errorf("%s: %+v, want %+v", name, b, a)
		}
	}
	r := rowOf(t, []byte{0x14, 29, 2}) // val_offset is factored
	if r == nil || len(r.regs) != 1 || r.regs[0].kind != ruleValue || r.regs[0].offset != -16 {
		t.Errorf("val_offset: %+v", r)
	}
	for _, damaged := range [][]byte{{0x0b}, {0x0f, 200, 1}, {0x0e}, {0x03, 1}, {0x3b}, {0x05, 0x80, 0x80, 4, 1}, bytes.Repeat([]byte{0x0a}, 300)} {
		h := &handmade{}
		h.function(codeStart, codeStart+0x100, "zR", damaged...)
		if err := h.section.index(); err != nil {
			t.Fatal(err)
		}
		r, err := h.section.rowAt(codeStart+8, nil)
		if r != nil || err == nil || !strings.HasPrefix(err.Error(), ".eh_frame at 0x") || strings.HasPrefix(err.Error(), ".eh_frame at 0x0:") {
			t.Errorf("% x: %+v, %v", damaged[:min(len(damaged), 8)], r, err)
		}
	}
}

func rowOf(t *testing.T, program []byte) *row {
	t.Helper()
	h := &handmade{}
	h.function(codeStart, codeStart+0x100, "zR", program...)
	if err := h.section.index(); err != nil {
		t.Fatal(err)
	}
	r, err := h.section.rowAt(codeStart+8, nil)
	if err != nil {
		t.Errorf("% x: %v", program, err)
	}
	return r
}

type plainCFA struct {
	reg    int
	offset int64
}

func cfaPlain(r *row) plainCFA { return plainCFA{r.cfa.reg, r.cfa.offset} }

func sameRule(a, b regRule) bool {
	return a.reg == b.reg && a.kind == b.kind && a.offset == b.offset
}

// Errors name where; a file of another machine, or none, is refused.
func TestFilesThatAreNone(t *testing.T) {
	good := seeds(t)[0]
	for name, damage := range map[string]func([]byte) []byte{
		"empty":           func(b []byte) []byte { return nil },
		"cut":             func(b []byte) []byte { return b[:100] },
		"text":            func(b []byte) []byte { return []byte(strings.Repeat("text ", 40)) },
		"32 bits":         func(b []byte) []byte { b[4] = byte(elf.ELFCLASS32); return b },
		"another machine": func(b []byte) []byte { b[18] = byte(elf.EM_S390); return b },
		"far sections":    func(b []byte) []byte { b[44] = 0x7f; return b },
		"many segments":   func(b []byte) []byte { b[57] = 0xff; return b },
	} {
		data := damage(bytes.Clone(good))
		if table, err := NewTable(bytes.NewReader(data), int64(len(data))); err == nil || table != nil {
			t.Errorf("%s: no error", name)
		}
	}
	if table, err := NewTable(bytes.NewReader(good), int64(len(good))); err != nil || len(table.Problems()) != 0 {
		t.Errorf("a good file: %v", err)
	}
}
