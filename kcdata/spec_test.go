package kcdata

import (
	"encoding/binary"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math/bits"
	"os"
	"reflect"
	"sort"
	"strconv"
	"strings"
	"testing"
)

var linuxStructs = map[Type]any{
	TypeLinuxMachine: LinuxMachine{}, TypeLinuxCPU: LinuxCPU{}, TypeLinuxModule: LinuxModule{},
	TypeLinuxCapture: LinuxCapture{}, TypeLinuxLeftOut: LinuxLeftOut{}, TypeLinuxSymbol: LinuxSymbol{},
	TypeLinuxTask: LinuxTask{}, TypeLinuxTaskMemory: LinuxTaskMemory{}, TypeLinuxTaskNS: LinuxTaskNS{},
	TypeLinuxTaskExe: LinuxTaskExe{}, TypeLinuxThread: LinuxThread{}, TypeLinuxSyscall: LinuxSyscall{},
	TypeLinuxThreadIO: LinuxThreadIO{}, TypeLinuxDelays: LinuxDelays{}, TypeLinuxSignals: LinuxSignals{},
	TypeLinuxThreadNS: LinuxThreadNS{}, TypeLinuxRegisters: LinuxRegister{},
	TypeLinuxAtomicity: LinuxAtomicity{}, TypeLinuxRan: LinuxRan{}, TypeLinuxPhases: LinuxPhases{},
	TypeLinuxArena: LinuxArena{}, TypeLinuxTry: LinuxTry{}, TypeLinuxTrace: LinuxTrace{}, TypeLinuxSample: LinuxSample{},
	TypeLinuxMapping: LinuxMapping{}, TypeLinuxMapWalk: LinuxMapWalk{}, TypeLinuxUserSymbol: LinuxUserSymbol{},
	TypeLinuxUserTaken: LinuxUserTaken{}, TypeLinuxUserWalk: LinuxUserWalk{}, TypeLinuxUserChain: LinuxUserLink{},
	TypeLinuxWaitTaken: LinuxWaitTaken{}, TypeLinuxWait: LinuxWait{}, TypeLinuxFutex: LinuxFutex{},
	TypeLinuxFilesTaken: LinuxFilesTaken{}, TypeLinuxEnd: LinuxEnd{}, TypeLinuxFileLock: LinuxFileLock{}, TypeLinuxMount: LinuxMount{},
	TypeLinuxDevice: LinuxDevice{}, TypeLinuxFUSE: LinuxFUSE{}, TypeLinuxFile: LinuxFile{}, TypeLinuxSocket: LinuxSocket{},
	TypeLinuxCgroup: LinuxCgroup{}, TypeLinuxCgroupsTaken: LinuxCgroupsTaken{}, TypeLinuxPanic: LinuxPanic{},
}

// declaredTypes reads the constants of type Type from the package's source, so
// that a constant without a spec, or two constants with one value, cannot hide.
func declaredTypes(t *testing.T) map[string]Type {
	t.Helper()
	out := make(map[string]Type)
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if strings.HasSuffix(f.Name(), ".go") && !strings.HasSuffix(f.Name(), "_test.go") {
			declaredIn(t, f.Name(), out)
		}
	}
	return out
}

func declaredIn(t *testing.T, file string, out map[string]Type) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		id, typed := v.Type.(*ast.Ident)
		if !typed || id.Name != "Type" || len(v.Values) != 1 {
			return true
		}
		if lit, ok := v.Values[0].(*ast.BasicLit); ok {
			x, err := strconv.ParseUint(lit.Value, 0, 32)
			if err != nil {
				t.Fatal(err)
			}
			out[v.Names[0].Name] = Type(x)
		}
		return true
	})
}

func TestK8EveryTypeHasOneIDAndASpec(t *testing.T) {
	declared := declaredTypes(t)
	if len(declared) < 100 {
		t.Errorf("only %d constants found", len(declared))
	}
	byID := make(map[Type]string)
	for name, id := range declared {
		if other, dup := byID[id]; dup {
			t.Errorf("%s and %s are both %#x", name, other, uint32(id))
		}
		byID[id] = name
		if _, ok := Lookup(id); !ok && !id.isCompactArray() {
			t.Errorf("%s %#x has no spec", name, uint32(id))
		}
	}
}

func TestK8SpecsAreSound(t *testing.T) {
	names := make(map[string]Type)
	for id, s := range table {
		if s.Type != id || s.Name == "" || s.Key == "" {
			t.Errorf("%#x: incomplete %+v", uint32(id), s)
		}
		if other, dup := names[s.Name]; dup {
			t.Errorf("%#x and %#x are both named %s", uint32(id), uint32(other), s.Name)
		}
		names[s.Name] = id
		if !sort.IntsAreSorted(s.Sizes) {
			t.Errorf("%s: sizes %v not ascending", s.Name, s.Sizes)
		}
		auditFields(t, s)
	}
}

func auditFields(t *testing.T, s Spec) {
	t.Helper()
	if (s.Kind == KindStruct) != (len(s.Fields) > 0) {
		t.Errorf("%s: kind %d with %d fields", s.Name, s.Kind, len(s.Fields))
	}
	end, seen := 0, make(map[string]bool)
	for _, f := range s.Fields {
		if f.Name == "" || len(f.Name) > maxName || seen[f.Name] {
			t.Errorf("%s: field name %q empty, too long or twice", s.Name, f.Name)
		}
		seen[f.Name] = true
		if f.Offset != end {
			t.Errorf("%s.%s at %d, packed it is at %d", s.Name, f.Name, f.Offset, end)
		}
		end = f.End()
	}
	if s.Kind == KindStruct && end != s.Size() {
		t.Errorf("%s: fields end at %d, size %d", s.Name, end, s.Size())
	}
	for _, size := range s.Sizes {
		fields := s.FieldsFor(size)
		if len(fields) > 0 && fields[len(fields)-1].End() != size {
			t.Errorf("%s: the version of %d bytes ends inside a field", s.Name, size)
		}
	}
}

func TestK8NoMagicIsAnothersByteswap(t *testing.T) {
	var magics []Type
	for id, s := range table {
		if s.Kind == KindMagic {
			magics = append(magics, id)
		}
	}
	magics = append(magics, BufferEnd)
	if len(magics) != 8 {
		t.Fatalf("%d magics", len(magics))
	}
	for _, a := range magics {
		if a != BufferEnd && !a.IsMagic() {
			t.Errorf("%v is a magic and is not known as one", a)
		}
		for _, b := range magics {
			if uint32(a) == bits.ReverseBytes32(uint32(b)) {
				t.Errorf("%v is the byteswap of %v", a, b)
			}
		}
	}
}

// The layouts of Apple's structs, compiled from the public header, against the
// table that reflection makes from ours.
func TestK8AppleLayouts(t *testing.T) {
	b, err := os.ReadFile("testdata/layouts.txt")
	if err != nil {
		t.Fatal(err)
	}
	covered := make(map[Type][]int)
	for _, line := range strings.Split(strings.TrimSpace(string(b)), "\n") {
		if strings.HasPrefix(line, "#") {
			continue
		}
		words := strings.Fields(line)
		id, _ := strconv.ParseUint(words[0], 0, 32)
		size, _ := strconv.Atoi(words[1])
		s, ok := Lookup(Type(id))
		if !ok {
			t.Errorf("%s: no spec", words[0])
			continue
		}
		covered[s.Type] = append(covered[s.Type], size)
		got := []string{words[0], words[1]}
		for _, f := range s.FieldsFor(size) {
			got = append(got, fmt.Sprintf("%d:%s:%s", f.Offset, shortElem(f), f.Name))
		}
		for i := range words[2:] {
			at := strings.LastIndexByte(words[i+2], ':') + 1
			words[i+2] = words[i+2][:at] + cutName(words[i+2][at:])
		}
		if g, w := strings.Join(got, " "), strings.Join(words, " "); g != w {
			t.Errorf("%s\n got %s\nwant %s", s.Name, g, w)
		}
	}
	for id, sizes := range covered {
		s, _ := Lookup(id)
		sort.Ints(sizes)
		if id != TypeSharedCacheLoadinfo && !reflect.DeepEqual(sizes, s.Sizes) {
			t.Errorf("%s: sizes %v, the header's are %v", s.Name, s.Sizes, sizes)
		}
	}
	if len(covered) < 45 {
		t.Errorf("only %d types covered", len(covered))
	}
}

func shortElem(f Field) string {
	names := []string{"", "char", "s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64"}
	if f.Count > 0 {
		return fmt.Sprintf("%s[%d]", names[f.Elem], f.Count)
	}
	return names[f.Elem]
}

func TestK8LinuxStructsHaveNoImplicitPadding(t *testing.T) {
	for id, v := range linuxStructs {
		s, _ := Lookup(id)
		rt := reflect.TypeOf(v)
		if packed := binary.Size(v); packed != int(rt.Size()) || packed != SizeOf(v) || packed != s.Size() {
			t.Errorf("%s: packed %d, in memory %d, SizeOf %d, spec %d", rt, packed, rt.Size(), SizeOf(v), s.Size())
		}
		for i, f := range s.Fields {
			if int(rt.Field(i).Offset) != f.Offset {
				t.Errorf("%s.%s: at %d in memory, %d on the wire", rt, f.Name, rt.Field(i).Offset, f.Offset)
			}
			if f.Offset%f.Elem.Size() != 0 {
				t.Errorf("%s.%s: not aligned", rt, f.Name)
			}
		}
	}
}

func TestK8LinuxIDsStayInTheirRange(t *testing.T) {
	structs := 0
	for id, s := range table {
		if strings.HasPrefix(s.Name, "LINUX_") != (id >= 0x4C00 && id <= 0x4CFF) {
			t.Errorf("%s has id %#x", s.Name, uint32(id))
		}
		if id >= 0x4C00 && id <= 0x4CFF {
			if len(s.Key) > maxName {
				t.Errorf("%s: key %q is too long for a definition", s.Name, s.Key)
			}
			if s.Kind == KindStruct {
				structs++
			}
		}
	}
	if structs != len(linuxStructs) {
		t.Errorf("%d L structs in the table, %d tested", structs, len(linuxStructs))
	}
}

// The full name is in the tag: cutting would change an L field silently.
func TestK8LinuxFieldNamesAreNotCut(t *testing.T) {
	for id, v := range linuxStructs {
		s, _ := Lookup(id)
		for i, f := range s.Fields {
			if tag, _, _ := strings.Cut(reflect.TypeOf(v).Field(i).Tag.Get("kc"), ","); tag != f.Name {
				t.Errorf("%s: %q was cut to %q", s.Name, tag, f.Name)
			}
		}
	}
}
