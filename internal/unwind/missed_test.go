package unwind

import (
	"testing"

	"stackshot/kcdata"
)

// Rule 6: behind code of a file that was not read neither a frame pointer nor a
// return address of 0 is an outermost frame; a table's mark is one, and says as
// well that callers may be missing. Of a file that was read and holds no table, and
// of generated code, a frame pointer of 0 ends the stack.
func TestMissedTables(t *testing.T) {
	h := &handmade{}
	h.function(codeStart+0x4000, codeStart+0x4100, "zR", 0x07, 30) // the outermost: its return address is undefined
	files := h.process(t, "arm64").Find
	const pc, caller = 0x10010, 0x11000
	for _, c := range []struct {
		name  string
		words map[int]uint64 // the frame pointer is at word 2
		fp    uint64
		pcs   int
		known uint32 // flags when the file was read
	}{
		{"frame pointer of 0", map[int]uint64{2: 0, 3: caller}, stackBase + 16, 2, kcdata.UserComplete},
		{"at once", nil, 0, 1, kcdata.UserComplete},
		{"return address of 0", map[int]uint64{2: stackBase + 48, 3: 0}, stackBase + 16, 1, kcdata.UserComplete},
		{"no frame pointer", nil, 3, 1, 0},
		{"marked", map[int]uint64{2: 0, 3: codeStart + 0x4010}, stackBase + 16, 2, kcdata.UserComplete},
	} {
		for _, missed := range []bool{true, false} {
			file := &kcdata.Mapping{Path: "/file", LinuxMapping: kcdata.LinuxMapping{Start: 0x10000, End: 0x20000, Inode: 1}}
			short := false
			p := &Process{Arch: "arm64", Missed: func() bool { return short }, Find: func(pc uint64) (*kcdata.Mapping, *Table) {
				if pc >= file.Start && pc < file.End {
					short = short || missed
					return file, nil
				}
				return files(pc)
			}}
			r := p.Unwind(Input{Registers: armRegisters(pc, 0, c.fp), Stack: stackOf(c.words, 16)})
			flags := c.known | kcdata.UserNoUnwindTable
			if missed {
				flags = kcdata.UserTablesMissed
				if c.name == "marked" {
					flags |= kcdata.UserComplete
				}
			}
			const looked = kcdata.UserUnwound | kcdata.UserComplete | kcdata.UserTablesMissed | kcdata.UserNoUnwindTable
			if want := flags | kcdata.UserUnwound; r.Flags&looked != want || len(r.PCs) != c.pcs {
				t.Errorf("%s, missed %v: flags %#x, want %#x; %#x, %v", c.name, missed, r.Flags, want, r.PCs, r.Err)
			}
			if ended := r.Flags&kcdata.UserComplete != 0; ended == (r.Err != nil) {
				t.Errorf("%s, missed %v: complete %v, %v", c.name, missed, ended, r.Err)
			}
		}
	}
	if r := (&Process{Arch: "arm64", Find: func(uint64) (*kcdata.Mapping, *Table) {
		return &kcdata.Mapping{LinuxMapping: kcdata.LinuxMapping{End: 1 << 47, Flags: kcdata.MappingAnon}}, nil
	}}).Unwind(Input{Registers: armRegisters(pc, 0, 0)}); r.Flags != kcdata.UserUnwound|kcdata.UserComplete|kcdata.UserCallersUnsure {
		t.Errorf("generated code: %#x, %v", r.Flags, r.Err)
	}
}
