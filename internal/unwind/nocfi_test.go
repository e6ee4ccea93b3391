//go:build linux && amd64

package unwind

import (
	"strings"
	"testing"

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

// TestWithoutTablesNothingIsSkipped: in code without tables every caller is there, or
// the stack says that some may be missing.
func TestWithoutTablesNothingIsSkipped(t *testing.T) {
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
