package procfs

import (
	"bytes"
	"errors"
	"fmt"
	"math"
)

// ErrSyntax is the cause of every error of a ParseX function.
var ErrSyntax = errors.New("not what the kernel writes")

// syntaxError says which field of which kind of file ("stat", "maps", …) has another form
// than expected, with the first 40 characters of the text in question.
func syntaxError(file, field string, text []byte) error {
	return fmt.Errorf("%s: %s: %.40q %w", file, field, text, ErrSyntax)
}

// parseUint reads a whole text of decimal digits. Unlike strconv it allocates
// nothing from bytes and takes no sign or underscore.
func parseUint(b []byte) (uint64, bool) {
	var n uint64
	for _, c := range b {
		d := uint64(c - '0')
		if c < '0' || c > '9' || n > (math.MaxUint64-d)/10 {
			return 0, false
		}
		n = n*10 + d
	}
	return n, len(b) > 0
}

func parseInt(b []byte) (int64, bool) {
	digits, negative := bytes.CutPrefix(b, []byte("-"))
	n, ok := parseUint(digits)
	switch {
	case !ok:
		return 0, false
	case negative && n <= 1<<63:
		return -int64(n), true
	case !negative && n <= math.MaxInt64:
		return int64(n), true
	}
	return 0, false
}

// parseHex reads a whole text of up to 16 hexadecimal digits, as the kernel writes
// them: in lower case. It allocates nothing.
func parseHex[T string | []byte](text T) (n uint64, ok bool) {
	for i := range len(text) {
		switch c := text[i]; {
		case '0' <= c && c <= '9':
			n = n<<4 | uint64(c-'0')
		case 'a' <= c && c <= 'f':
			n = n<<4 | uint64(c-'a'+10)
		default:
			return 0, false
		}
	}
	return n, len(text) > 0 && len(text) <= 16
}

// scanner reads the fields of a line, separated by blanks. It keeps the first error, so
// that its callers are plain lists of assignments and check for it once.
type scanner struct {
	file  string
	rest  []byte
	field int // number of the last one read, from 1
	err   error
}

// next reads one word; empty at the end.
func (s *scanner) next() []byte {
	s.rest = bytes.TrimLeft(s.rest, " \t\n")
	end := bytes.IndexAny(s.rest, " \t\n")
	if end < 0 {
		end = len(s.rest)
	}
	word := s.rest[:end]
	s.rest = s.rest[end:]
	if len(word) > 0 {
		s.field++
	}
	return word
}

// skip skips n words. A missing one is an error.
func (s *scanner) skip(n int) {
	for range n {
		if len(s.next()) == 0 {
			s.fail(nil)
		}
	}
}

// more reports whether another word follows, and there was no error.
func (s *scanner) more() bool {
	s.rest = bytes.TrimLeft(s.rest, " \t\n")
	return s.err == nil && len(s.rest) > 0
}

// to skips words until the next one is number n, and reports whether there is one.
func (s *scanner) to(n int) bool {
	for s.field < n-1 && s.more() {
		s.next()
	}
	return s.more()
}

func (s *scanner) fail(word []byte) {
	if s.err == nil {
		s.err = syntaxError(s.file, fmt.Sprintf("field %d", s.field), word)
	}
}

func (s *scanner) uint() uint64 {
	w := s.next()
	n, ok := parseUint(w)
	if !ok {
		s.fail(w)
	}
	return n
}

func (s *scanner) int() int64 {
	w := s.next()
	n, ok := parseInt(w)
	if !ok {
		s.fail(w)
	}
	return n
}

func (s *scanner) hex() uint64 {
	w := s.next()
	digits, prefixed := bytes.CutPrefix(w, []byte("0x"))
	n, ok := parseHex(digits)
	if !ok || !prefixed {
		s.fail(w)
	}
	return n
}

// i32 and u32 refuse numbers that do not fit into the kernel's own type.
func (s *scanner) i32() int32 {
	n := s.int()
	if n < math.MinInt32 || n > math.MaxInt32 {
		s.fail([]byte(fmt.Sprint(n)))
	}
	return int32(n)
}

func (s *scanner) u32() uint32 {
	n := s.uint()
	if n > math.MaxUint32 {
		s.fail([]byte(fmt.Sprint(n)))
	}
	return uint32(n)
}
