package testread

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"stackshot/internal/testneed"
	"stackshot/kcdata"
)

// today is a real capture, of a process, its zombie child and kthreadd, taken with
// --latency thread, --trace and --keep-stacks and symbolized.
func today(t *testing.T) []byte {
	packed, err := os.ReadFile("testdata/today.kcdata.zst")
	if err != nil {
		t.Fatal(err)
	}
	plain, _, err := kcdata.Unwrap(packed, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	return plain
}

// The reader that was made from the page finds in a real capture all that ours does, in
// either envelope of those that it opens.
func TestReaderFromThePage(t *testing.T) {
	testneed.Slow(t)
	plain := today(t)
	Want(t, plain)
	for _, e := range []kcdata.Envelope{kcdata.EnvelopeNone, kcdata.EnvelopeZlib} {
		var b bytes.Buffer
		if err := kcdata.Compress(&b, plain, e); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "file.kcdata")
		if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		Page(t, file, plain)
	}
}

// A thread may have a name of any bytes, or an empty one: other programs of the machine
// choose it.
func TestNamesOfAnyBytes(t *testing.T) {
	testneed.Slow(t)
	plain := today(t)
	r, err := kcdata.NewReader(plain)
	if err != nil {
		t.Fatal(err)
	}
	names, left := []string{"", "\xff\xfe", "a\xe2\x82"}, 3
	for it, err := range r.Items() {
		if err != nil {
			t.Fatal(err)
		}
		if it.Of() == kcdata.TypeThreadName && left > 0 {
			left--
			clear(it.Data)
			copy(it.Data, names[left])
		}
	}
	file := filepath.Join(t.TempDir(), "file.kcdata")
	if err := os.WriteFile(file, plain, 0o600); err != nil || left > 0 {
		t.Fatal(err, left)
	}
	Want(t, plain)
	Page(t, file, plain)
}

// The comparison can fail: of two captures one's page is not the other's.
func TestPageSeesDifferences(t *testing.T) {
	p := page{items: map[string]any{"pth_name": "other", "linux_wchan": []any{"x"}, "id": 1, "type": 2308, "new": 1}, where: "a thread"}
	p.thread(&kcdata.Thread{ID: 1, Name: "name", User: []uint64{1}, UserHow: []byte{1}})
	if len(p.out) < 6 {
		t.Errorf("%q", p.out)
	}
}
