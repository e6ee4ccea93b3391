package kcdata

import (
	"bytes"
	"encoding/binary"
	"slices"
)

// Renew gives plain, one whole buffer, in today's form. In files written before, our
// text and bytes were plain items with a definition of their length before each, and
// some types had no definition; here they are arrays, and the file defines all types
// of ours, so that any may be put into it. A file that needs nothing of that is
// returned as it is. Errors: those of NewReader and Items.
func Renew(plain []byte) ([]byte, error) {
	old, missing, err := survey(plain)
	if err != nil || !old && len(missing) == 0 {
		return plain, err
	}
	buf := make([]byte, 64<<10)
	w := NewWriter(buf)
	for _, t := range missing {
		if err := w.Define(t); err != nil {
			return nil, err
		}
	}
	at := headerSize + int(header(plain).size)
	out := append(make([]byte, 0, len(plain)+w.Len()), plain[:at]...)
	out = append(out, w.Written()...)
	r, err := NewReader(plain)
	if err != nil {
		return nil, err
	}
	for it, err := range r.Items() {
		if err != nil {
			return nil, err
		}
		if !isOld(it) {
			continue
		}
		out = append(out, plain[at:it.Offset]...)
		at = it.Offset + headerSize + len(it.raw)
		if it.Type == TypeDefinition {
			continue
		}
		data := renewed(it)
		if n := len(data) + 2*headerSize; n > len(buf) {
			buf = make([]byte, 2*n)
		}
		w := NewWriter(buf)
		if err := w.Bytes(it.Type, data); err != nil {
			return nil, err
		}
		out = append(out, w.Written()...)
	}
	return append(out, plain[at:]...), nil
}

// survey says whether plain has items that Renew replaces or leaves out, and which
// types it has to define.
func survey(plain []byte) (old bool, missing []Type, err error) {
	r, err := NewReader(plain)
	if err != nil {
		return false, nil, err
	}
	defined := map[Type]bool{}
	for it, err := range r.Items() {
		if err != nil {
			return false, nil, err
		}
		switch {
		case isOld(it):
			old = true
		case it.Type == TypeDefinition:
			defined[subject(it)] = true
		}
	}
	return old, slices.DeleteFunc(Definitions(), func(t Type) bool { return defined[t] }), nil
}

// isOld reports whether an item is text or bytes as they were, or their definition.
func isOld(it Item) bool {
	s, _ := Lookup(subject(it))
	return s.Bytewise && (it.Type != TypeDefinition || !s.definedBy(it.Data))
}

// subject is an item's type or, of a definition, the type that it defines.
func subject(it Item) Type {
	if it.Type == TypeDefinition {
		return Type(binary.LittleEndian.Uint32(it.Data))
	}
	return it.Type
}

// definedBy reports whether payload is the definition of s that we write.
func (s Spec) definedBy(payload []byte) bool {
	s, _ = s.definition()
	b := make([]byte, s.definitionSize())
	s.putDefinition(b)
	return bytes.Equal(b, payload)
}

// renewed is the content of an old item in today's form.
func renewed(it Item) []byte {
	if it.Type == TypeLinuxUserBytes {
		for u := range it.UserBytes() {
			return u.Append(nil)
		}
	}
	return it.Data
}
