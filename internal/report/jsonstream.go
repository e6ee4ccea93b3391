package report

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"iter"

	"stackshot/internal/show"
)

// jsonWriter writes a document item by item: each frame of each stack has its names, so
// the whole is many times as long as the file was. A json.Encoder alone would hold all of
// it in memory, twice.
type jsonWriter struct {
	w   *bufio.Writer // keeps the first error
	enc *json.Encoder // into buf
	buf bytes.Buffer
	room
}

func newJSONWriter(w io.Writer, most int64) *jsonWriter {
	j := &jsonWriter{w: bufio.NewWriter(w)}
	j.Bytes = most
	j.enc = json.NewEncoder(&j.buf)
	j.enc.SetEscapeHTML(false)
	return j
}

// items is a list that is made while it is written.
type items iter.Seq[show.Object]

// printf writes what stands between values.
func (j *jsonWriter) printf(format string, args ...any) {
	n, _ := fmt.Fprintf(j.w, format, args...)
	j.used += int64(n)
}

// members writes the members of o behind an opening brace or a comma. prefix is the
// indentation of the object.
func (j *jsonWriter) members(separator string, o show.Object, prefix string) {
	for key, value := range o.Members() {
		j.printf("%s\n%s %q: ", separator, prefix, key)
		if list, ok := value.(items); ok {
			j.list(list, prefix+" ")
		} else {
			j.encode(value, prefix+" ")
		}
		separator = ","
	}
}

func (j *jsonWriter) list(list items, prefix string) {
	separator := "["
	for o := range list {
		j.printf("%s\n%s ", separator, prefix)
		j.members("{", o, prefix+" ")
		j.printf("\n%s }", prefix)
		separator = ","
	}
	if separator == "[" {
		j.printf("[]")
	} else {
		j.printf("\n%s]", prefix)
	}
}

// encode writes a value that is made as a whole.
func (j *jsonWriter) encode(v any, prefix string) {
	j.buf.Reset()
	j.enc.SetIndent(prefix, " ")
	if err := j.enc.Encode(v); err != nil {
		panic(err) // constant types
	}
	n, _ := j.w.Write(bytes.TrimSuffix(j.buf.Bytes(), []byte("\n")))
	j.used += int64(n)
}

// fitting is a list of the objects of records. A record for which no room is left goes to
// leave, which counts it.
func fitting[R any](j *jsonWriter, records []R, object func(R) show.Object, leave func(R)) items {
	return func(yield func(show.Object) bool) {
		for _, r := range records {
			if j.full() {
				leave(r)
			} else {
				yield(object(r))
			}
		}
	}
}
