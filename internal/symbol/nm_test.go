package symbol

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"stackshot/internal/testneed"
)

// nmSymbol is a function that nm lists.
type nmSymbol struct {
	addr, size uint64
	name       string
}

// nmFunctions lists the functions with a size of one table of symbols.
func nmFunctions(t testing.TB, path string, args ...string) (out []nmSymbol) {
	t.Helper()
	for line := range strings.Lines(string(command(t, "nm", append(args, "-f", "sysv", path)...))) {
		f := strings.Split(line, "|")
		if len(f) != 7 {
			continue
		}
		for i := range f {
			f[i] = strings.TrimSpace(f[i])
		}
		if f[3] != "FUNC" && !strings.HasSuffix(f[3], ": 10") /* IFUNC */ || f[6] == "*UND*" || f[4] == "" {
			continue
		}
		addr, err1 := strconv.ParseUint(f[1], 16, 64)
		size, err2 := strconv.ParseUint(f[4], 16, 64)
		if err1 != nil || err2 != nil {
			t.Fatalf("nm: %q", line)
		}
		name, _, _ := strings.Cut(f[0], "@")
		if size > 0 {
			out = append(out, nmSymbol{addr, size, name})
		}
	}
	return out
}

// agrees checks first, middle and last byte of each function against nm: what
// is found must be a function of nm's that holds the address, and none that
// begins later may hold it too.
func agrees(t *testing.T, path string, f *File, syms []nmSymbol) int {
	t.Helper()
	names := map[uint64][]string{}
	for _, y := range syms {
		names[y.addr] = append(names[y.addr], y.name)
	}
	bad := 0
	for _, y := range syms {
		for _, at := range []uint64{y.addr, y.addr + y.size/2, y.addr + y.size - 1} {
			got, ok := f.Function(at)
			if ok && got.Start >= y.addr && got.Start <= at && slices.Contains(names[got.Start], got.Raw) {
				continue
			}
			if bad++; bad <= 5 {
				t.Errorf("%s: %#x is %+v %v, nm says %q at %#x+%#x", path, at, got, ok, names[y.addr], y.addr, y.size)
			}
		}
	}
	return len(syms)
}

// nm is the oracle, on what this machine has: stripped libraries and programs,
// and ones with all their symbols.
func TestFunctionsAreWhatNmSays(t *testing.T) {
	testneed.Lab(t, testneed.Witness)
	testneed.Slow(t)
	paths := []string{"/bin/sh", "/bin/ls", "/bin/bash"}
	for _, glob := range []string{"/lib/*-linux-gnu/libc.so.6", "/usr/lib/*-linux-gnu/lib[cs]*.so.?"} {
		found, _ := filepath.Glob(glob)
		paths = append(paths, found...)
	}
	if gotool, err := filepath.EvalSymlinks(goTool(t)); err == nil {
		paths = append(paths, gotool)
	}
	total := 0
	for _, path := range paths {
		if st, err := os.Stat(path); err != nil || !st.Mode().IsRegular() {
			continue
		}
		f := opened(t, path)
		syms := nmFunctions(t, path, "-D")
		if f.full {
			syms = append(syms, nmFunctions(t, path)...)
		}
		total += agrees(t, path, f, syms)
	}
	if total < 5000 {
		t.Errorf("nm listed %d functions in %d files: too few to prove anything", total, len(paths))
	}
	t.Logf("%d functions in %d files", total, len(paths))
}

func goTool(t testing.TB) string {
	return strings.TrimSpace(string(command(t, "go", "env", "GOROOT"))) + "/bin/go"
}
