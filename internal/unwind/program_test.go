//go:build linux && (amd64 || arm64)

package unwind

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"stackshot/internal/testneed"
	"stackshot/kcdata"
)

// The C program of the tests: a thread that calls recurse_a and recurse_b in
// turn, to a depth, and blocks or spins at the bottom. Both are in files of their
// own, so that they can be compiled differently.
var recursion = map[string]string{
	"prog.h": `
int recurse_a(int n); int recurse_b(int n); int bottom(int n);
extern int spinning; extern volatile int sink;
#define NOINLINE __attribute__((noinline))
`,
	"a.c": `#include "prog.h"
NOINLINE int recurse_a(int n) { volatile int room[5]; room[n % 5] = n; int v = n == 0 ? bottom(n) : recurse_b(n - 1); return v + room[n % 5]; }
`,
	"b.c": `#include "prog.h"
NOINLINE int recurse_b(int n) { volatile int room[9]; room[n % 9] = n; int v = n == 0 ? bottom(n) : recurse_a(n - 1); return v * 3 + room[n % 9]; }
`,
	"main.c": `#define _GNU_SOURCE
#include "prog.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
int spinning; volatile int sink; static int depth;
NOINLINE int bottom(int n) { printf("%ld\n", syscall(SYS_gettid)); fflush(stdout); if (spinning) for (;;) sink++; pause(); return n + sink; }
NOINLINE void *thread_main(void *arg) { sink = recurse_a(depth); return arg; }
int main(int argc, char **argv) {
	pthread_t t; depth = atoi(argv[1]); spinning = argc > 2 && !strcmp(argv[2], "spin");
	if (argc > 3) return recurse_a(depth);
	pthread_create(&t, 0, thread_main, 0); pthread_join(t, 0); return sink;
}
`,
}

// buildRecursion compiles the program, each of its files with its own flags.
func buildRecursion(t testing.TB, cc, a, b, rest string) string {
	t.Helper()
	dir := t.TempDir()
	script := fmt.Sprintf("%[1]s %[2]s -c a.c && %[1]s %[3]s -c b.c && %[1]s %[4]s -c main.c && %[1]s -o prog a.o b.o main.o -pthread", cc, a, b, rest)
	return build(t, dir, recursion, "sh", "-c", script)
}

// ours is what of the recursion's stack is known beforehand: from the caller of
// the blocked system call to the thread's first function.
func ours(depth int) []string {
	out := []string{"bottom"}
	for i := range depth + 1 {
		// recurse_a is called with the depth; the parity of the rest says which.
		if (depth-i)%2 == 0 {
			out = append(out, "recurse_a")
		} else {
			out = append(out, "recurse_b")
		}
	}
	if depth%2 == 1 { // the innermost has n = 0
		for i := 1; i < len(out); i++ {
			out[i] = map[string]string{"recurse_a": "recurse_b", "recurse_b": "recurse_a"}[out[i]]
		}
	}
	return append(out, "thread_main")
}

var kinds = []struct{ name, a, b, rest string }{
	{"frame pointers", "-O1 -fno-omit-frame-pointer", "-O1 -fno-omit-frame-pointer", "-O1 -fno-omit-frame-pointer"},
	{"none", "-O2 -fomit-frame-pointer", "-O2 -fomit-frame-pointer", "-O2 -fomit-frame-pointer"},
	{"mixed", "-O1 -fno-omit-frame-pointer", "-O2 -fomit-frame-pointer", "-O1 -fno-omit-frame-pointer"},
}

func TestRecursion(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	for _, cc := range testneed.Length([]string{"gcc"}, []string{"gcc", "clang-19"}) {
		for _, k := range kinds {
			t.Run(cc+" "+k.name, func(t *testing.T) {
				path := buildRecursion(t, cc, k.a, k.b, k.rest)
				for _, depth := range []int{12, 300} {
					for _, mode := range []string{"block", "spin"} {
						checkRecursion(t, path, depth, mode)
					}
				}
			})
		}
	}
}

func checkRecursion(t *testing.T, path string, depth int, mode string) {
	t.Helper()
	state := map[string]byte{"block": 'S', "spin": 'R'}[mode]
	pid, tid := start(t, state, path, strconv.Itoa(depth), mode)
	k := take(t, pid, tid, 1<<20, 1000)
	for n := 0; mode == "spin" && n < 100 && k.name(k.pc(), true) != "bottom"; n++ {
		time.Sleep(10 * time.Millisecond) // still on its way there
		k = take(t, pid, tid, 1<<20, 1000)
	}
	r := k.process().Unwind(with(k.in, 1000))
	got := k.stack(r)
	if r.Flags&kcdata.UserComplete == 0 {
		t.Errorf("%s depth %d: not complete: flags %#x, stopped at %#x: %v", mode, depth, r.Flags, r.StopAddr, r.Err)
	}
	want := ours(depth)
	if at := slices.Index(got, "bottom"); at < 0 || at > 2 || len(got) < at+len(want) || !slices.Equal(got[at:at+len(want)], want) {
		t.Errorf("%s depth %d: %d frames %s, want %s\nhow %v", mode, depth, len(got), brief(got), brief(want), r.How)
	}
	if mode == "block" && depth < 100 {
		sameAsGDB(t, k, tid, r)
	}
	if depth > 256 {
		cut := k.process().Unwind(with(k.in, 0))
		if len(cut.PCs) != 256 || cut.Flags&kcdata.UserTruncated == 0 || !slices.Equal(cut.PCs, r.PCs[:256]) {
			t.Errorf("%s depth %d: %d frames of at most 256, flags %#x", mode, depth, len(cut.PCs), cut.Flags)
		}
	}
	checkPrefixes(t, k, r)
}

func with(in Input, most int) Input {
	in.Max = most
	return in
}

// checkPrefixes: fewer bytes give a prefix of what more bytes give, and say so.
func checkPrefixes(t *testing.T, k *taken, full Result) {
	t.Helper()
	p := k.process()
	for n := 0; n < 2048; n += 8 * (1 + n/256) {
		for _, links := range []int{0, 1, 3, len(k.in.Chain)} {
			in := with(k.in, 1000)
			in.Stack = []kcdata.UserBytes{{Addr: k.in.Stack[0].Addr, Data: k.in.Stack[0].Data[:min(n, len(k.in.Stack[0].Data))]}}
			if links < len(in.Chain) {
				in.Chain, in.ChainComplete = in.Chain[:links], false
			}
			r := p.Unwind(in)
			if len(r.PCs) > len(full.PCs) || !slices.Equal(r.PCs, full.PCs[:len(r.PCs)]) {
				t.Fatalf("%d bytes, %d links: %s\nis no prefix of %s", n, len(in.Chain), brief(k.stack(r)), brief(k.stack(full)))
			}
			if len(r.PCs) < len(full.PCs) && (r.Flags&kcdata.UserNoMoreBytes == 0 || r.Flags&kcdata.UserComplete != 0 || r.StopAddr == 0) {
				t.Fatalf("%d bytes, %d links: %d of %d frames, flags %#x at %#x: %v", n, len(in.Chain), len(r.PCs), len(full.PCs), r.Flags, r.StopAddr, r.Err)
			}
		}
	}
}
