//go:build linux && (amd64 || arm64)

package unwind

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"stackshot/internal/testneed"
	"stackshot/kcdata"
)

// A thread of musl's begins in assembly without a table, and nothing of its
// library has one.
func TestMuslThread(t *testing.T) {
	testneed.Lab(t, testneed.Witness)
	if runtime.GOARCH != "amd64" {
		t.Skip("code without tables is read on amd64 only")
	}
	dir := t.TempDir()
	path := build(t, dir, recursion, "musl-gcc", "-O2", "-static", "-o", "prog", "a.c", "b.c", "main.c", "-pthread")
	pid, tid := start(t, 'S', path, "12", "block")
	k := take(t, pid, tid, 1<<20, 1000)
	r := k.process().Unwind(k.in)
	got := k.stack(r)
	if want := ours(12); !matches(got, append(append([]string{"..."}, want...), "...")) {
		t.Errorf("%s\nwant %s\nflags %#x at %#x: %v", brief(got), brief(want), r.Flags, r.StopAddr, r.Err)
	}
	if r.Flags&kcdata.UserNoUnwindTable == 0 {
		t.Errorf("flags %#x do not say that tables are missing", r.Flags)
	}
	t.Log(brief(got), fmt.Sprintf("%#x", r.Flags), r.Err)
	checkPrefixes(t, k, r)
}

// The runtime's own threads wait on the scheduler's stack; a thread in C waits
// above a change of stacks. Each ends at a first frame or says what was missing.
func TestGoThreads(t *testing.T) {
	testneed.Lab(t, testneed.Witness)
	testneed.Slow(t)
	for _, p := range []struct{ name, text string }{{"go", goGo}, {"cgo", cgoGo}} {
		t.Run(p.name, func(t *testing.T) {
			path := build(t, t.TempDir(), map[string]string{"p.go": p.text}, "go", "build", "-o", "prog", "p.go")
			pid, main := start(t, 'S', path)
			entered := 0
			for _, tid := range threads(t, pid) {
				k := take(t, pid, tid, 1<<20, 1000)
				r := k.process().Unwind(k.in)
				got := k.stack(r)
				if i := slices.Index(got, "runtime.mstart.abi0"); i >= 0 && p.name == "cgo" {
					entered++ // by C: crosscall1, threadentry, and the C library's two
					if !matches(got[i+1:], strings.Fields("?|crosscall1 threadentry ?|start_thread ?|~clone")) {
						t.Errorf("%s: what called runtime.mstart?", brief(got))
					}
				} else if i >= 0 && i+1 != len(got) {
					t.Errorf("%s goes on past runtime.mstart", brief(got))
				}
				t.Log(tid, brief(got), fmt.Sprintf("%#x %v", r.Flags, r.Err), r.How)
				if tid == main && p.name == "cgo" {
					checkCgo(t, k, r)
				} else if r.Flags&kcdata.UserComplete == 0 {
					t.Errorf("%s is not complete: flags %#x, %v", brief(got), r.Flags, r.Err)
				}
				checkPrefixes(t, k, r)
			}
			if p.name == "cgo" && entered == 0 {
				t.Error("no thread begins in runtime.mstart")
			}
		})
	}
}

// With the goroutine's stack among the bytes the stack goes on above the call
// into C; without it, it ends there and says so.
func checkCgo(t *testing.T, k *taken, r Result) {
	t.Helper()
	want := strings.Fields("... in_c|c_outer ... ~_cgo_ ... ~asmcgocall ...")
	if got := k.stack(r); !matches(got, want) || r.Flags&kcdata.UserNoMoreBytes == 0 && r.Flags&kcdata.UserComplete == 0 {
		t.Errorf("%s, flags %#x, %v", brief(got), r.Flags, r.Err)
	}
	full := k.in
	full.Stack = append(slices.Clone(full.Stack), k.pieceAt(t, r.StopAddr))
	more := k.process().Unwind(full)
	if got := k.stack(more); !matches(got, append(want, strings.Fields("main.callC main.main runtime.main ...")...)) || more.Flags&kcdata.UserComplete == 0 {
		t.Errorf("with the goroutine's stack: %s, flags %#x, %v", brief(got), more.Flags, more.Err)
	}
}

// pieceAt copies what is at addr in the process.
func (k *taken) pieceAt(t testing.TB, addr uint64) kcdata.UserBytes {
	t.Helper()
	mem, err := os.Open(fmt.Sprintf("/proc/%d/mem", k.pid))
	if err != nil {
		t.Fatal(err)
	}
	defer mem.Close()
	start := addr &^ 0xfff
	buf := make([]byte, 8192)
	n, _ := mem.ReadAt(buf, int64(start))
	return kcdata.UserBytes{Addr: start, Data: buf[:n]}
}

func threads(t testing.TB, pid int) []int {
	t.Helper()
	dir, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		t.Fatal(err)
	}
	var tids []int
	for _, e := range dir {
		if tid, err := strconv.Atoi(e.Name()); err == nil {
			tids = append(tids, tid)
		}
	}
	return tids
}
