package testelf

import (
	"bytes"
	"debug/elf"
	"testing"
)

func TestFile(t *testing.T) {
	f, err := elf.NewFile(bytes.NewReader(File(
		Section{Name: ".one", Type: elf.SHT_PROGBITS, Data: []byte("first")},
		Section{Name: ".two", Type: elf.SHT_PROGBITS, Like: ".one"},
	)))
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"", ".one", ".two", ".shstrtab"} {
		if f.Sections[i].Name != name {
			t.Errorf("section %d is %q, want %q", i, f.Sections[i].Name, name)
		}
	}
	for _, s := range f.Sections[1:3] {
		if b, err := s.Data(); string(b) != "first" || s.Addr != Base+s.Offset {
			t.Errorf("%s: %q at %#x, %v", s.Name, b, s.Addr, err)
		}
	}
}
