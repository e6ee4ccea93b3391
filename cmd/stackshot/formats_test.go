package main

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"stackshot/internal/testneed"

	"github.com/google/pprof/profile"
)

// TestFormatsAgree: of one real capture, text, JSON, folded stacks and profile
// account for the same threads.
func TestFormatsAgree(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	taken(t, stackshot(t, "take", "-q", "-o", file))
	for _, flags := range [][]string{nil, {"--self"}, {"--idle", "--self"}} {
		format := func(name string) string {
			o := stackshot(t, append([]string{"report", file, "--format", name}, flags...)...)
			o.want(t, exitWhole)
			return o.stdout
		}
		var all, shown int
		text := strings.Split(strings.TrimSpace(format("text")), "\n")
		if _, err := fmt.Sscanf(text[len(text)-1], "%d threads: %d shown", &all, &shown); err != nil {
			t.Fatalf("%v: %q", err, text[len(text)-1])
		}
		folded := 0
		for line := range strings.Lines(format("folded")) {
			n := 0
			fmt.Sscan(line[strings.LastIndex(line, " "):], &n)
			folded += n
		}
		p, err := profile.ParseData([]byte(format("pprof")))
		if err != nil {
			t.Fatal(err)
		}
		if folded != shown || len(p.Sample) != shown {
			t.Errorf("%q: %d threads in text, %d in folded stacks, %d in the profile", flags, shown, folded, len(p.Sample))
		}
		var doc struct {
			Counts struct{ Threads, Threads_shown int }
		}
		if err := json.Unmarshal([]byte(format("json")), &doc); err != nil {
			t.Fatal(err)
		}
		if idle := len(flags) == 2; doc.Counts.Threads != all || idle && doc.Counts.Threads_shown != shown {
			t.Errorf("%q: JSON %+v, text %d of %d", flags, doc.Counts, shown, all)
		}
	}
}

// A profile is not for terminals.
func TestProfileOnTerminal(t *testing.T) {
	testneed.Live(t)
	t.Parallel()
	_, slave := openTerminal(t)
	in := invocation{bend: func(c *exec.Cmd) { c.Stdout = slave }}
	in.run(t, "report", "/dev/null", "--format", "pprof").want(t, exitUsage, "--format pprof", "terminal")
}
