package symbol

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"stackshot/internal/testneed"
)

// command runs a program that the test needs, and returns what it printed.
func command(t testing.TB, name string, args ...string) []byte {
	t.Helper()
	return commandIn(t, "", name, args...)
}

func commandIn(t testing.TB, dir, name string, args ...string) []byte {
	t.Helper()
	testneed.Program(t, name)
	var errs bytes.Buffer
	c := exec.Command(name, args...)
	c.Dir, c.Stderr = dir, &errs
	c.Env = append(os.Environ(), "CGO_ENABLED=0", "LC_ALL=C", "DEBUGINFOD_URLS=")
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, errs.Bytes())
	}
	return out
}

// compiled builds testdata/name with a compiler and returns the program.
func compiled(t testing.TB, compiler, name string, args ...string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "prog")
	command(t, compiler, append(append([]string{}, args...), "-o", out, filepath.Join("testdata", name))...)
	return out
}

// opened opens a File that the test closes.
func opened(t testing.TB, path string) *File {
	t.Helper()
	r, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	st, err := r.Stat()
	if err != nil {
		t.Fatal(err)
	}
	f, err := Open(r, st.Size())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// copyFile copies with another mode where the original's is no use.
func copyFile(t testing.TB, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, b, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
}
