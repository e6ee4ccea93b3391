//go:build linux

package userlab

import (
	"debug/elf"
	"encoding/binary"
	"runtime"
	"strings"
	"testing"

	"stackshot/internal/testneed"
)

// Every function that the compiler makes has tables, in both classes and all
// kinds of files, and an address outside of the text has none.
func TestSpansCoverWhatIsCompiled(t *testing.T) {
	testneed.Live(t)
	b := newBuilder(t)
	b.run("go", "build", "-o", b.file("goroutines.out"), "goroutines/main.go")
	programs := map[string][]string{
		b.kperf(FramePointers):              {"recurse_a", "recurse_b", "kperf_thread", "main"},
		b.cc("gcc", "blocked.c", "-static"): {"deeper", "main", "qsort", "__libc_start_main"},
		b.done(b.file("goroutines.out")):    {"main.recurse", "main.main", "runtime.mcall", "runtime.schedule"},
	}
	if runtime.GOARCH == "amd64" {
		programs[b.cc("gcc", "elf32.c", elf32Flags)] = []string{"inner32", "outer32", "_start"}
	}
	for path, names := range programs {
		spans, symbols := spansAndSymbols(t, path)
		for _, name := range names {
			checkCovered(t, path, spans, symbols, name)
		}
		if covers(spans, 1) || covers(spans, 1<<62) {
			t.Errorf("%s: tables cover everything", path)
		}
	}
}

func spansAndSymbols(t *testing.T, path string) ([]span, []elf.Symbol) {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	spans, err := spansOf(f)
	if err != nil {
		t.Fatal(err)
	}
	symbols, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	return spans, symbols
}

func checkCovered(t *testing.T, path string, spans []span, symbols []elf.Symbol, name string) {
	t.Helper()
	for _, s := range symbols {
		if s.Name == name {
			if !covers(spans, s.Value) || s.Size > 0 && !covers(spans, s.Value+s.Size-1) {
				t.Errorf("%s: %s at %#x+%d is not covered", path, name, s.Value, s.Size)
			}
			return
		}
	}
	t.Errorf("%s: no symbol %s", path, name)
}

// A function of musl's own has none: the reason for asking at all.
func TestSpansLeaveMuslOut(t *testing.T) {
	testneed.Live(t)
	testneed.Program(t, "musl-gcc")
	spans, symbols := spansAndSymbols(t, newBuilder(t).cc("musl-gcc", "blocked.c", "-static"))
	checkCovered(t, "musl", spans, symbols, "deeper")
	for _, s := range symbols {
		if strings.HasPrefix(s.Name, "__syscall_cp_c") && covers(spans, s.Value) {
			t.Errorf("%s is covered", s.Name)
		}
	}
}

// Damaged tables give an error or some spans.
func FuzzSpans(f *testing.F) {
	f.Add([]byte{12, 0, 0, 0, 0, 0, 0, 0, 1, 'z', 'R', 0, 1, 1, 16, 1}, true, true)
	f.Add([]byte{4, 0, 0, 0, 0, 0, 0, 0}, true, false)
	f.Add([]byte{4, 0, 0, 0, 255, 255, 255, 255}, false, true)
	f.Fuzz(func(t *testing.T, data []byte, eh, wide bool) {
		tab := table{data: data, order: binary.LittleEndian, word: 4, eh: eh}
		if wide {
			tab.word = 8
		}
		if spans, err := tab.spans(); err != nil && spans != nil {
			t.Errorf("spans %v with %v", spans, err)
		}
	})
}
