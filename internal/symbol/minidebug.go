package symbol

import (
	"bytes"
	"debug/elf"
	"fmt"
	"io"

	"github.com/therootcompany/xz"
)

const (
	maxMiniDebug     = 64 << 20 // of .gnu_debugdata, unpacked
	maxMiniDebugXZ   = 16 << 20 // of .gnu_debugdata
	maxMiniDebugDict = 64 << 20 // of its dictionary: what xz -9 takes
)

// addMiniDebug takes in the symbols of .gnu_debugdata: an ELF file, packed with
// xz, that has nothing but the .symtab that was stripped.
func (t *table) addMiniDebug(in input, m *layout) error {
	s, ok := m.section(".gnu_debugdata")
	if !ok {
		return nil
	}
	packed, err := in.bytes(s.span(), maxMiniDebugXZ, s.name)
	if err != nil {
		return err
	}
	r, err := xz.NewReader(bytes.NewReader(packed), maxMiniDebugDict)
	if err != nil {
		return fmt.Errorf("%s at offset %#x: %w", s.name, s.off, err)
	}
	most := unpackLimit(s.size, maxMiniDebug)
	b, err := io.ReadAll(io.LimitReader(r, int64(most)+1))
	if err != nil {
		return fmt.Errorf("%s at offset %#x: %w", s.name, s.off, err)
	}
	if uint64(len(b)) > most {
		return fmt.Errorf("%s at offset %#x: %d bytes unpack to more than %d: %w", s.name, s.off, s.size, most, ErrTooBig)
	}
	mini := input{bytes.NewReader(b), uint64(len(b))}
	inner, err := readLayout(mini)
	if err != nil {
		return fmt.Errorf("%s at offset %#x: %w", s.name, s.off, err)
	}
	return t.addSymbols(mini, inner, elf.SHT_SYMTAB, true)
}
