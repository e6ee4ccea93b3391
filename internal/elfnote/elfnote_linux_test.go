package elfnote

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"stackshot/internal/testelf"
	"stackshot/internal/testneed"
)

// Against readelf, over the programs and libraries of this machine.
func TestBuildIDLikeReadelf(t *testing.T) {
	testneed.Live(t)
	var paths []string
	for _, glob := range []string{"/usr/bin/*", "/usr/lib/*/*.so*", "/usr/lib/go*/bin/*", "/usr/local/go/bin/*"} {
		list, _ := filepath.Glob(glob)
		paths = append(paths, list[:min(len(list), 60)]...)
	}
	exe, err := os.Executable() // Go's linker: in no segment of notes
	if err != nil {
		t.Fatal(err)
	}
	paths = append(paths, exe)
	with := 0
	for _, path := range paths {
		if st, err := os.Stat(path); err != nil || !st.Mode().IsRegular() {
			continue
		}
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		id, err := BuildID(f)
		f.Close()
		if errors.Is(err, ErrNotELF) {
			continue
		}
		if err != nil && !errors.Is(err, ErrNoBuildID) {
			t.Errorf("%s: %v", path, err)
		}
		if want := testelf.BuildID(t, path); fmt.Sprintf("%x", id) != want {
			t.Errorf("%s: %x, readelf %s", path, id, want)
		}
		if id != nil {
			with++
		}
	}
	if with < 20 {
		t.Errorf("only %d files of %d had a build-id", with, len(paths))
	}
}

// Damaged files: an error or a build-id, bounded.
func FuzzBuildID(f *testing.F) {
	exe, err := os.Executable()
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range []string{exe, "/bin/true"} {
		b, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b[:min(len(b), 1200)])
	}
	f.Add([]byte("\x7fELF\x01\x02"))
	f.Fuzz(func(t *testing.T, b []byte) {
		id, err := BuildID(&view{b})
		if (id == nil) == (err == nil) || len(id) > maxBuildID {
			t.Fatalf("%x, %v", id, err)
		}
	})
}

type view struct{ b []byte }

func (v *view) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 || off >= int64(len(v.b)) {
		return 0, io.EOF
	}
	n := copy(p, v.b[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}
