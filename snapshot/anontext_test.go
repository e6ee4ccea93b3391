package snapshot

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"stackshot/internal/engine"
	"stackshot/internal/testneed"
)

// anonText puts copies in anonymous memory in the place of mappings of its own file, as
// packers do and programs that want their text on large pages: all, the text, or a page of
// that. Then it reads in two threads, and a line makes it another file that does the same.
const anonText = `
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static struct { char *start, *end; int prot; } maps[32];
static char **args;

static void *reads(void *arg)
{
	char c;
	if (read(0, &c, 1) == 1)
		execl(args[2], args[2], args[1], args[2], NULL);
	_exit(1);
}

int main(int argc, char **argv)
{
	char line[4400], exe[4097], perm[5];
	int n = 0;
	pthread_t t;
	args = argv;
	exe[readlink("/proc/self/exe", exe, 4096)] = 0;
	FILE *f = fopen("/proc/self/maps", "r");
	while (n < 32 && fgets(line, sizeof line, f))
		if (strstr(line, exe) && sscanf(line, "%p-%p %4s", &maps[n].start, &maps[n].end, perm) == 3 && (perm[2] == 'x' || !strcmp(argv[1], "all")))
			maps[n++].prot = (perm[0] == 'r') * PROT_READ | (perm[1] == 'w') * PROT_WRITE | (perm[2] == 'x') * PROT_EXEC;
	for (int i = 0; i < n; i++) {
		size_t len = strcmp(argv[1], "page") ? maps[i].end - maps[i].start : 4096;
		char *copy = mmap(0, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		memcpy(copy, maps[i].start, len);
		/* The code that runs on is the same: one call replaces it. */
		if (mprotect(copy, len, maps[i].prot) || mremap(copy, len, len, MREMAP_MAYMOVE | MREMAP_FIXED, maps[i].start) != maps[i].start)
			return 1;
	}
	if (pthread_create(&t, 0, reads, 0))
		return 1;
	puts("ready");
	fflush(stdout);
	reads(0);
}
`

// A program whose text is anonymous has its mappings in the file as any other, wherever its
// threads wait. Those of the next program, with its text at the same place, are not its.
func TestAnonymousText(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	requireBPF(t)
	needsShell(t)
	var c *child
	execs := false
	s := hooked(t, Options{}, engine.Hooks{Released: func() {
		if !execs {
			return
		}
		fmt.Fprintln(c.in)
		if line, err := c.out.ReadString('\n'); line != "ready\n" {
			t.Errorf("no exec: %q, %v", line, err)
		}
	}})
	for _, flags := range []string{"-pie", "-no-pie", "-static-pie", "-static -no-pie"} {
		bin := compiled(t, anonText, append(strings.Fields(flags), "-O2", "-pthread", "-Wno-unused-result")...)
		if err := os.WriteFile(bin+"2", []byte(slurp(t, bin)), 0o700); err != nil {
			t.Fatal(err)
		}
		for _, what := range []string{"all", "text", "page"} {
			name := flags + ", " + what
			for _, execs = range []bool{false, true} {
				c = startChild(t, exec.Command(bin, what, bin+"2"), "ready")
				_, snap, _ := captureOnce(t, s, Request{Pids: []int{c.pid}}) // once: a second would be of the next program
				task := tasksByID(snap)[uint64(c.pid)]
				switch notes := strings.Join(task.EnrichFailed, "; "); {
				case execs && (task.Mappings != nil || notes != executed):
					t.Errorf("%s, executes another: %q, mappings %+v", name, notes, task.Mappings)
				case !execs && notes != "":
					t.Errorf("%s: %q", name, notes)
				case !execs:
					wantMaps(t, name, task)
				}
			}
		}
	}
}
