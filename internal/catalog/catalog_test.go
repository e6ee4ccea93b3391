package catalog

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stackshot/kcdata"
)

// sample is a whole snapshot.
func sample(t testing.TB) []byte {
	t.Helper()
	packed, err := os.ReadFile("../testread/testdata/today.kcdata.zst")
	if err != nil {
		t.Fatal(err)
	}
	plain, _, err := kcdata.Unwrap(packed, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	return plain
}

// takenAt is the sample, as if it had been taken at another time.
func takenAt(t testing.TB, at uint64, e kcdata.Envelope) []byte {
	t.Helper()
	editor, err := kcdata.EditBuffer(sample(t))
	if err != nil {
		t.Fatal(err)
	}
	for it, err := range editor.Items() {
		if err != nil {
			t.Fatal(err)
		}
		if it.Type == kcdata.TypeLinuxMachine {
			if err := kcdata.Patch(it.Position(), func(m *kcdata.LinuxMachine) { m.RealtimeNs = at }); err != nil {
				t.Fatal(err)
			}
		}
	}
	plain, err := editor.Edited()
	if err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	if err := kcdata.Compress(&packed, plain, e); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}

func write(t testing.TB, name string, b []byte) {
	t.Helper()
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// The order is that of the captures, whatever the files are called, packed with, or when they
// were copied.
func TestOrder(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 1))
	dir, taken := t.TempDir(), map[string]uint64{}
	for i := range 24 {
		name := filepath.Join(dir, fmt.Sprintf("stackshot-vm-%d-%d", random.IntN(1000), i))
		taken[name] = 1 + random.Uint64N(1<<61)
		write(t, name, takenAt(t, taken[name], kcdata.Envelope(i%3)))
		if err := os.Chtimes(name, time.Time{}, time.Unix(random.Int64N(1<<31), 0)); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(dir, "untimed"), takenAt(t, 0, kcdata.EnvelopeZstd))
	d, err := Read(dir)
	if err != nil || len(d.Files) != len(taken)+1 || d.Closed != 0 {
		t.Fatalf("seed %d: %v, %d files", seed, err, len(d.Files))
	}
	for i, f := range d.Files {
		if f.Taken != taken[f.Path] || f.Err != nil || f.Host == "" {
			t.Errorf("seed %d: %+v, want %d", seed, f, taken[f.Path])
		}
		if i > 0 && f.Taken > d.Files[i-1].Taken {
			t.Errorf("seed %d: %d comes after %d", seed, f.Taken, d.Files[i-1].Taken)
		}
	}
	if n := d.Newest(); n == nil || n.Taken != slices.Max(slices.Collect(func(yield func(uint64) bool) {
		for _, at := range taken {
			if !yield(at) {
				return
			}
		}
	})) {
		t.Errorf("seed %d: the newest is %+v", seed, n)
	}
}

// What is no regular file is not opened: a FIFO would keep us, a device may do anything. What is
// no snapshot is not listed, unless its name says that it is one.
func TestOtherFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"fifo", "fifo.kcdata"} {
		if err := unix.Mkfifo(at(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	whole := takenAt(t, 7, kcdata.EnvelopeZstd)
	write(t, at("target"), whole)
	for _, err := range []error{
		os.Mkdir(at("dir.kcdata"), 0o700), os.Symlink("fifo", at("link.kcdata")), os.Symlink("nothing", at("dangling.kcdata")),
		os.Symlink("/dev/zero", at("zero.kcdata")), os.Symlink("target", at("alias")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	write(t, at("text"), []byte("some text"))
	write(t, at("text.kcdata"), []byte("some text"))
	write(t, at("empty"), nil)
	write(t, at("empty.kcdata"), nil)
	write(t, at("other.gz"), []byte("\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\xffKLJ\x06\x00\xc2A$5\x03\x00\x00\x00"))
	write(t, at("b64"), []byte(base64.StdEncoding.EncodeToString(whole)))
	write(t, at("other.zst"), []byte("\x28\xb5\x2f\xfd\x04\x00\x19\x00\x00abc\x00\x00\x00\x00"))
	write(t, at("short.kcdata.zst"), whole[:3])
	write(t, at("magic.kcdata.zst"), whole[:4])
	write(t, at("torn.kcdata.zst"), whole[:40])
	d, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range d.Files {
		got = append(got, fmt.Sprint(filepath.Base(f.Path), " ", f.Taken, " ", errors.Is(f.Err, errNot)))
	}
	want := []string{"alias 7 false", "b64 7 false", "target 7 false", "empty.kcdata 0 true", "magic.kcdata.zst 0 true", "short.kcdata.zst 0 true", "text.kcdata 0 true", "torn.kcdata.zst 0 true"}
	if !slices.Equal(got, want) || len(d.Unreadable()) != 5 {
		t.Errorf("%q\nwant %q", got, want)
	}
}

func TestNoDirectory(t *testing.T) {
	t.Parallel()
	if _, err := Read(filepath.Join(t.TempDir(), "none")); err == nil || !strings.HasSuffix(err.Error(), "/none: no such file or directory") {
		t.Error(err)
	}
	if d, err := Read(t.TempDir()); err != nil || d.Newest() != nil || !strings.HasPrefix(d.sum(0), "no snapshot in /") {
		t.Errorf("%+v, %v", d, err)
	}
}

// A beginning that nobody vouches for is a snapshot with a time, or none.
func FuzzHead(f *testing.F) {
	for e := range kcdata.Envelope(3) {
		f.Add(takenAt(f, 7, e))
	}
	f.Add([]byte("\x28\xb5\x2f\xfd"))
	f.Fuzz(func(t *testing.T, head []byte) {
		var file File
		if err := file.fill(head); err != nil && (file.Taken != 0 || file.Host != "") {
			t.Fatalf("%v, and %+v", err, file)
		}
	})
}
