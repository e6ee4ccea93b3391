package testvm

import (
	"bytes"
	"crypto/sha512"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// memento is what a test keeps in its memory and no file holds.
func memento() []byte {
	sum := sha512.Sum512([]byte("kept in the memory of a kernel that dies"))
	return sum[:]
}

// countIn is how often a file has text in it. It reads a mebibyte at a time.
func countIn(file string, text []byte) (int, error) {
	f, err := os.Open(file)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	n, kept := 0, 0
	buf := make([]byte, 1<<20)
	for {
		got, err := f.Read(buf[kept:])
		have := buf[:kept+got]
		n += bytes.Count(have, text)
		kept = copy(buf, have[max(0, len(have)-len(text)+1):])
		if err == io.EOF {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
}

// readVMCore is the program of a capture kernel.
func readVMCore() error {
	f, err := elf.Open("/proc/vmcore")
	if err != nil {
		return err
	}
	f.Close()
	n, err := countIn("/proc/vmcore", memento())
	fmt.Printf("%d program headers, found %d times\n", len(f.Progs), n)
	if err == nil && (n == 0 || len(f.Progs) < 3) {
		err = fmt.Errorf("no memory of the dead kernel")
	}
	if err != nil {
		return err
	}
	return os.WriteFile("/out/big", make([]byte, 3<<20), 0o600)
}

// Pieces in any order make the file; what is cut, oversized or no such file is refused.
func TestUnflatten(t *testing.T) {
	piece := func(at, size int64, data string) string {
		return string(binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, uint64(at)), uint64(size))) + data
	}
	head := flatMagic + string(make([]byte, flatHeader-len(flatMagic)))
	end := piece(-1, -1, "")
	for name, c := range map[string]struct{ in, want string }{
		"in order":      {head + piece(0, 2, "ab") + piece(2, 1, "c") + end, "abc"},
		"out of order":  {head + piece(2, 1, "c") + piece(0, 2, "xb") + piece(0, 1, "a") + end, "abc"},
		"no end":        {head + piece(0, 2, "ab"), ""},
		"cut":           {head + piece(0, 3, "ab"), ""},
		"negative":      {head + piece(-2, 2, "ab") + end, ""},
		"oversized":     {head + piece(0, flatPiece+1, "ab") + end, ""},
		"not flattened": {"KDUMP   " + head + end, ""},
		"empty":         {"", ""},
	} {
		from, to := filepath.Join(t.TempDir(), "flat"), filepath.Join(t.TempDir(), "plain")
		if err := os.WriteFile(from, []byte(c.in), 0o600); err != nil {
			t.Fatal(err)
		}
		err := Unflatten(from, to)
		got, _ := os.ReadFile(to)
		if (err == nil) != (c.want != "") || err == nil && string(got) != c.want {
			t.Errorf("%s: %q, %v, want %q", name, got, err, c.want)
		}
	}
}
