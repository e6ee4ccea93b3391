package symbol

import (
	"encoding/binary"
	"fmt"

	"stackshot/internal/elffile"
)

// debugLink names a split debug file by its last path component and its CRC-32.
type debugLink struct {
	name string
	crc  uint32
}

// readDebugLink reads .gnu_debuglink; zero without one.
func readDebugLink(in elffile.Reader, m *elffile.Layout) (debugLink, error) {
	s := m.Section(".gnu_debuglink")
	if s == nil {
		return debugLink{}, nil
	}
	b, err := in.Bytes(s.Span(), 4096, ".gnu_debuglink")
	if err != nil {
		return debugLink{}, err
	}
	name := elffile.Text(b, 0, 255)
	at := (len(name) + 4) &^ 3
	if name == "" || at+4 > len(b) {
		return debugLink{}, fmt.Errorf(".gnu_debuglink at offset %#x: %w", s.Off, elffile.ErrDamaged)
	}
	return debugLink{name, binary.LittleEndian.Uint32(b[at:])}, nil
}
