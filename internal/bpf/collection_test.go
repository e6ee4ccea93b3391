package bpf

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A module that comes, goes, or is another one is asked for its types anew; else nothing is.
func TestTypesFollowModules(t *testing.T) {
	c := typeCache{dir: t.TempDir()}
	file := filepath.Join(c.dir, "fuse")
	last := c.now()
	for _, step := range []struct {
		what string
		do   func() error
	}{
		{"a module is loaded", func() error { return os.WriteFile(file, []byte("types"), 0o600) }},
		{"it is loaded anew", func() error { return os.Chtimes(file, time.Time{}, time.Unix(1, 0)) }},
		{"it is unloaded", func() error { return os.Remove(file) }},
	} {
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		now := c.now()
		if now == last {
			t.Errorf("%s: the same types", step.what)
		}
		if last = now; c.now() != last {
			t.Errorf("%s, and nothing since: other types", step.what)
		}
	}
}
