package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"stackshot/internal/testneed"
	"stackshot/kcdata"
)

const (
	smallFile  = 64 << 10
	mostHeld   = 512 << 20
	mostOutput = 400 << 20
)

// readingCommands read files of others, with all that they can be asked for. Some
// read a file as another does and show one kind of item, if there is one.
var readingCommands = []struct {
	args []string
	only []string // shapes of what it shows
}{
	{args: []string{"report"}}, {args: []string{"report", "--format", "json"}},
	{args: []string{"report", "--format", "folded"}}, {args: []string{"report", "--format", "pprof"}},
	{args: []string{"hang"}}, {args: []string{"hang", "--format", "json"}},
	{args: []string{"dump"}}, {args: []string{"latency", "--format", "json"}}, {args: []string{"symbolize", "-o", "-"}},
	{args: []string{"list"}}, {args: []string{"report", "--group-by", "cgroup", "--sort-by", "age"}},
	{[]string{"latency"}, []string{"cpus", "phases", "arenas", "tries", "ran", "threads", "tasks"}},
	{[]string{"dump", "--trace"}, []string{"trace", "a million tasks"}},
	{[]string{"symbolize", "--unwind", "-o", "-"}, []string{"stacks", "chains", "mappings", "inlined"}},
}

// commonCommands are the first ones, which read every shape.
const commonCommands = 11

// A file of less than 64 KiB makes no command hold more than 512 MiB, whatever it
// makes much of; and a refusal is one line with the file's name and an offset.
func TestSmallFilesHoldLittle(t *testing.T) {
	testneed.Live(t)
	t.Parallel()
	forgetPeak(t)
	for i, shape := range hostileShapes() {
		t.Run(strings.ReplaceAll(shape.name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			name := filepath.Join(t.TempDir(), "file.kcdata")
			write(t, name, forge(t, shape.write))
			for j, c := range readingCommands {
				if i%commonCommands != j && !testneed.Length(false, true) {
					continue // in short, one command for each shape
				}
				if len(c.only) == 0 || slices.ContainsFunc(c.only, func(word string) bool { return strings.Contains(shape.name, word) }) {
					holdsLittle(t, append(slices.Clone(c.args), name))
				}
			}
		})
	}
}

// holdsLittle runs one command on the file that is the last of args; list has a directory.
func holdsLittle(t *testing.T, args []string) {
	t.Helper()
	if args[0] == "list" {
		args[len(args)-1] = filepath.Dir(args[len(args)-1])
	}
	var out counter
	in := invocation{bend: func(c *exec.Cmd) { c.Stdout = &out }}
	o := in.run(t, args...)
	if testing.Verbose() {
		t.Logf("%-40q %4d MiB, %4d MiB written, exit code %d, %v %.200s", args[:len(args)-1], o.peak>>20, out.n>>20, o.code, o.took, o.stderr)
	}
	if o.peak > mostHeld {
		t.Errorf("%q held %d MiB", args, o.peak>>20)
	}
	if out.n > mostOutput {
		t.Errorf("%q wrote %d MiB", args, out.n>>20)
	}
	found := args[0] == "hang" && o.code == exitHang
	if o.code != exitWhole && o.code != exitFailed && o.code != exitIncomplete && !found || strings.Contains(o.stderr, "goroutine ") {
		t.Errorf("%q ended with %d: %.1000s", args, o.code, o.stderr)
	}
	if n := strings.Count(o.stderr, "\n"); n > maxNotSymbolized+10 {
		t.Errorf("%q said %d lines: %.300s", args, n, o.stderr)
	}
	if o.code == exitWhole || args[0] == "symbolize" || found && o.stderr == "" {
		return
	}
	if name := args[len(args)-1]; strings.Count(o.stderr, "\n") != 1 || !strings.Contains(o.stderr, name) {
		t.Errorf("%q: not one line about the file: %.1000q", args, o.stderr)
	}
}

type counter struct{ n int64 }

func (c *counter) Write(p []byte) (int, error) { c.n += int64(len(p)); return len(p), nil }

// forge packs a file of at most smallFile bytes that unpacks to as much as is
// allowed.
func forge(t *testing.T, write func(f *forger)) []byte {
	t.Helper()
	var b bytes.Buffer
	c, err := zstd.NewWriter(&b, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedBetterCompression))
	if err != nil {
		t.Fatal(err)
	}
	const ratio = 1032
	f := &forger{w: c, most: 4<<20 + ratio*(smallFile-4<<10)}
	f.put(item(kcdata.MagicStackshot, 0, 0))
	write(f)
	f.put(item(kcdata.BufferEnd, 0, 0))
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	room := smallFile - 1 - b.Len()
	if room < 0 {
		t.Fatalf("packed it is %d bytes", b.Len())
	}
	// Empty blocks behind the frame's head: what a file unpacks to may depend on its size.
	const head = 6
	return slices.Insert(b.Bytes(), head, make([]byte, room/3*3)...)
}

// forgetPeak makes the peak of this process what it holds now: a child's begins with
// that of its parent.
func forgetPeak(t *testing.T) {
	t.Helper()
	debug.FreeOSMemory()
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
		t.Fatal(err)
	}
}
