package main

import (
	"bytes"
	"errors"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"stackshot/internal/show"
	"stackshot/internal/testheap"
	"stackshot/internal/testneed"
	"stackshot/kcdata"
)

// smallSnapshot takes one of this test alone.
func smallSnapshot(t *testing.T, compression string) []byte {
	t.Helper()
	o := stackshot(t, "take", "-q", "-o", "-", "--compress", compression, "--pid", strconv.Itoa(os.Getpid()))
	taken(t, o)
	return []byte(o.stdout)
}

func TestUnreadableFiles(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	t.Parallel()
	dir := t.TempDir()
	put := func(name, content string) string {
		name = filepath.Join(dir, name)
		write(t, name, []byte(content))
		return name
	}
	cut := smallSnapshot(t, "none")
	for _, c := range []struct {
		name  string
		words []string
	}{
		{put("empty", ""), []string{"offset 0x0", "empty"}},
		{put("short", "abc"), []string{"offset 0x0", "truncated"}},
		{put("magic", strings.Repeat("wrong magic ", 9)), []string{"offset 0x0", "not a kcdata buffer"}},
		{put("esc\x1b[2J", "wrong magic, a name with an escape"), []string{`esc\x1b[2J`, "not a kcdata buffer"}},
		{put("cut", string(cut[:len(cut)/2])), []string{"offset 0x", "truncated"}},
		{dir, []string{"is a directory: 'stackshot list " + dir + "' shows"}},
		{filepath.Join(dir, "absent"), []string{"no such file"}},
	} {
		for _, cmd := range []string{"report", "hang", "symbolize", "latency", "dump"} {
			o := stackshot(t, cmd, c.name)
			code := exitFailed
			if strings.HasSuffix(c.name, "/cut") && (cmd == "report" || cmd == "hang" || cmd == "dump") {
				code = exitIncomplete // the others want it whole
			}
			o.want(t, code, append(c.words, show.Clean(c.name))...)
			if strings.Count(o.stderr, "\n") != 1 || strings.Contains(o.stderr, "\x1b") {
				t.Errorf("%s %q: not one clean line: %q", cmd, c.name, o.stderr)
			}
		}
	}
}

// Dump writes one line per item of the file, whatever its envelope.
func TestDump(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	t.Parallel()
	data := smallSnapshot(t, "none")
	name := filepath.Join(t.TempDir(), "file")
	write(t, name, data)
	o := stackshot(t, "dump", name)
	o.want(t, exitWhole)
	var want bytes.Buffer
	if err := kcdata.Text(&want, data, math.MaxInt64); err != nil {
		t.Fatal(err)
	}
	if o.stdout != want.String() || want.Len() == 0 {
		t.Errorf("%d bytes, want %d", len(o.stdout), want.Len())
	}
	var zlib bytes.Buffer
	if err := kcdata.Compress(&zlib, data, kcdata.EnvelopeZlib); err != nil {
		t.Fatal(err)
	}
	in := invocation{bend: func(c *exec.Cmd) { c.Stdin = &zlib }}
	if again := in.run(t, "dump", "-"); again.stdout != o.stdout {
		t.Errorf("through zlib: %d bytes, exit code %d, %s", len(again.stdout), again.code, again.stderr)
	}
}

// What is no file of ours is not read beyond its first bytes: it may be a disk.
func TestWhatIsNoSnapshotIsNotRead(t *testing.T) {
	disk := filepath.Join(t.TempDir(), "disk")
	write(t, disk, []byte("no magic"))
	if err := os.Truncate(disk, 64<<20); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{disk, "/dev/zero"} {
		testheap.Bound(t, 16<<20, name, func() {
			var bad *kcdata.FormatError
			if _, err := readFile(name); !errors.Is(err, kcdata.ErrBadMagic) || !errors.As(err, &bad) || bad.Offset != 0 {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}
