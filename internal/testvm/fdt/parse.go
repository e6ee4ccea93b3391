package fdt

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// maxDepth bounds the recursion; real trees have a handful of levels.
const maxDepth = 64

// Parse reads a device tree.
func Parse(b []byte) (*Tree, error) {
	head, err := block(b, 0, headerLen)
	if err != nil {
		return nil, err
	}
	word := func(i int) uint32 { return binary.BigEndian.Uint32(head[4*i:]) }
	if word(0) != magic || word(5) < version || word(6) > version {
		return nil, fmt.Errorf("%w: magic %#x, version %d, compatible with %d", ErrMalformed, word(0), word(5), word(6))
	}
	structure, err := block(b, word(2), word(9))
	if err != nil {
		return nil, err
	}
	names, err := block(b, word(3), word(8))
	if err != nil {
		return nil, err
	}
	reserved, err := reservations(b, word(4))
	if err != nil {
		return nil, err
	}
	r := reader{b: structure, names: names}
	if tok := r.token(); tok != tokBegin {
		return nil, fmt.Errorf("%w: first token %d", ErrMalformed, tok)
	}
	root := r.node(0)
	if tok := r.token(); r.err == nil && tok != tokDone {
		r.err = fmt.Errorf("%w: token %d after the root", ErrMalformed, tok)
	}
	if r.err != nil {
		return nil, r.err
	}
	return &Tree{Root: root, Reserved: reserved, BootCPU: word(7)}, nil
}

// reservations are pairs of address and size up to a pair of zeros.
func reservations(b []byte, at uint32) ([]byte, error) {
	for n := uint32(16); ; n += 16 {
		pairs, err := block(b, at, n)
		if err != nil {
			return nil, err
		}
		if bytes.Equal(pairs[n-16:], make([]byte, 16)) {
			return pairs, nil
		}
	}
}

// reader goes through the structure block; its first error sticks.
type reader struct {
	b     []byte
	at    uint32
	names []byte
	err   error
}

func (r *reader) take(n uint32) []byte {
	if r.err != nil {
		return nil
	}
	v, err := block(r.b, r.at, n)
	if err != nil {
		r.err = err
		return nil
	}
	r.at += (n + 3) &^ 3
	return v
}

func (r *reader) word() uint32 {
	if v := r.take(4); v != nil {
		return binary.BigEndian.Uint32(v)
	}
	return 0
}

func (r *reader) token() uint32 {
	for {
		if t := r.word(); t != tokNop {
			return t
		}
	}
}

// text is the NUL-terminated string at the start of b.
func (r *reader) text(b []byte, at uint32) string {
	if at <= uint32(len(b)) {
		if n := bytes.IndexByte(b[at:], 0); n >= 0 {
			return string(b[at : at+uint32(n)])
		}
	}
	if r.err == nil {
		r.err = fmt.Errorf("%w: no string at %d of %d", ErrMalformed, at, len(b))
	}
	return ""
}

// node reads one whose begin token has been taken.
func (r *reader) node(depth int) *Node {
	n := &Node{Name: r.text(r.b, r.at)}
	r.take(uint32(len(n.Name)) + 1)
	for r.err == nil {
		switch tok := r.token(); tok {
		case tokProp:
			size, name := r.word(), r.word()
			n.Props = append(n.Props, Prop{r.text(r.names, name), bytes.Clone(r.take(size))})
		case tokBegin:
			if depth == maxDepth {
				r.err = fmt.Errorf("%w: more than %d levels", ErrMalformed, maxDepth)
				return nil
			}
			n.Children = append(n.Children, r.node(depth+1))
		case tokEnd:
			return n
		default:
			if r.err == nil {
				r.err = fmt.Errorf("%w: token %d at %d", ErrMalformed, tok, r.at-4)
			}
		}
	}
	return nil
}
