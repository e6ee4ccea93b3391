package kcdata

import (
	"encoding/binary"
	"strings"
)

func (w *items) Uint32Desc(name string, v uint32) error {
	return w.desc(TypeUint32Desc, name, uint64(v))
}

func (w *items) Uint64Desc(name string, v uint64) error {
	return w.desc(TypeUint64Desc, name, v)
}

// desc writes a desc item: the name, and as many of v's lower bytes as a value of t has.
func (w *items) desc(t Type, name string, v uint64) error {
	if name == "" || len(name) > maxName || strings.IndexByte(name, 0) >= 0 {
		return ErrBadName
	}
	var value [8]byte
	binary.LittleEndian.PutUint64(value[:], v)
	b, err := w.plain(t, descName+descElems[t].Size())
	if err != nil {
		return err
	}
	putName(b[:descName], name)
	copy(b[descName:], value[:])
	return nil
}
