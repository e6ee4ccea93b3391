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
	old, defined, err := oldItems(plain)
	if err != nil {
		return nil, err
	}
	missing := slices.DeleteFunc(Definitions(), func(t Type) bool { return defined[t] })
	if len(old)+len(missing) == 0 {
		return plain, nil
	}
	var out []byte
	chain := NewChain(1<<16, func(least int) ([]byte, error) { return make([]byte, max(least, 64<<10)), nil }, func([]byte) {})
	from := chain.Mark()
	take := func() {
		for b := range chain.Span(from, chain.Mark()) {
			out = append(out, b...)
		}
		from = chain.Mark()
	}
	for _, t := range missing {
		if err := chain.Define(t); err != nil {
			return nil, err
		}
	}
	at := headerSize + int(header(plain).size)
	out = append(out, plain[:at]...)
	take()
	for _, it := range old {
		out = append(out, plain[at:it.Offset]...)
		at = it.Offset + headerSize + len(it.raw)
		if it.Type == TypeDefinition {
			continue
		}
		if err := chain.Bytes(it.Type, renewed(it)); err != nil {
			return nil, err
		}
		take()
	}
	return append(out, plain[at:]...), nil
}

// oldItems are the items of plain that Renew replaces or leaves out, and the types
// that the file defines as they are to stay.
func oldItems(plain []byte) (old []Item, defined map[Type]bool, err error) {
	r, err := NewReader(plain)
	if err != nil {
		return nil, nil, err
	}
	defined = map[Type]bool{}
	for it, err := range r.Items() {
		if err != nil {
			return nil, nil, err
		}
		t := it.Type
		if t == TypeDefinition {
			t = Type(binary.LittleEndian.Uint32(it.Data))
		}
		s, _ := Lookup(t)
		switch {
		case s.Bytewise && (it.Type != TypeDefinition || !s.definedBy(it.Data)):
			old = append(old, it)
		case it.Type == TypeDefinition:
			defined[t] = true
		}
	}
	return old, defined, nil
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
