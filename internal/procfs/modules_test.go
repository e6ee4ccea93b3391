package procfs

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// note encodes one ELF note.
func note(name string, kind uint32, desc []byte) []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(len(name)))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(desc)))
	b = binary.LittleEndian.AppendUint32(b, kind)
	b = append(b, name...)
	b = append(b, make([]byte, -len(name)&3)...)
	b = append(b, desc...)
	return append(b, make([]byte, -len(desc)&3)...)
}

func TestKernelNotes(t *testing.T) {
	id := bytes.Repeat([]byte{0xa5}, 20)
	for _, c := range []struct {
		name  string
		notes []byte
		want  []byte
	}{
		{"alone", note("GNU\x00", 3, id), id},
		{"behind others", append(append(note("Xen\x00", 6, []byte("linux")), note("Linux\x00", 0x100, []byte{1})...), note("GNU\x00", 3, id)...), id},
		{"unpadded end", note("GNU\x00", 3, id[:18])[:16+18], id[:18]},
		{"other owner", note("Xen\x00", 3, id), nil},
		{"other kind", note("GNU\x00", 1, id), nil},
		{"empty", nil, nil}, {"no descriptor", note("GNU\x00", 3, nil), nil}, {"too long", note("GNU\x00", 3, make([]byte, 65)), nil},
		{"cut", note("GNU\x00", 3, id)[:20], nil},
		{"preposterous", bytes.Repeat([]byte{0xff}, 64), nil},
	} {
		if got := findBuildID(c.notes); !bytes.Equal(got, c.want) || (c.want == nil) != (got == nil) {
			t.Errorf("%s: %x; want %x", c.name, got, c.want)
		}
	}
}

func TestReadModules(t *testing.T) {
	proc, sys := t.TempDir(), t.TempDir()
	if mods, err := ReadModules(proc, sys); mods != nil || err != nil {
		t.Errorf("kernel without modules: %v, %v", mods, err)
	}
	write := func(path string, data []byte) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(proc, "modules"), []byte("nfs 569344 2 - Live 0xffffffffc0201000 (OE)\nsunrpc 700416 5 nfs,lockd, Live 0xffffffffc0100000\ngone 4096 0 - Unloading 0x0000000000000000\n"))
	write(filepath.Join(sys, "module/nfs/notes/.note.gnu.build-id"), note("GNU\x00", 3, []byte{1, 2}))
	write(filepath.Join(sys, "module/sunrpc/notes/.note.gnu.build-id"), []byte("rubbish"))
	want := []Module{
		{"nfs", 0xffffffffc0201000, 569344, []byte{1, 2}},
		{"sunrpc", 0xffffffffc0100000, 700416, nil},
		{"gone", 0, 4096, nil},
	}
	if got, err := ReadModules(proc, sys); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	write(filepath.Join(sys, "kernel/notes"), append(note("Xen\x00", 6, []byte("linux")), note("GNU\x00", 3, []byte{9})...))
	if id, err := ReadKernelBuildID(sys); err != nil || !bytes.Equal(id, []byte{9}) {
		t.Errorf("kernel: %x, %v", id, err)
	}
}

func TestParseModulesRefuses(t *testing.T) {
	for _, text := range []string{"nfs\n", "nfs x 2 - Live 0x1\n", "nfs 1 2 - Live zz\n", "../../etc 1 2 - Live 0x1\n", ".. 1 2 - Live 0x1\n", strings.Repeat("x", 1<<17)} {
		if m, err := ParseModules(text); m != nil || !errors.Is(err, ErrModuleFormat) {
			t.Errorf("%.40q: %v, %v", text, m, err)
		}
	}
}

// TestReadModulesReal: the running kernel's own files parse, and its build-id
// has one of the usual lengths.
func TestReadModulesReal(t *testing.T) {
	if _, err := ReadModules("/proc", "/sys"); err != nil {
		t.Error(err)
	}
	id, err := ReadKernelBuildID("/sys")
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission) {
		return // a kernel built without notes, or a sandbox
	}
	if err != nil || len(id) != 20 && len(id) != 16 && len(id) != 8 && len(id) != 32 {
		t.Errorf("kernel build-id %x, %v", id, err)
	}
}

func FuzzParseModules(f *testing.F) {
	f.Add("nfs 569344 2 - Live 0xffffffffc0201000 (OE)\n", note("GNU\x00", 3, []byte{1}))
	f.Fuzz(func(t *testing.T, text string, notes []byte) {
		mods, err := ParseModules(text)
		if err != nil && mods != nil {
			t.Fatal("an error and modules")
		}
		for _, m := range mods {
			if m.Name == "" || strings.Contains(m.Name, "/") {
				t.Fatalf("name %q", m.Name)
			}
		}
		if id := findBuildID(notes); id != nil && (len(id) == 0 || len(id) > 64) {
			t.Fatalf("build-id %x", id)
		}
	})
}
