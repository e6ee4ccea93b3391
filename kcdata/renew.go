package kcdata

import (
	"bytes"
	"encoding/binary"
	"slices"
)

// Renew returns plain, one whole buffer, in today's form. Older versions wrote our text and
// bytes as plain items, with a definition of the length before each, and did not define all
// our types. Renew makes arrays of these items and adds the definitions, so that items of
// any type can be inserted. It returns plain itself if there is nothing to change. Errors:
// those of NewReader and Items.
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
	e.InsertBefore(Position{e, e.first}, w.Written()) // right for a buffer without items, too
	return e.Edited()
}

// isOld reports whether an item is our text or bytes in the old form, or its definition.
func isOld(it Item) bool {
	s, _ := Lookup(subject(it))
	return s.Bytewise && (it.Type != TypeDefinition || !s.definedBy(it.Data))
}

// subject is an item's type or, for a definition, the type that it defines.
func subject(it Item) Type {
	if it.Type == TypeDefinition {
		return Type(binary.LittleEndian.Uint32(it.Data))
	}
	return it.Type
}

// definedBy reports whether payload is the definition of s that we write today.
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
