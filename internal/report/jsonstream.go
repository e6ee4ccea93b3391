package report

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
)

// jsonWriter writes a document thread by thread: each frame of each stack has its
// names, so that the whole is many times what the file was. Encode alone would
// hold it, twice.
type jsonWriter struct {
	w   *bufio.Writer // keeps the first error
	buf bytes.Buffer
}

func newJSONWriter(w io.Writer) *jsonWriter { return &jsonWriter{w: bufio.NewWriter(w)} }

// encode gives v as it stands behind prefix, until the next call.
func (j *jsonWriter) encode(v any, prefix string) []byte {
	j.buf.Reset()
	enc := json.NewEncoder(&j.buf)
	enc.SetEscapeHTML(false)
	enc.SetIndent(prefix, " ")
	if err := enc.Encode(v); err != nil {
		panic(err) // constant types
	}
	return bytes.TrimSuffix(j.buf.Bytes(), []byte("\n"))
}

func (j *jsonWriter) value(v any, prefix string) { j.w.Write(j.encode(v, prefix)) }

// open writes v, whose last member is an empty list, up to where its items go.
func (j *jsonWriter) open(v any, prefix string) {
	j.w.Write(bytes.TrimSuffix(j.encode(v, prefix), []byte("]\n"+prefix+"}")))
}

// item begins the n-th item, from 0; its prefix is that of the list's owner and two
// spaces.
func (j *jsonWriter) item(n int, prefix string) {
	if n > 0 {
		j.w.WriteByte(',')
	}
	j.w.WriteString("\n" + prefix + "  ")
}

// close ends what open began, a list of n items.
func (j *jsonWriter) close(n int, prefix string) {
	if n > 0 {
		j.w.WriteString("\n" + prefix + " ")
	}
	j.w.WriteString("]\n" + prefix + "}")
}

func (j *jsonWriter) end() error {
	j.w.WriteByte('\n')
	return j.w.Flush()
}
