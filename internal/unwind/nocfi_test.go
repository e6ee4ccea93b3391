//go:build linux && amd64

package unwind

import (
	"strings"
	"testing"

	"stackshot/internal/testneed"
	"stackshot/kcdata"
)

// read blocks below a function with an array of variable length, which is the only
// one of the stack that sets the frame pointer. forever ends in no return.
const nocfiC = `#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#define NOINLINE __attribute__((noinline))
int fds[2]; volatile int sink;
static void say(void) { printf("%ld\n", syscall(SYS_gettid)); fflush(stdout); }
NOINLINE int leaf_read(char *b, int n) { int v = read(fds[0], b, n); sink += v; return v + 1; }
NOINLINE void forever(char *b, int n) { say(); for (;;) sink += leaf_read(b, n); }
NOINLINE int mid(char *b, int n) { volatile char room[40]; room[n % 40] = 1; if (n > 7) forever(b, n); sink += room[3]; return n; }
NOINLINE int dyn(int n) { char b[n]; memset(b, 0, n); int v = mid(b, n); sink += b[0]; return v; }
NOINLINE int plain(int n) { char b[n]; memset(b, 0, n); say(); int v = leaf_read(b, n); sink += b[0]; return v; }
NOINLINE void *th(void *a) { volatile char room[256]; room[0] = 1; int v = a ? dyn((long)a + 50 + room[0]) : plain(50 + room[0]); sink += v; return 0; }
int main(int argc, char **argv) {
	pthread_t t; if (pipe(fds)) return 1;
	if (argc > 2) { th((void *)20L); return sink; }
	pthread_create(&t, 0, th, (void *)(argc > 1 ? 20L : 0L)); pthread_join(t, 0); return sink;
}
`

// leave ends in a call that does not return, and in front of a function that does: the
// instructions behind the call lead to a return address of 0, in leave's own frame.
const noreturnC = `#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
#define NOINLINE __attribute__((noinline, noclone))
volatile int sink, zero;
NOINLINE void bye(void) { printf("%ld\n", syscall(SYS_gettid)); fflush(stdout); pause(); sink++; }
NOINLINE __attribute__((noreturn)) void leave(int n) { volatile long room[6] = {0}; sink += room[n & 3] + n; exit(n); }
NOINLINE int behind(int n) { return sink + n; }
NOINLINE int calls(int n) { if (!zero) leave(n); sink++; return n; }
int main(int argc, char **argv) { atexit(bye); int v = calls(argc); return behind(v + sink); }
`

// TestNothingProvesAnEndBehindExit: a 0 that the code behind a call leads to, which does
// not return, is no outermost frame.
func TestNothingProvesAnEndBehindExit(t *testing.T) {
	testneed.Live(t)
	const bare = "gcc -fno-asynchronous-unwind-tables -fno-unwind-tables -fno-toplevel-reorder -o prog p.c"
	for _, c := range []struct{ flags, want string }{
		{" -O0", "... exit leave calls main ..."},
		{" -O2 -fno-omit-frame-pointer", "... exit leave calls main ..."},
		{" -O2", "... exit leave ..."},
	} {
		t.Run(c.flags, func(t *testing.T) {
			path := build(t, t.TempDir(), map[string]string{"p.c": noreturnC}, "sh", "-c", bare+c.flags)
			k, r, _ := runLab(t, path)
			got := k.stack(r)
			t.Log(brief(got), r.How, r.Flags, r.Err)
			if !matches(got, strings.Fields(c.want)) {
				t.Errorf("%s\nwant %s", brief(got), c.want)
			}
			whole := matches(got, strings.Fields("... exit leave calls main ... _start"))
			if !whole && r.Flags&(kcdata.UserComplete|kcdata.UserCallersUnsure) == kcdata.UserComplete {
				t.Errorf("%s is called complete: flags %#x", brief(got), r.Flags)
			}
		})
	}
}

// g's unlikely half ends in a call that does not return, in front of h's unlikely half,
// which restores a larger frame: its way out leads to a real return address, of f2.
// die, in a file of its own, has a table.
const dieC = `#define _GNU_SOURCE
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>
extern volatile int sink;
__attribute__((noreturn)) void die(int a) { printf("%ld\n", syscall(SYS_gettid)); fflush(stdout); for (;;) { pause(); sink += a; } }
`

const coldC = `#define NI __attribute__((noinline, noclone, noipa))
volatile int sink; int z;
__attribute__((cold, noreturn)) void die(int);
NI __attribute__((cold)) int slow(int a) { return sink += a; }
NI int use(int a) { sink += a; return sink; }
NI int g(int a) { int x = use(a); if (x == 12345) return 1; if (__builtin_expect(z, 0)) die(x); return x + 1; }
NI int h(int a, int b, int c, int d) { int w = use(a); if (__builtin_expect(w == 99, 0)) return slow(w) + w + a + b + c + d; return use(w + b) + a + b + c + d; }
NI int f3(int a) { int r = g(a); return r + use(a); }
NI int f2(int a) { int r = f3(a); return r + use(a); }
NI int f1(int a) { int r = f2(a); return r + h(a, r, 2, 3); }
int main(int c, char **v) { z = c; return f1(c) + h(1, 2, 3, 4); }
`

// TestColdCodeSkipsNobodyInSilence: what lies behind a call that does not return is
// another function's way out. It may only be taken with a word.
func TestColdCodeSkipsNobodyInSilence(t *testing.T) {
	testneed.Live(t)
	for _, flags := range []string{"", " -static"} {
		path := build(t, t.TempDir(), map[string]string{"p.c": coldC, "d.c": dieC}, "sh", "-c",
			"gcc -O2 -c d.c && gcc -O2 -fno-asynchronous-unwind-tables -fno-unwind-tables -o prog p.c d.o"+flags)
		k, r, _ := runLab(t, path)
		got := k.stack(r)
		t.Log(brief(got), r.How, r.Flags, r.Err)
		whole := matches(got, strings.Fields("... die g f3 f2 f1 main ..."))
		if !whole && r.Flags&(kcdata.UserComplete|kcdata.UserCallersUnsure) == kcdata.UserComplete {
			t.Errorf("%s is called complete: flags %#x", brief(got), r.Flags)
		}
		if !matches(got, strings.Fields("... die ...")) {
			t.Errorf("%s: die is not there", brief(got))
		}
	}
}

// TestWithoutTablesNothingIsSkipped: in code without tables every caller is there, or
// the stack says that some may be missing.
func TestWithoutTablesNothingIsSkipped(t *testing.T) {
	testneed.Live(t)
	const bare = " -fno-asynchronous-unwind-tables -fno-unwind-tables -o prog p.c"
	for _, c := range []struct {
		name, build string
		args        []string
		want        string
		unsure      bool
	}{
		// Its library's read ends with a jump to the far end of the library.
		{"musl, dynamic", "musl-gcc -O2 -o prog p.c", nil, "... read|? leaf_read plain th ...", true},
		{"musl, static", "musl-gcc -O2 -static -o prog p.c", nil, "... read leaf_read plain th ...", true},
		// forever's frame pointer is dyn's: mid and dyn are not to be found.
		{"another function's frame pointer", "gcc -O2" + bare, []string{"1", "1"}, "... leaf_read forever ...", true},
		// forever's frame pointer is its own: the calls prove it.
		{"their own frame pointers", "gcc -O2 -fno-omit-frame-pointer" + bare, []string{"1", "1"}, "... leaf_read forever mid dyn th main ... _start", false},
		{"their own frame pointers in a thread", "gcc -O2 -fno-omit-frame-pointer" + bare, []string{"1"}, "... leaf_read forever mid dyn th ...", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := build(t, t.TempDir(), map[string]string{"p.c": nocfiC}, "sh", "-c", c.build)
			k, r, _ := runLab(t, path, c.args...)
			got := k.stack(r)
			if !matches(got, strings.Fields(c.want)) {
				t.Errorf("%s\nwant %s\nhow %v, flags %#x: %v", brief(got), c.want, r.How, r.Flags, r.Err)
			}
			if unsure := r.Flags&kcdata.UserCallersUnsure != 0; unsure != c.unsure || !unsure && r.Flags&kcdata.UserComplete == 0 {
				t.Errorf("%s: flags %#x, %v", brief(got), r.Flags, r.Err)
			}
			t.Log(brief(got), r.How, r.Flags)
			checkPrefixes(t, k, r)
		})
	}
}
