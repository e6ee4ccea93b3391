package kcdata

import (
	"encoding/binary"
	"strings"
)

// desc reserves a desc item, writes the name and gives the n bytes of its value.
func (w *items) desc(t Type, name string, n int) ([]byte, error) {
	if name == "" || len(name) > maxName || strings.IndexByte(name, 0) >= 0 {
		return nil, ErrBadName
	}
	b, err := w.plain(t, descName+n)
	if err != nil {
		return nil, err
	}
	putName(b[:descName], name)
	return b[descName:], nil
}

func (w *items) StringDesc(name, v string) error {
	if strings.IndexByte(v, 0) >= 0 {
		return ErrBadName
	}
	b, err := w.desc(TypeStringDesc, name, len(v)+1)
	if err != nil {
		return err
	}
	b[copy(b, v)] = 0
	return nil
}

func (w *items) BytesDesc(name string, v []byte) error {
	b, err := w.desc(TypeBytesDesc, name, len(v))
	copy(b, v)
	return err
}

func (w *items) Uint32Desc(name string, v uint32) error {
	return w.numberDesc(TypeUint32Desc, name, uint64(v))
}

func (w *items) Int32Desc(name string, v int32) error {
	return w.numberDesc(TypeInt32Desc, name, uint64(v))
}

func (w *items) Uint64Desc(name string, v uint64) error {
	return w.numberDesc(TypeUint64Desc, name, v)
}

func (w *items) Int64Desc(name string, v int64) error {
	return w.numberDesc(TypeInt64Desc, name, uint64(v))
}

// numberDesc writes as many of v's lower bytes as t has.
func (w *items) numberDesc(t Type, name string, v uint64) error {
	var word [8]byte
	binary.LittleEndian.PutUint64(word[:], v)
	b, err := w.desc(t, name, descElems[t].Size())
	copy(b, word[:])
	return err
}
