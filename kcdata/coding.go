package kcdata

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/klauspost/compress/gzip"
)

// coding is a form in which a whole file, envelope and all, is passed on: by mail, in a
// property list, in a bug report. Read takes it off.
type coding struct {
	name string
	open func(source) (io.Reader, error)
}

// maxCodings is how many codings may stand one in another.
const maxCodings = 3

// base64Begin is how many characters of base64 give the magic of a file.
const base64Begin = 8

// codingOf is the coding of a file that begins with head; nil: none.
func codingOf(head string) *coding {
	switch {
	case isGzip(head):
		return &coding{"gzip", openGzip}
	case isBase64(head):
		return &coding{"base64", openBase64}
	}
	return nil
}

func isGzip(head string) bool { return strings.HasPrefix(head, "\x1f\x8b\x08") } // RFC 1952, by deflate

// isBase64 reports whether head is base64 of something that Read knows. Any text may be
// base64 of something.
func isBase64(head string) bool {
	b, err := base64.StdEncoding.DecodeString(head)
	return err == nil && len(b) >= 4 && (isGzip(string(b)) || isEnvelope(string(b)))
}

// decoded takes the codings off a file. If one cannot be opened, inner is the source that begins with it.
func (s source) decoded() (inner source, err error) {
	for range maxCodings {
		head, _ := s.Peek(base64Begin)
		c := codingOf(string(head))
		if c == nil {
			break
		}
		r, err := c.open(s)
		if err != nil {
			return s, badStream(0, 0, fmt.Errorf("%s: %w", c.name, err))
		}
		s = s.within(c.name, r)
	}
	return s, nil
}

// codings are the names of those around s, outermost first.
func (s source) codings() (names []string) {
	for ; s.around != nil; s = *s.around {
		names = append(names, s.coding)
	}
	slices.Reverse(names)
	return names
}

// gzipMembers reads the members of a gzip file as one, and ends where something else follows.
type gzipMembers struct {
	src source
	z   *gzip.Reader
}

func openGzip(src source) (io.Reader, error) {
	z, err := gzip.NewReader(src)
	if err != nil {
		return nil, err
	}
	z.Multistream(false)
	return &gzipMembers{src, z}, nil
}

func (g *gzipMembers) Read(p []byte) (int, error) {
	n, err := g.z.Read(p)
	if err != io.EOF {
		return n, err
	}
	if head, _ := g.src.Peek(3); !isGzip(string(head)) {
		return n, io.EOF
	}
	if err := g.z.Reset(g.src); err != nil {
		return n, err
	}
	g.z.Multistream(false)
	return n, nil
}

// base64Text reads the bytes before an error first: the decoder gives both at once, and keeps
// some of the bytes for the next call.
type base64Text struct{ r io.Reader }

func openBase64(src source) (io.Reader, error) {
	return base64Text{base64.NewDecoder(base64.StdEncoding, src)}, nil
}

func (b base64Text) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if n > 0 {
		err = nil
	}
	return n, err
}

// beyond is the source, of s and those around it, that goes on behind what was read of it; nil: none.
// The error says that the end of a coding is damaged or missing.
func (s source) beyond() (*source, error) {
	for {
		_, err := s.Peek(1)
		_, text := errors.AsType[base64.CorruptInputError](err)
		switch {
		case err == nil || text: // text of another kind behind base64
			return &s, nil
		case s.around == nil: // its own errors are told by whoever reads the file
			return nil, nil
		case err != io.EOF:
			return nil, badStream(0, int(s.taken()), err)
		}
		s = *s.around
	}
}
