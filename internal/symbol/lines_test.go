package symbol

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"stackshot/internal/testneed"
)

// linesOf makes the table of a program.
func linesOf(t testing.TB, path string) (*File, *lineTable) {
	t.Helper()
	f := opened(t, path)
	sections, err := f.debugSections()
	if err != nil {
		t.Fatal(err)
	}
	lines, err := newLineTable(context.Background(), sections)
	if err != nil {
		t.Fatal(err)
	}
	return f, lines
}

// addr2line asks for all addresses at once: per address "0xADDR", then pairs of
// function and file:line, innermost first.
func addr2line(t testing.TB, tool, path string, addrs []uint64) map[uint64][]string {
	t.Helper()
	args := []string{"-a", "-i", "-f", "-C", "-s", "-e", path}
	for _, a := range addrs {
		args = append(args, fmt.Sprintf("%#x", a))
	}
	out := map[uint64][]string{}
	var at uint64
	lines := strings.Split(strings.TrimSpace(string(command(t, tool, args...))), "\n")
	for i := 0; i < len(lines); i++ {
		if strings.HasPrefix(lines[i], "0x") {
			fmt.Sscanf(lines[i], "0x%x", &at)
			continue
		}
		where, _, _ := strings.Cut(lines[i+1], " ") // "(discriminator 2)"
		fn, _, _ := strings.Cut(lines[i], "(")
		out[at] = append(out[at], fn+" "+where)
		i++
	}
	return out
}

// sameAsAddr2line compares every step-th byte of the functions that pick takes.
// of C++ only the places: the tools do not agree on how to write a name.
func sameAsAddr2line(t *testing.T, tool, path string, cxx bool, step uint64, pick func(string) bool) {
	t.Helper()
	f, lines := linesOf(t, path)
	var addrs []uint64
	for _, y := range nmFunctions(t, path) {
		for at := y.addr; pick(y.name) && at < y.addr+y.size; at += step {
			addrs = append(addrs, at)
		}
	}
	if len(addrs) == 0 || len(addrs) > 4000 {
		t.Fatalf("%d addresses", len(addrs))
	}
	want, inlined, bad := addr2line(t, tool, path, addrs), 0, 0
	for _, at := range addrs {
		got := described(t, f, lines, at)
		if len(got) > 1 {
			inlined++
		}
		if a, b := strings.Join(got, "; "), strings.Join(want[at], "; "); a != b && !(cxx && placesOf(got) == placesOf(want[at])) {
			if bad++; bad <= 5 {
				t.Errorf("%#x is\n%q, %s says\n%q", at, got, tool, want[at])
			}
		}
	}
	if inlined == 0 {
		t.Error("nothing inlined was seen")
	}
	t.Logf("%s: %d addresses, %d in inlined functions, %d differ", path, len(addrs), inlined, bad)
}

// placesOf leaves out the names.
func placesOf(described []string) (out string) {
	for _, d := range described {
		out += d[strings.LastIndexByte(d, ' ')+1:] + "; "
	}
	return out
}

func described(t testing.TB, f *File, lines *lineTable, at uint64) (out []string) {
	t.Helper()
	places, err := lines.Places(context.Background(), at)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range places {
		name := p.Function
		if name == "" {
			fn, _ := f.Function(at)
			name = fn.Name
		}
		where := "??:0"
		if p.File != "" {
			where = fmt.Sprintf("%s:%d", filepath.Base(p.File), p.Line)
		}
		out = append(out, name+" "+where)
	}
	return out
}

// Lines and inlined functions are those of addr2line, whatever the version of
// DWARF and the packing of its sections. C++ has its functions in namespaces and classes, and
// inlines most of them.
func TestLinesAreWhatAddr2lineSays(t *testing.T) {
	testneed.Lab(t, testneed.Witness)
	testneed.Slow(t)
	named := func(name string) bool { return name == "global_function" || name == "leaf" }
	for _, flags := range []string{
		"-gdwarf-2", "-gdwarf-3", "-gdwarf-4", "-gdwarf-5", "-gdwarf-5 -gz=zlib", "-gdwarf-5 -Wl,--compress-debug-sections=zstd",
		"-gdwarf-4 -Wl,--compress-debug-sections=zlib-gnu", "-gdwarf-5 -ffunction-sections -fno-omit-frame-pointer -O3",
	} {
		t.Run(flags, func(t *testing.T) {
			prog := compiled(t, "gcc", "names.c", append([]string{"-O2", "-g"}, strings.Fields(flags)...)...)
			sameAsAddr2line(t, "addr2line", prog, false, 1, named)
		})
	}
	for compiler, tool := range map[string]string{"g++": "addr2line", "clang++-19": "llvm-addr2line-19"} {
		prog := compiled(t, compiler, "templates.cc", "-O2", "-g")
		sameAsAddr2line(t, tool, prog, true, 3, func(name string) bool { return name == "main" || strings.Contains(name, "lab") })
	}
}

// Go's own table has the lines where the DWARF was stripped.
func TestGoLinesWithoutDWARF(t *testing.T) {
	testneed.Lab(t, testneed.Witness)
	testneed.Slow(t)
	prog, full := goProgram(t, "-trimpath", "-ldflags=-w"), goProgram(t, "-trimpath")
	f := opened(t, prog)
	if hasDebug(f.layout) {
		t.Fatal("-w leaves DWARF")
	}
	_, lines := linesOf(t, full)
	same, n := 0, 0
	for _, y := range nmFunctions(t, full) {
		at := y.addr + y.size/2
		places, err := lines.Places(context.Background(), at)
		if err != nil || len(places) == 0 || places[0].Line == 0 {
			continue
		}
		file, line := f.SourceLine(at)
		if n++; file == places[0].File && line == places[0].Line {
			same++
		} else if n-same < 3 {
			t.Logf("%s+%#x is %s:%d, DWARF says %v", y.name, y.size/2, file, line, places)
		}
	}
	if n < 500 || same*100 < n*98 {
		t.Errorf("%d of %d lines are DWARF's", same, n)
	}
}
