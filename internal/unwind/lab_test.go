//go:build linux && (amd64 || arm64)

package unwind

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	"stackshot/internal/testneed"
	"stackshot/kcdata"
)

// A lab program stops itself at a known place. want are functions of its stack,
// leaf first, neighbours in the stack unless there is a "..." between.
type labProgram struct {
	name    string
	files   map[string]string
	command []string
	want    string
	how     []byte // kinds of frames that must occur
	gdb     bool   // gdb unwinds it too
	flag    uint32 // how it ends; 0: complete
}

const signalC = `#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
volatile int sink;
__attribute__((noinline)) void in_handler(int n) { printf("%ld\n", syscall(SYS_gettid)); fflush(stdout); pause(); sink += n; }
void handler(int n) { in_handler(n); sink++; }
__attribute__((noinline)) int faulting(volatile int *p) { int v = *p; sink++; return v; }
__attribute__((noinline)) int outer(volatile int *p) { int v = faulting(p); return v + sink; }
int main(int argc, char **argv) {
	static char alt[65536]; stack_t s; struct sigaction a;
	memset(&s, 0, sizeof s); memset(&a, 0, sizeof a);
	s.ss_sp = alt; s.ss_size = sizeof alt; if (argc > 1) sigaltstack(&s, 0);
	a.sa_handler = handler; a.sa_flags = argc > 1 ? SA_ONSTACK : 0; sigaction(SIGSEGV, &a, 0);
	return outer((volatile int *)8) + sink;
}
`

const goGo = `package main

import ("fmt"; "os"; "runtime"; "syscall")

//go:noinline
func recurse(n int, fd int) int {
	var room [16]int
	if n == 0 { var b [1]byte; k, _ := syscall.Read(fd, b[:]); return k }
	room[n%16] = n
	return recurse(n-1, fd) + room[n%16]
}

type worker struct{ fd int }

//go:noinline
func (w *worker) run(done chan int) { runtime.LockOSThread(); fmt.Println(syscall.Gettid()); done <- recurse(7, w.fd) }

func main() {
	var p [2]int
	syscall.Pipe(p[:])
	done := make(chan int)
	go (&worker{p[0]}).run(done)
	os.Exit(<-done)
}
`

const cgoGo = `package main

/*
#include <unistd.h>
#include <stdio.h>
#include <sys/syscall.h>
static int in_c(int n) { volatile int room[8]; room[n] = n; printf("%ld\n", syscall(SYS_gettid)); fflush(stdout); pause(); return room[n]; }
__attribute__((noinline)) static int c_outer(int n) { return in_c(n) + 1; }
*/
import "C"
import "os"

//go:noinline
func callC(n int) int { return int(C.c_outer(C.int(n))) + n }

func main() { os.Exit(callC(3)) }
`

var labPrograms = []labProgram{
	{"signal", map[string]string{"p.c": signalC}, []string{"gcc", "-O2", "-o", "prog", "p.c"},
		"... in_handler handler ... faulting outer main ... _start", []byte{kcdata.UserFrameSignal}, true, 0},
	{"signal static", map[string]string{"p.c": signalC}, []string{"gcc", "-O2", "-static", "-o", "prog", "p.c"},
		"... in_handler handler ... faulting outer main ... _start", []byte{kcdata.UserFrameSignal}, true, 0},
	{"signal without header", map[string]string{"p.c": signalC}, []string{"sh", "-c", "gcc -O2 -static -Wl,--no-eh-frame-hdr -o prog p.c"},
		"... in_handler handler ... faulting outer main ... _start", []byte{kcdata.UserFrameSignal}, false, 0},
	{"debug_frame", map[string]string{"p.c": signalC}, []string{"sh", "-c", "gcc -O2 -g -fno-asynchronous-unwind-tables -fno-unwind-tables -o prog p.c"},
		"... in_handler handler ... faulting outer main ... _start", []byte{kcdata.UserFrameSignal}, true, 0},
	{"debug_frame packed as it once was", map[string]string{"p.c": signalC}, []string{"sh", "-c", "gcc -O2 -g -Wl,--compress-debug-sections=zlib-gnu -fno-asynchronous-unwind-tables -fno-unwind-tables -o prog p.c"},
		"... in_handler handler ... faulting outer main ... _start", []byte{kcdata.UserFrameSignal}, true, 0},
	{"debug_frame of clang", map[string]string{"p.c": signalC}, []string{"sh", "-c", "clang-19 -O2 -gdwarf-5 -gz -fno-asynchronous-unwind-tables -fno-unwind-tables -o prog p.c"},
		"... in_handler handler ... faulting outer main ... _start", []byte{kcdata.UserFrameSignal}, true, 0},
	{"Go", map[string]string{"p.go": goGo}, []string{"go", "build", "-o", "prog", "p.go"},
		"... syscall.read main.recurse main.recurse main.recurse main.recurse main.recurse main.recurse main.recurse main.recurse main.(*worker).run ...", []byte{kcdata.UserFramePclntab}, false, 0},
	{"Go PIE", map[string]string{"p.go": goGo}, []string{"go", "build", "-buildmode=pie", "-o", "prog", "p.go"},
		"... syscall.read main.recurse main.recurse main.recurse main.recurse main.recurse main.recurse main.recurse main.recurse main.(*worker).run ...", []byte{kcdata.UserFramePclntab}, false, 0},
	{"Go linked by gcc", map[string]string{"p.go": goGo}, []string{"go", "build", "-ldflags=-linkmode=external", "-o", "prog", "p.go"},
		"... syscall.read main.recurse main.recurse main.recurse main.recurse main.recurse main.recurse main.recurse main.recurse main.(*worker).run ...", []byte{kcdata.UserFramePclntab}, false, 0},
	{"musl", map[string]string{"p.c": signalC}, []string{"musl-gcc", "-O2", "-static", "-o", "prog", "p.c"},
		"... in_handler handler ... faulting outer main libc_start_main_stage2", []byte{kcdata.UserFrameSignal}, false, kcdata.UserNoUnwindTable},
	{"musl dynamic", map[string]string{"p.c": signalC}, []string{"musl-gcc", "-O2", "-o", "prog", "p.c"},
		"... in_handler handler ... faulting outer main ?", []byte{kcdata.UserFrameSignal}, false, kcdata.UserNoUnwindTable},
}

func TestLab(t *testing.T) {
	testneed.Lab(t, testneed.Witness)
	testneed.Slow(t)
	for _, p := range labPrograms {
		t.Run(p.name, func(t *testing.T) {
			path := build(t, t.TempDir(), p.files, p.command...)
			k, r, tid := runLab(t, path)
			got := k.stack(r)
			ends := uint32(kcdata.UserComplete | kcdata.UserNoUnwindTable)
			if r.Flags&ends != cmp.Or(p.flag, kcdata.UserComplete) {
				t.Errorf("ends otherwise: flags %#x, stopped at %#x: %v", r.Flags, r.StopAddr, r.Err)
			}
			if !matches(got, strings.Fields(p.want)) {
				t.Errorf("%s\nwant %s\nhow %v", brief(got), p.want, r.How)
			}
			for _, how := range p.how {
				if !slices.Contains(r.How, how) {
					t.Errorf("no frame was found by %d: %v", how, r.How)
				}
			}
			if p.gdb {
				sameAsGDB(t, k, tid, r)
			}
			checkPrefixes(t, k, r)
			t.Log(brief(got), r.How)
		})
	}
}

func runLab(t *testing.T, path string, args ...string) (*taken, Result, int) {
	t.Helper()
	pid, tid := start(t, 'S', path, args...)
	k := take(t, pid, tid, 1<<20, 1000)
	return k, k.process().Unwind(k.in), tid
}

// matches reads want as in labProgram; a|b is either, ~x any name with x in it.
func matches(got, want []string) bool {
	if len(want) == 0 {
		return true
	}
	if want[0] == "..." {
		for i := range len(got) + 1 {
			if matches(got[i:], want[1:]) {
				return true
			}
		}
		return false
	}
	if len(got) == 0 {
		return false
	}
	for _, name := range strings.Split(want[0], "|") {
		part, in := strings.CutPrefix(name, "~")
		if got[0] == name || in && strings.Contains(got[0], part) {
			return matches(got[1:], want[1:])
		}
	}
	return false
}
