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

func (w *items) Uint32Desc(name string, v uint32) error { return w.desc32(TypeUint32Desc, name, v) }

func (w *items) Int32Desc(name string, v int32) error {
	return w.desc32(TypeInt32Desc, name, uint32(v))
}

func (w *items) Uint64Desc(name string, v uint64) error { return w.desc64(TypeUint64Desc, name, v) }

func (w *items) Int64Desc(name string, v int64) error {
	return w.desc64(TypeInt64Desc, name, uint64(v))
}

func (w *items) desc32(t Type, name string, v uint32) error {
	b, err := w.desc(t, name, 4)
	if err != nil {
		return err
	}
	binary.LittleEndian.PutUint32(b, v)
	return nil
}

func (w *items) desc64(t Type, name string, v uint64) error {
	b, err := w.desc(t, name, 8)
	if err != nil {
		return err
	}
	binary.LittleEndian.PutUint64(b, v)
	return nil
}
