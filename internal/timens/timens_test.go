package timens

import (
	"os"
	"path/filepath"
	"testing"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		text      string
		mono, boo int64
		ok        bool
	}{
		{"", 0, 0, false},
		{"monotonic 5 0\n", 0, 0, false},
		{"monotonic           0         0\nboottime            0         0\n", 0, 0, true},
		{"monotonic      100000         0\nboottime      -86400 999999999\n", 100_000_000_000_000, -86_399_000_000_001, true},
		{"boottime 1 2\nmonotonic -1 5\n", -999_999_995, 1_000_000_002, true},
		{"1 3 4\n7 5 6\n", 3_000_000_004, 5_000_000_006, true},
		{"monotonic 1\n", 0, 0, false},
		{"monotonic a 0\n", 0, 0, false},
		{"\n", 0, 0, false},
	} {
		mono, boo, err := parse(c.text)
		if mono != c.mono || boo != c.boo || (err == nil) != c.ok {
			t.Errorf("%q: %d, %d, %v", c.text, mono, boo, err)
		}
	}
}

// What cannot be known is an error and no offset: a process between two namespaces,
// a file that is missing or empty, no /proc. A kernel without time namespaces has none.
func TestOwn(t *testing.T) {
	const offsets = "monotonic 7 1\nboottime 8 2\n"
	for _, c := range []struct {
		what, ours, childrens, offsets string
		mono                           int64
		ok                             bool
	}{
		{"own", "time:[1]", "time:[1]", offsets, 7_000_000_001, true},
		{"between two", "time:[1]", "time:[2]", offsets, 0, false},
		{"no link of the children's", "time:[1]", "", offsets, 0, false},
		{"no file", "time:[1]", "time:[1]", "", 0, false},
		{"an empty file", "time:[1]", "time:[1]", "\n", 0, false},
		{"no namespaces", "", "", "", 0, true},
	} {
		self := t.TempDir()
		for name, to := range map[string]string{"ns/time": c.ours, "ns/time_for_children": c.childrens} {
			if os.MkdirAll(filepath.Join(self, "ns"), 0o700); to != "" {
				if err := os.Symlink(to, filepath.Join(self, name)); err != nil {
					t.Fatal(err)
				}
			}
		}
		if c.offsets != "" {
			if err := os.WriteFile(filepath.Join(self, "timens_offsets"), []byte(c.offsets), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if mono, _, err := own(self); mono != c.mono || (err == nil) != c.ok {
			t.Errorf("%s: %d, %v", c.what, mono, err)
		}
	}
	if _, _, err := own(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("no /proc: no error")
	}
}
