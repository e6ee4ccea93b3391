package symbol

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"stackshot/internal/testneed"
	"stackshot/kcdata"
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

// What tests ask of single places and files, where the command asks for all at once.

// BuildID returns the GNU build-id; nil without one.
func (f *File) BuildID() []byte { return f.build }

// Problems returns why tables of the file are not used.
func (f *File) Problems() []error { return f.problems }

// Vaddr turns an offset in the file, in bytes, into an address that it was linked for.
func (f *File) Vaddr(off uint64) (uint64, bool) { return f.layout.Segments.Address(off, 0) }

// offset is the inverse of Vaddr.
func (f *File) offset(vaddr uint64) (uint64, bool) {
	for _, p := range f.layout.Segments {
		if vaddr >= p.Vaddr && vaddr-p.Vaddr < p.Filesz {
			return p.Off + (vaddr - p.Vaddr), true
		}
	}
	return 0, false
}

// Functions returns the functions that p of t is in, innermost first; nil if
// nothing is known of it. A return address is looked up in the call before it,
// and its offset counted from the address itself. Calls for many places are
// better made by Resolve.
func (r *Resolver) Functions(t *kcdata.Task, p kcdata.UserPlace) []kcdata.UserFunction {
	w := newWanted(r.o.Local, r.o.Proc)
	w.add(t, p)
	return r.do(context.Background(), w, nil).Tasks[t].Functions(p)
}
