package resident

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stackshot/internal/lockfile"
	"stackshot/internal/testneed"
)

const good = "pid 1\nsince 2\nlive 3\nregion 4\n"

// held is a file with a text that somebody holds.
func held(t *testing.T, path, text string) *os.File {
	t.Helper()
	os.Remove(path)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err == nil {
		err = lockfile.Lock(f)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// One takes, a second is refused and told who has it, and what was signed is read back; then
// nobody has it.
func TestTake(t *testing.T) {
	testneed.Live(t)
	testneed.Root(t)
	path := filepath.Join(t.TempDir(), "armed")
	nobody := func() {
		t.Helper()
		if h, err := Running(path); h != nil || err != nil {
			t.Errorf("%v, %v", h, err)
		}
	}
	nobody()
	f, err := Take(path)
	if err != nil {
		t.Fatal(err)
	}
	if h, err := Running(path); !errors.Is(err, errUnnamed) {
		t.Errorf("not signed yet: %v, %v", h, err)
	}
	if _, err := Take(path); !errors.Is(err, ErrArmed) || !errors.Is(err, errUnnamed) {
		t.Error("not signed yet: ", err)
	}
	h := Holder{Pid: 7, Since: time.Unix(0, 1234567890123456789), Live: 9, Region: 11}
	if err := Sign(f, h); err != nil {
		t.Fatal(err)
	}
	if got, err := Running(path); err != nil || *got != h {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := Take(path); !errors.Is(err, ErrArmed) || !strings.Contains(err.Error(), "pid 7 since 2009") {
		t.Error(err)
	}
	if err := Drop(f); err != nil {
		t.Error(err)
	}
	nobody()
	if f, err = Take(path); err != nil {
		t.Fatal(err)
	}
	f.Close() // killed
	nobody()
}

// A file of somebody else's is refused, whatever stands in it; one that nobody holds is nobody's.
func TestHostileFiles(t *testing.T) {
	testneed.Live(t)
	testneed.Root(t)
	path := filepath.Join(t.TempDir(), "armed")
	refused := func(what string) {
		t.Helper()
		if h, err := Running(path); err == nil {
			t.Errorf("%.20q: %+v", what, h)
		}
	}
	for _, text := range []string{"", "\x00", "pid", "pid 1\nlive 3\n", "pid 1\nsince 2\nlive -3\nregion 4\n", "pid 1\nsince 2\nlive 4294967296\nregion 4\n",
		"pid 0\nsince 2\nlive 3\nregion 4\n", good + "x\n", strings.Repeat("x", 5000)} {
		held(t, path, text)
		refused(text)
	}
	for what, do := range map[string]func() error{
		"everybody's": func() error { return os.Chmod(path, 0o622) },
		"another's":   func() error { return os.Chown(path, 1, 1) },
		"two names":   func() error { return os.Link(path, path+"2") },
		"a link":      func() error { return errors.Join(os.Rename(path, path+"3"), os.Symlink(path+"3", path)) },
	} {
		os.Remove(path + "2")
		held(t, path, good)
		if err := do(); err != nil {
			t.Fatal(err)
		}
		refused(what)
	}
	os.Remove(path + "2")
	f := held(t, path, good)
	if h, err := Running(path); err != nil || h.Pid != 1 || h.Live != 3 || h.Region != 4 {
		t.Errorf("%+v, %v", h, err)
	}
	f.Close()
	if h, err := Running(path); h != nil || err != nil {
		t.Errorf("nobody holds it: %+v, %v", h, err)
	}
	os.Remove(path)
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	refused("a FIFO")
}
