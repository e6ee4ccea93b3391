package kcdata

import (
	"bytes"
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
	skip int // bytes of text before it, which are of no file
	open func(source) (io.Reader, error)
}

// maxCodings is how many codings may stand one in another.
const maxCodings = 3

const (
	base64Begin = 8        // characters of base64 that give the magic of a file
	textBefore  = 32 << 10 // bytes of a mail before its base64
	maxBlank    = 64 << 10 // bytes between two characters of base64: a pipe has endless many
)

// codingOf is the one that s begins with; nil: none.
func (s source) codingOf() *coding {
	head, _ := s.Peek(kindHead)
	if isGzip(string(head)) {
		return &coding{"gzip", 0, openGzip}
	}
	if !isText(head) {
		return nil
	}
	head, _ = s.Peek(textBefore)
	if at := findBase64(head); at >= 0 {
		return &coding{"base64", at, openBase64}
	}
	return nil
}

// beginsFile reports whether head begins a file that Read reads, or one in a coding.
func beginsFile(head []byte) bool {
	return len(head) >= 4 && isEnvelope(string(head)) || isGzip(string(head)) || findBase64(head) >= 0
}

func isGzip(head string) bool { return strings.HasPrefix(head, "\x1f\x8b\x08") } // RFC 1952, by deflate

// isBase64 reports whether head is base64 of something that Read knows. Any text may be
// base64 of something.
func isBase64(head string) bool {
	b, err := base64.StdEncoding.DecodeString(head)
	return err == nil && len(b) >= 4 && (isGzip(string(b)) || isEnvelope(string(b)))
}

// findBase64 is where the first line begins that is base64 of something that Read knows; -1: none.
func findBase64(text []byte) int {
	for at := len(text) - len(bytes.TrimPrefix(text, []byte(utf8Mark))); ; {
		for at < len(text) && betweenBase64(text[at]) {
			at++
		}
		if len(text)-at >= base64Begin && isBase64(string(text[at:at+base64Begin])) {
			return at
		}
		next := bytes.IndexByte(text[at:], '\n')
		if next < 0 {
			return -1
		}
		at += next + 1
	}
}

// decoded takes the codings off a file. If one cannot be opened, inner is what it should hold, without a byte.
func (s source) decoded() (inner source, err error) {
	for range maxCodings {
		c := s.codingOf()
		if c == nil {
			break
		}
		_, _ = s.Discard(c.skip) // which was peeked at
		r, err := c.open(s)
		if err != nil {
			return s.within(c.name, strings.NewReader("")), badStream(0, 0, err)
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
	for range maxEmptyBlocks {
		n, err := g.z.Read(p)
		if n > 0 && err == io.EOF {
			return n, nil // which the next Read says too
		}
		if err != io.EOF {
			return n, err
		}
		if head, _ := g.src.Peek(3); !isGzip(string(head)) {
			return 0, io.EOF
		}
		if err := g.z.Reset(g.src); err != nil {
			return 0, err
		}
		g.z.Multistream(false)
	}
	return 0, fmt.Errorf("%d empty members", maxEmptyBlocks)
}

// base64Text gives the characters of base64 alone. It ends before one that is of no base64.
type base64Text struct{ src source }

func openBase64(src source) (io.Reader, error) {
	return noSingle{base64.NewDecoder(base64.RawStdEncoding, base64Text{src})}, nil
}

func (t base64Text) Read(p []byte) (n int, err error) {
	for blank := 0; n == 0 && blank < maxBlank; {
		if _, err := t.src.Peek(1); err != nil {
			return 0, err
		}
		head, _ := t.src.Peek(min(t.src.Buffered(), len(p)))
		for i, c := range head {
			if isBase64Char(c) {
				p[n] = c
				n++
			} else if !betweenBase64(c) {
				_, _ = t.src.Discard(i)
				return n, t.end()
			}
		}
		_, _ = t.src.Discard(len(head))
		blank += len(head)
	}
	if n == 0 {
		return 0, notBase64(t.src.taken())
	}
	return n, nil
}

// end takes what ends base64: padding, and lines without any. Of what else stands there it gives notBase64.
func (t base64Text) end() error {
	at, padded := t.src.taken(), false
	for range maxBlank {
		b, err := t.src.Peek(1)
		switch {
		case err != nil:
			return err
		case b[0] == '=':
			padded = true
		case !betweenBase64(b[0]) && padded:
			return io.EOF
		case !betweenBase64(b[0]):
			return notBase64(at)
		}
		_, _ = t.src.Discard(1)
	}
	return io.EOF
}

func isBase64Char(c byte) bool {
	return 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '+' || c == '/'
}

// betweenBase64 reports whether c may stand between characters of base64: white space, and what mail quotes
// a line with.
func betweenBase64(c byte) bool { return c == '\n' || c == '\r' || c == ' ' || c == '\t' || c == '>' }

// notBase64 is an offset, in the coding, of what ends its base64 without padding.
type notBase64 int64

func (n notBase64) Error() string { return fmt.Sprintf("it ends at offset %#x", int64(n)) }

// noSingle calls it an end, as it is one of a cut file, if the last character of base64 has no second one.
type noSingle struct{ decoder io.Reader }

func (r noSingle) Read(p []byte) (int, error) {
	n, err := r.decoder.Read(p)
	if _, single := errors.AsType[base64.CorruptInputError](err); single {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// beyond is the source, of s and those around it, that goes on behind what was read of it; nil: none.
// The error says that the end of a coding is damaged or missing.
func (s source) beyond() (*source, error) {
	for {
		_, err := s.Peek(1)
		_, text := errors.AsType[notBase64](err)
		switch {
		case err == nil:
			return &s, nil
		case s.around == nil: // its own errors are told by whoever reads the file
			return nil, nil
		case err != io.EOF && !text: // the base64 of a mail may be followed by a signature
			return nil, badStream(0, int(s.taken()), err)
		}
		s = *s.around
	}
}
