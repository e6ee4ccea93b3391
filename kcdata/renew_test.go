package kcdata

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// oldFile is a capture of one process that was written when texts and bytes were plain
// items: taken with --keep-stacks and --trace, on a host that was named for it.
func oldFile(t *testing.T) []byte {
	t.Helper()
	b, err := os.ReadFile("testdata/plain-strings.kcdata.zst")
	ok(t, err)
	plain, _, err := Unwrap(b, 1<<20)
	ok(t, err)
	return plain
}

func TestOldFileIsRead(t *testing.T) {
	s, err := ParseSnapshot(oldFile(t))
	if err != nil || len(s.Problems) > 0 || len(s.Tasks) != 1 {
		t.Fatalf("%v, problems %q, %d tasks", err, s.Problems, len(s.Tasks))
	}
	task := s.Tasks[0]
	th := task.Threads[0]
	for what, got := range map[string][2]any{
		"host":       {s.Hostname, "golden"},
		"boot":       {s.BootID, "01234567-89ab-cdef-0123-456789abcdef"},
		"arguments":  {s.BootArgs, "root=/dev/vda quiet"},
		"engine":     {s.Engine, "trap"},
		"isolation":  {s.Isolation, "irqoff"},
		"arch":       {s.Arch, "x86_64"},
		"build":      {len(s.KernelBuild), 20},
		"path":       {task.ExePath, "/usr/bin/sleep"},
		"command":    {task.Cmdline, []string{"sleep", "300"}},
		"cgroup":     {task.Cgroup, "/"},
		"mapped":     {task.Mappings[0].Path, "/usr/bin/sleep"},
		"how":        {len(th.UserHow), len(th.User)},
		"first":      {th.UserHow[0], byte(UserFrameRegs)},
		"pieces":     {len(th.UserBytes), 1},
		"from":       {th.UserBytes[0].Addr, th.Syscall.SP},
		"stack":      {uint32(len(th.UserBytes[0].Data)), th.UserWalk.Bytes},
		"registers":  {len(th.Registers), 21},
		"in meminfo": {s.Meminfo[:9], "MemTotal:"},
	} {
		if !cmp.Equal(got[0], got[1]) {
			t.Errorf("%s: %v, want %v", what, got[0], got[1])
		}
	}
	if sym, named := s.Symbols.Name(th.Kernel[0]); !named || sym.Name == "" {
		t.Error("its first kernel address has no name")
	}
}

// In today's form the file says the same, and needs no more of that.
func TestRenewedIsTheSame(t *testing.T) {
	for what, old := range map[string][]byte{"a real file": oldFile(t), "what it lacks": oldWindowItems(t)} {
		plain, err := Renew(old)
		ok(t, err)
		was, err := ParseSnapshot(old)
		ok(t, err)
		is, err := ParseSnapshot(plain)
		ok(t, err)
		if d := cmp.Diff(was, is, cmp.AllowUnexported(SymbolTable{}, UserSymbolTable{}), cmpopts.EquateEmpty()); d != "" {
			t.Errorf("%s: (-old +new):\n%s", what, d)
		}
		items, err := readAll(plain)
		ok(t, err)
		defined := map[Type]int{}
		for _, it := range items {
			if s, _ := Lookup(it.Type); s.Bytewise {
				t.Errorf("%s: %v is a plain item", what, it.Type)
			}
			if it.Type == TypeDefinition {
				defined[Type(getElem(it.Data, ElemUint32))]++
			}
		}
		for _, typ := range Definitions() {
			if defined[typ] != 1 {
				t.Errorf("%s: %v is defined %d times", what, typ, defined[typ])
			}
		}
		again, err := Renew(plain)
		ok(t, err)
		if &again[0] != &plain[0] {
			t.Errorf("%s: renewed twice", what)
		}
	}
}

// oldWindowItems are the old forms that only a stop with a locked mmap_lock writes.
func oldWindowItems(t *testing.T) []byte {
	plainItem := func(typ Type, text string) []byte {
		pad := padOf(len(text))
		return rawItem(typ, uint32(len(text)+pad), uint64(hasPadding|pad), append([]byte(text), make([]byte, pad)...)...)
	}
	array := func(typ Type, v any) []byte {
		w := NewWriter(make([]byte, 1<<10))
		ok(t, w.StructArray(typ, v))
		return w.Written()
	}
	begin, end := NewWriter(make([]byte, 1<<10)), NewWriter(make([]byte, 1<<10))
	ok(t, begin.BeginContainer(TypeTask, 7))
	ok(t, end.EndContainer(7))
	return around(begin.Written(),
		array(TypeLinuxMapping, []LinuxMapping{{Start: 1, End: 2, Flags: MappingInWindow}}), plainItem(TypeLinuxMapName, "/lib/a\x00"),
		array(TypeLinuxMapping, []LinuxMapping{{Start: 3, End: 4, Flags: MappingInWindow}}),
		array(TypeLinuxMapping, []LinuxMapping{{Start: 5, End: 6, Flags: MappingInWindow}}), plainItem(TypeLinuxMapName, "…/b\x00"),
		plainItem(TypeLinuxCmdlineSeen, "a\x00\x00b\x00"),
		plainItem(TypeLinuxEnrichFailed, "maps: x\x00"), plainItem(TypeLinuxEnrichFailed, "exe: y\x00"),
		end.Written())
}
