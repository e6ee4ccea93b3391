package symbol

import (
	"encoding/binary"
	"fmt"
)

// debugLink names a split debug file by its last path component and its CRC-32.
type debugLink struct {
	name string
	crc  uint32
}

func (m *layout) debugLink(in input) (debugLink, error) {
	s, ok := m.section(".gnu_debuglink")
	if !ok {
		return debugLink{}, nil
	}
	b, err := in.bytes(s.span(), 4096, ".gnu_debuglink")
	if err != nil {
		return debugLink{}, err
	}
	name := cstring(b, 0, 255)
	at := (len(name) + 4) &^ 3
	if name == "" || at+4 > len(b) {
		return debugLink{}, fmt.Errorf(".gnu_debuglink at offset %#x: %w", s.off, ErrDamaged)
	}
	return debugLink{name, binary.LittleEndian.Uint32(b[at:])}, nil
}
