package show

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"iter"
)

// Stream writes one large JSON object, member by member. Of a list of Items it holds one
// entry at a time; a json.Encoder alone would hold all of the document in memory, twice.
type Stream struct {
	W       *bufio.Writer // keeps the first error
	Written int64         // bytes so far
	enc     *json.Encoder // into buf
	buf     bytes.Buffer  // one value
}

// Items is a list whose objects are made while it is written.
type Items iter.Seq[Object]

// NewStream begins a document, which Members and End write.
func NewStream(w io.Writer) *Stream {
	s := &Stream{W: bufio.NewWriter(w)}
	s.enc = json.NewEncoder(&s.buf)
	s.enc.SetEscapeHTML(false)
	return s
}

// Document writes parts of the members one after the other as one object. A part is asked for
// when what stands before it is written, so it may tell how that went.
func (s *Stream) Document(parts ...func() Object) {
	separator := "{"
	for _, part := range parts {
		s.members(separator, part(), "")
		separator = ","
	}
	s.printf("\n}\n")
}

// printf writes what stands between values.
func (s *Stream) printf(format string, args ...any) {
	n, _ := fmt.Fprintf(s.W, format, args...)
	s.Written += int64(n)
}

// members writes the members of o behind an opening brace or a comma. prefix is the
// indentation of the object.
func (s *Stream) members(separator string, o Object, prefix string) {
	for key, value := range o.Members() {
		s.printf("%s\n%s %q: ", separator, prefix, key)
		if list, ok := value.(Items); ok {
			s.list(list, prefix+" ")
		} else {
			s.encode(value, prefix+" ")
		}
		separator = ","
	}
}

func (s *Stream) list(list Items, prefix string) {
	separator := "["
	for o := range list {
		s.printf("%s\n%s ", separator, prefix)
		s.members("{", o, prefix+" ")
		s.printf("\n%s }", prefix)
		separator = ","
	}
	if separator == "[" {
		s.printf("[]")
	} else {
		s.printf("\n%s]", prefix)
	}
}

// encode writes a value that is encoded as a whole.
func (s *Stream) encode(v any, prefix string) {
	s.buf.Reset()
	s.enc.SetIndent(prefix, " ")
	if err := s.enc.Encode(v); err != nil {
		panic(err) // constant types
	}
	n, _ := s.W.Write(bytes.TrimSuffix(s.buf.Bytes(), []byte("\n")))
	s.Written += int64(n)
}
