package catalog

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"stackshot/internal/golden"
	"stackshot/internal/show"
)

// listed are entries of every kind, with names that must not reach a terminal raw.
func listed() (*Directory, []*Entry) {
	files := []File{
		{Path: "/crash/stackshot-db7-20261123T080900.705Z.kcdata.zst", Host: "db7", Taken: 1795421340705000000},
		{Path: "/crash/a\x1b[2Jb\u202e.kcdata", Host: "evil\x1b[31m-host-with-a-name-that-is-long", Taken: 1795421340000000000},
		{Path: "/crash/procfs", Host: "db7", Taken: 1},
		{Path: "/crash/cut", Host: "db7", Taken: 1, Err: errors.New("stream ends after 65536 plain bytes: truncated")},
		{Path: "/crash/empty.kcdata", Err: errors.New("not a snapshot: the file is empty")},
	}
	stopped := uint64(774000)
	return &Directory{Path: "/crash", Files: files, Closed: 2}, []*Entry{
		{File: files[0], Tasks: 90, Threads: 147, StoppedNs: &stopped, Verdict: "Deadlock of 2 threads: orders [11768] tid 11769 \"shipping\" waits for the mutex 0x55d42b616060"},
		{File: files[1], Tasks: 9000, Threads: 20000, StoppedNs: &stopped},
		{File: files[2], Tasks: 1, Threads: 1, notStopped: true, Verdict: "Nothing hangs."},
		{File: files[3], Tasks: 5, Threads: 33, Verdict: "Nothing is known to hang."},
		{File: files[4]},
	}
}

// The list fits any terminal but for paths, which nobody could use if they were cut.
func TestText(t *testing.T) {
	t.Parallel()
	d, entries := listed()
	for _, width := range []int{0, 80, 20} {
		var b bytes.Buffer
		if err := Text(&b, d, slices.Values(entries), width); err != nil {
			t.Fatal(err)
		}
		if golden.Showable(t, b.Bytes()); width == 80 {
			golden.Want(t, "testdata/list.txt", b.Bytes())
		}
		for line := range strings.Lines(b.String()) {
			if n := show.Cells(strings.TrimSpace(line)); width > 0 && n > width && !strings.HasPrefix(line, "    /crash/") {
				t.Errorf("%d cells at width %d: %q", n, width, line)
			}
		}
		if n := strings.Count(b.String(), "\n    /crash/"); n != len(entries) {
			t.Errorf("width %d: %d whole paths", width, n)
		}
	}
}

func TestJSON(t *testing.T) {
	t.Parallel()
	d, entries := listed()
	var b bytes.Buffer
	if err := JSON(&b, d, slices.Values(entries)); err != nil {
		t.Fatal(err)
	}
	golden.Want(t, "testdata/list.json", b.Bytes())
	page, err := os.ReadFile("../../docs/list-json.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"format", "version", "directory", "not_opened", "files", "file", "path", "host", "realtime_ns", "tasks", "threads", "stopped_ns", "verdict", "error"} {
		if !strings.Contains(b.String(), `"`+key+`"`) || !bytes.Contains(page, []byte("`"+key+"`")) {
			t.Errorf("%s is not in the JSON, or not on its page", key)
		}
	}
}
