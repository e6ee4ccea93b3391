//go:build linux

package stacks

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"stackshot/internal/foreign"
	"stackshot/internal/image"
	"stackshot/internal/procfs"
	"stackshot/kcdata"
)

// ownCode is our executable's mapping, and the file.
func ownCode(t *testing.T) (kcdata.Mapping, []byte) {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for m, err := range procfs.ParseMaps(read(t, "/proc/self/maps"), procfs.PermExec) {
		if err == nil && m.Path == path {
			return kcdata.Mapping{Path: m.Path, LinuxMapping: kcdata.LinuxMapping{
				Start: m.Start, End: m.End, Offset: m.Offset, Inode: m.Inode, DevMajor: m.DevMajor, DevMinor: m.DevMinor}}, read(t, path)
		}
	}
	t.Fatalf("%s is not mapped", path)
	return kcdata.Mapping{}, nil
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func unwinderFor(t *testing.T, images *image.Cache) *Unwinder {
	t.Helper()
	if images == nil {
		files := foreign.New(foreign.Options{})
		t.Cleanup(func() { files.Close() })
		images = image.New(files, 0)
	}
	return &Unwinder{Images: images, Left: time.Minute}
}

// kept is what a session keeps of it.
func kept(t *testing.T, u *Unwinder, m *kcdata.Mapping) *keptTable {
	t.Helper()
	if _, table := u.Process(image.Seen(os.Getpid()), []kcdata.Mapping{*m}).find(m.Start); table == nil {
		t.Fatalf("no table of %s", m.Path)
	}
	v, err := u.Images.Load(image.Seen(os.Getpid()), m, "unwind", func(io.ReaderAt, int64) (any, error) {
		return nil, errors.New("loaded twice")
	})
	if err != nil {
		t.Fatal(err)
	}
	return v.(*keptTable)
}

// The code beside a table reads as the file does, wherever and however much; and
// it is not kept whole.
func TestCodeReadsAsTheFile(t *testing.T) {
	u := unwinderFor(t, nil)
	m, file := ownCode(t)
	k := kept(t, u, &m)
	size := int64(len(file))
	places := []int64{0, codeBlock - 1, codeBlock, size - 1, size, size + 1, size + codeBlock}
	for range 200 {
		places = append(places, rand.Int64N(size))
	}
	for _, off := range places {
		for _, n := range []int{0, 1, 16, 4096, codeBlock, 2*codeBlock + 1} {
			got, want := make([]byte, n), make([]byte, n)
			g, gerr := k.code.ReadAt(got, off)
			w, werr := bytes.NewReader(file).ReadAt(want, off)
			if n == 0 {
				gerr, werr = nil, nil // of nothing, either may say that it is the end
			}
			if g != w || gerr != werr || !bytes.Equal(got, want) {
				t.Fatalf("%d bytes at %d of %d: %d, %v; the file %d, %v", n, off, size, g, gerr, w, werr)
			}
		}
	}
	if k.Cost() <= 0 || k.Cost() >= size/2 {
		t.Errorf("%d bytes are kept of a file of %d", k.Cost(), size)
	}
}

// Without time nothing is read, and that is not remembered. Whose stack needed it is:
// it is marked, and its mapping named.
func TestCodeWithinItsTime(t *testing.T) {
	u := unwinderFor(t, nil)
	m, file := ownCode(t)
	k := kept(t, u, &m)
	u.Left = 0
	b := make([]byte, 16)
	if n, err := k.code.ReadAt(b, int64(m.Offset)); n != 0 || err == nil || !strings.Contains(err.Error(), "spent") {
		t.Errorf("%d bytes, %v", n, err)
	}
	p := k.code.from.Load().p
	if notes := p.Mark(); !p.short || !p.Late() || p.maps[0].Flags&kcdata.MappingTableMissed == 0 || len(notes) != 1 || !strings.Contains(notes[0], m.Path) {
		t.Errorf("short %v, late %v, notes %q, %+v", p.short, p.Late(), notes, p.maps[0])
	}
	next := unwinderFor(t, u.Images)
	kept(t, next, &m)
	if n, err := k.code.ReadAt(b, int64(m.Offset)); n != 16 || err != nil || !bytes.Equal(b, file[m.Offset:][:16]) {
		t.Errorf("%x, %v; the file has %x", b[:n], err, file[m.Offset:][:16])
	}
}
