package publish

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Only a regular file of the same user is removed, and one that is gone is no error.
func TestRemove(t *testing.T) {
	dir := t.TempDir()
	file, link, sub := filepath.Join(dir, "file"), filepath.Join(dir, "link"), filepath.Join(dir, "dir")
	if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Symlink(file, link), os.Mkdir(sub, 0o700)); err != nil {
		t.Fatal(err)
	}
	for _, w := range []Writer{testWriter, {Command: []string{"/nonexistent"}, Timeout: time.Second}} {
		for path, refused := range map[string]bool{link: true, sub: true, filepath.Join(dir, "none"): false} {
			if err := w.Remove(context.Background(), path); errors.Is(err, ErrTarget) != refused || (err != nil) != refused {
				t.Errorf("%s: %v", path, err)
			}
		}
		if _, err := os.Stat(file); err != nil {
			t.Fatal("removed through a link: ", err)
		}
	}
	w := Writer{Command: []string{"/nonexistent"}, Timeout: time.Second}
	if err := w.Remove(context.Background(), file); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		t.Error("the file is still there: ", err)
	}
}
