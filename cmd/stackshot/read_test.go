package main

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"stackshot/internal/testheap"
	"stackshot/kcdata"
)

// What is no file of ours is not read beyond its first bytes: it may be a disk.
func TestWhatIsNoSnapshotIsNotRead(t *testing.T) {
	disk := filepath.Join(t.TempDir(), "disk")
	if err := os.WriteFile(disk, []byte("no magic"), 0o600); err != nil {
		t.Fatal(err)
	}
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
