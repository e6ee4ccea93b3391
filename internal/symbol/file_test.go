package symbol

import (
	"debug/elf"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stackshot/internal/testneed"
)

// symbolAt returns the address nm gives for a name.
func symbolAt(t testing.TB, path, name string) uint64 {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	syms, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	for _, y := range syms {
		if y.Name == name {
			return y.Value
		}
	}
	t.Fatalf("%s has no %s", path, name)
	return 0
}

func wantName(t testing.TB, f *File, addr uint64, name string) {
	t.Helper()
	if got, ok := f.Function(addr); got.Name != name || ok != (name != "") {
		t.Errorf("%#x is %+v, want %q", addr, got, name)
	}
}

func TestNamesOfEveryKind(t *testing.T) {
	testneed.Live(t)
	prog := compiled(t, "gcc", "names.c", "-O2", "-fno-pie", "-no-pie")
	f := opened(t, prog)
	for name, want := range map[string]string{
		"leaf": "leaf", "global_function": "global_function", "__under_alias": "global_function",
		"asm_without_size": "asm_without_size", "asm_next": "asm_next",
	} {
		wantName(t, f, symbolAt(t, prog, name), want)
	}
	bare := symbolAt(t, prog, "asm_without_size")
	wantName(t, f, bare+2, "asm_without_size")
	wantName(t, f, bare+3, "asm_next")
	if at := symbolAt(t, prog, "indirect"); at != symbolAt(t, prog, "pick") {
		t.Fatal("the indirect function is not where its resolver is")
	}
	wantName(t, f, symbolAt(t, prog, "pick"), "indirect") // global before local
	wantName(t, f, 0, "")
	wantName(t, f, ^uint64(0), "")
}

// What follows a symbol without a size may be a function that only a stripped table
// had: then it has no name.
func TestSymbolWithoutSize(t *testing.T) {
	testneed.Live(t)
	lib := compiled(t, "gcc", "bare.S", "-shared", "-nostdlib")
	full := opened(t, lib)
	bare, next := symbolAt(t, lib, "bare"), symbolAt(t, lib, "not_exported")
	for addr, name := range map[uint64]string{bare: "bare", next - 1: "bare", next: "not_exported", next + 15: "not_exported"} {
		wantName(t, full, addr, name)
	}
	command(t, "strip", lib)
	stripped := opened(t, lib)
	for addr, name := range map[uint64]string{bare: "bare", bare + 1: "", next - 1: "", next: "", next + 15: "", next + 16: "exported"} {
		wantName(t, stripped, addr, name)
	}
}

// Between sized functions nothing has a name: no guess by nearness.
func TestGapsHaveNoName(t *testing.T) {
	testneed.Live(t)
	prog := compiled(t, "gcc", "names.c", "-O2", "-falign-functions=64")
	f := opened(t, prog)
	syms := nmFunctions(t, prog)
	slices.SortFunc(syms, func(a, b nmSymbol) int { return int(a.addr) - int(b.addr) })
	gaps := 0
	for i, y := range syms[1:] {
		if end := syms[i].addr + syms[i].size; end < y.addr && syms[i].name != "_fini" && syms[i].name != "_init" {
			if got, ok := f.Function(end); ok && got.Start < end {
				t.Errorf("%#x, past the end of %s, is %+v", end, syms[i].name, got)
			}
			gaps++
		}
	}
	if gaps == 0 {
		t.Error("no gap to look into")
	}
}

// goProgram builds the Go fixture.
func goProgram(t testing.TB, args ...string) string {
	t.Helper()
	dir := t.TempDir()
	copyFile(t, "testdata/prog.go.txt", filepath.Join(dir, "prog.go"))
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module prog\ngo 1.26\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	commandIn(t, dir, "go", append(append([]string{"build", "-o", "prog"}, args...), ".")...)
	return filepath.Join(dir, "prog")
}

// A stripped Go program is named by its pclntab exactly as by its symbols.
func TestStrippedGo(t *testing.T) {
	testneed.Lab(t, testneed.Witness)
	for _, mode := range []string{"exe", "pie"} {
		plain := goProgram(t, "-trimpath", "-buildmode="+mode)
		stripped := filepath.Join(t.TempDir(), "stripped")
		command(t, "strip", "-o", stripped, plain)
		a, b := opened(t, plain), opened(t, stripped)
		if b.full || !a.full {
			t.Fatal("strip does not strip")
		}
		n, bad := 0, 0
		for _, y := range nmFunctions(t, plain) {
			fa, _ := a.Function(y.addr + y.size/2)
			fb, ok := b.Function(y.addr + y.size/2)
			if n++; !ok || goName(fa.Name) != goName(fb.Name) || fa.Start != fb.Start {
				if bad++; bad < 5 {
					t.Errorf("%s: %#x is %+v in symbols, %+v in pclntab", mode, y.addr, fa, fb)
				}
			}
		}
		if n < 1000 {
			t.Errorf("%s: only %d functions", mode, n)
		}
	}
}

// goName leaves out what the linker writes differently in its two tables.
func goName(s string) string {
	return strings.ReplaceAll(strings.TrimSuffix(s, ".abi0"), "·", ".")
}

func TestBuildID(t *testing.T) {
	testneed.Live(t)
	prog := compiled(t, "gcc", "names.c", "-Wl,--build-id=0x0123456789abcdef")
	if got := string(opened(t, prog).BuildID()); got != "\x01\x23\x45\x67\x89\xab\xcd\xef" {
		t.Errorf("build-id %x", got)
	}
	none := compiled(t, "gcc", "names.c", "-Wl,--build-id=none")
	if got := opened(t, none).BuildID(); got != nil {
		t.Errorf("build-id %x of a program without", got)
	}
}

// A program with nothing but .gnu_debugdata, packed as Fedora packs it.
func TestMiniDebugInfo(t *testing.T) {
	testneed.Live(t)
	prog := compiled(t, "gcc", "names.c", "-O2")
	leaf := symbolAt(t, prog, "leaf")
	bare := withMiniDebug(t, prog)
	f := opened(t, bare)
	if f.full || len(f.Problems()) > 0 {
		t.Fatalf("symtab %v, problems %v", f.full, f.Problems())
	}
	wantName(t, f, leaf, "leaf")
	agrees(t, bare, f, append(nmFunctions(t, prog), nmFunctions(t, prog, "-D")...))
}

func withMiniDebug(t testing.TB, prog string) string {
	t.Helper()
	dir := t.TempDir()
	mini, bare := filepath.Join(dir, "mini"), filepath.Join(dir, "bare")
	command(t, "objcopy", "-S", "--remove-section", ".gnu_debuglink", prog, bare)
	command(t, "objcopy", "--only-keep-debug", prog, mini)
	command(t, "objcopy", "--strip-debug", "--remove-section", ".comment", mini)
	command(t, "xz", mini)
	command(t, "objcopy", "--add-section", ".gnu_debugdata="+mini+".xz", bare)
	return bare
}

func TestNamesAreBounded(t *testing.T) {
	long := "_Z" + strings.Repeat("9", 20000)
	for _, raw := range []string{long, strings.Repeat("a", 1<<20), "_ZN" + strings.Repeat("S_", 8000), "_R" + strings.Repeat("NvC", 2000), strings.Repeat("ü", 4000)} {
		if got := Demangle(raw); len(got) > maxName+3 || got == "" {
			t.Errorf("%.20q became %d bytes", raw, len(got))
		}
	}
}

// Names as g++ and rustc make them read as calls, without their hashes; those of C and Go stay.
func TestDemangle(t *testing.T) {
	for raw, want := range map[string]string{
		"_ZNK3lab2OpclEi":                          "lab::Op::operator()",
		"_ZN3lab5applyINS_2OpEEEiT_i":              "lab::apply<lab::Op>",
		"_ZN3lab5applyIZ4mainEUliE_EEiT_i":         "lab::apply<main::{lambda(int)#1}>",
		"_ZN4prog3lab7generic17hb6373fba97e10491E": "prog::lab::generic", // has no arguments to show
		"_RINvNtCs56HGsqMBDvY_4prog3lab7genericINtNtCslNYArtu3iFV_5alloc3vec3VechEEB4_":                 "prog::lab::generic::<alloc::vec::Vec<u8>>",
		"_ZN55_$LT$prog..lab..Op$u20$as$u20$core..ops..arith..Add$GT$3add17hbf013b92e2057150E":          "<prog::lab::Op as core::ops::arith::Add>::add",
		"_RNvXNtCs56HGsqMBDvY_4prog3labNtB2_2OpNtNtNtCsgEmfK2I1SDS_4core3ops5arith3Add3add":             "<prog::lab::Op as core::ops::arith::Add>::add",
		"_ZN3lab5TableINSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEESt6vectorIiSaIiEEE2atERKS6_": "lab::Table<std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >, std::vector<int, std::allocator<int> > >::at",
		"main.(*tree[int]).walk": "main.(*tree[int]).walk", "foo.constprop.0": "foo.constprop.0",
	} {
		if got := Demangle(raw); got != want {
			t.Errorf("%s became %s", raw, got)
		}
	}
}
