package symbol

import (
	"bytes"
	"debug/elf"
	"fmt"
	"io"

	"github.com/therootcompany/xz"

	"stackshot/internal/elffile"
)

const (
	maxMiniDebug     = 64 << 20 // of .gnu_debugdata, unpacked
	maxMiniDebugXZ   = 16 << 20 // of .gnu_debugdata
	maxMiniDebugDict = 64 << 20 // of its dictionary: what xz -9 takes
)

// addMiniDebug takes in the symbols of .gnu_debugdata: an ELF file, packed with
// xz, that has nothing but the .symtab that was stripped.
func (t *table) addMiniDebug(in elffile.Reader, m *elffile.Layout) error {
	s := m.Section(".gnu_debugdata")
	if s == nil {
		return nil
	}
	packed, err := in.Bytes(s.Span(), maxMiniDebugXZ, s.Name)
	if err != nil {
		return err
	}
	r, err := xz.NewReader(bytes.NewReader(packed), maxMiniDebugDict)
	if err != nil {
		return fmt.Errorf("%s at offset %#x: %w", s.Name, s.Off, err)
	}
	most := elffile.UnpackLimit(s.Size, maxMiniDebug)
	b, err := io.ReadAll(io.LimitReader(r, int64(most)+1))
	if err != nil {
		return fmt.Errorf("%s at offset %#x: %w", s.Name, s.Off, err)
	}
	if uint64(len(b)) > most {
		return fmt.Errorf("%s at offset %#x: %d bytes unpack to more than %d: %w", s.Name, s.Off, s.Size, most, elffile.ErrTooBig)
	}
	mini := elffile.NewReader(bytes.NewReader(b), int64(len(b)))
	inner, err := elffile.Read(mini)
	if err != nil {
		return fmt.Errorf("%s at offset %#x: %w", s.Name, s.Off, err)
	}
	return t.addSymbols(mini, inner, elf.SHT_SYMTAB, true)
}
