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
	e, err := EditBuffer(plain)
	if err != nil {
		return plain, err
	}
	missing := Definitions()
	for it, err := range e.Items() {
		if err != nil {
			return plain, err
		}
		switch {
		case isOld(it) && it.Type == TypeDefinition:
			e.Remove(it.Position())
		case isOld(it):
			data := renewed(it)
			w := NewBuffer(len(data) + 2*headerSize)
			if err := w.Bytes(it.Type, data); err != nil {
				return nil, err
			}
			e.Replace(it.Position(), w.Written())
		case it.Type == TypeDefinition:
			missing = slices.DeleteFunc(missing, func(t Type) bool { return t == subject(it) })
		}
	}
	if len(e.edits) == 0 && len(missing) == 0 {
		return plain, nil
	}
	w := NewBuffer(0)
	for _, t := range missing {
		if err := w.Define(t); err != nil {
			return nil, err
		}
	}
	e.InsertBefore(Position{e, e.first}, w.Written()) // also where there is no item
	return e.Edited()
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
