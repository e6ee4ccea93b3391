package gopclntab

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"io"
	"os"
	"testing"

	"stackshot/internal/elffile"
	"stackshot/internal/testelf"
)

// counted counts the bytes that are read.
type counted struct {
	io.ReaderAt
	n int64
}

func (c *counted) ReadAt(b []byte, off int64) (int, error) {
	c.n += int64(len(b))
	return c.ReaderAt.ReadAt(b, off)
}

// The start of Go's code is looked for in all data: here a thousand times in the
// same.
func TestSectionsShareOneContent(t *testing.T) {
	table, _ := own(t)
	table = bytes.Clone(table)
	binary.LittleEndian.PutUint64(table[24:], 0) // no start of the code
	sections := []testelf.Section{
		{Name: ".gopclntab", Type: elf.SHT_PROGBITS, Data: table},
		{Name: ".data", Type: elf.SHT_PROGBITS, Flags: elf.SHF_WRITE, Data: make([]byte, 1<<20)},
	}
	for range 1000 {
		sections = append(sections, testelf.Section{Name: ".more", Type: elf.SHT_PROGBITS, Flags: elf.SHF_WRITE, Like: ".data"})
	}
	file := testelf.File(sections...)
	c := &counted{ReaderAt: bytes.NewReader(file)}
	r := elffile.NewReader(c, int64(len(file)))
	m, err := elffile.Read(r)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := Open(r, m); got != nil || err == nil || c.n > maxSearch+8<<20 || c.n < 100<<20 {
		t.Errorf("%d MiB read of a file of %d: %v, %v", c.n>>20, len(file)>>20, got, err)
	}
}

// The start of this program's code is in its data, whether or not the table has it.
func TestTextOfThisProgram(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(exe)
	if err != nil {
		t.Fatal(err)
	}
	r := elffile.NewReader(bytes.NewReader(b), int64(len(b)))
	m, err := elffile.Read(r)
	if err != nil {
		t.Fatal(err)
	}
	table, err := Open(r, m)
	if err != nil {
		t.Fatal(err)
	}
	_, text := own(t)
	if got, err := table.findText(r, m); got != text || table.Text != text || err != nil {
		t.Errorf("%#x, searched %#x, %v; .text is at %#x", table.Text, got, err, text)
	}
}
