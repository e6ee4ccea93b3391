package kcdata

import "errors"

// Inside is a stackshot in a plain buffer.
type Inside struct {
	Plain  []byte // the stackshot, as far as the buffer has it
	In     Type   // magic of the buffer around it; TypeInvalid: it is the buffer itself
	Offset int    // of its begin marker in that buffer
	Others int    // stackshots in the buffer behind it
}

// FindStackshot finds the stackshot of a plain buffer: the buffer itself, or the first one that
// is nested in it, as in a crash file. limit is that of Unwrap, for one that is nested with its envelope.
// Errors: ErrNotStackshot; those of NewReader; those of Items, with what was found before them.
func FindStackshot(plain []byte, limit int64) (Inside, error) {
	r, err := NewReader(plain)
	if err != nil {
		return Inside{}, err
	}
	if isStackshot(r.Magic()) {
		return Inside{Plain: plain}, nil
	}
	f := finder{limit: limit}
	err = f.search(r, 0, 0)
	if f.found.Plain == nil && err == nil {
		err = badf(0, ErrNotStackshot, "%v, and none is nested in it", r.Magic())
	}
	f.found.In = r.Magic()
	return f.found, err
}

func isStackshot(magic Type) bool { return magic == MagicStackshot || magic == MagicDeltaStackshot }

type finder struct {
	found Inside
	limit int64
}

// search looks through the items of a buffer, which begins at base in the outermost one.
func (f *finder) search(r *Reader, base, depth int) error {
	for it, err := range r.Items() {
		bad, broken := errors.AsType[*FormatError](err)
		switch {
		case broken && errors.Is(bad, ErrTruncated) && len(r.data)-bad.Offset >= headerSize && header(r.data[bad.Offset:]).typ == TypeNested:
			it.Data, it.Offset = r.data[bad.Offset+headerSize:], bad.Offset // as much as there is
		case err != nil:
			return err
		case it.Type != TypeNested:
			continue
		}
		f.look(it.Data, base+it.Offset+headerSize, depth)
		if err != nil {
			return err
		}
	}
	return nil
}

// look looks at one nested buffer.
func (f *finder) look(b []byte, base, depth int) {
	if len(b) >= headerSize && header(b).typ == MagicCompressed {
		limit := f.limit
		if f.found.Plain != nil {
			limit = 4 * headerSize // enough for its magic
		}
		b, _, _ = Unwrap(b, limit)
	}
	r, err := NewReader(b)
	switch {
	case err != nil:
	case isStackshot(r.Magic()) && f.found.Plain != nil:
		f.found.Others++
	case isStackshot(r.Magic()):
		f.found.Plain, f.found.Offset = b, base
	case depth < MaxNested:
		_ = f.search(r, base, depth+1) // dump says how a nested buffer breaks off
	}
}
