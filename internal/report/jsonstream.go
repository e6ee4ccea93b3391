package report

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

// jsonWriter writes a document thread by thread: each frame of each stack has its
// names, so that the whole is many times what the file was. Encode alone would
// hold it, twice.
type jsonWriter struct {
	w   *bufio.Writer // keeps the first error
	buf bytes.Buffer
	room
}

func newJSONWriter(w io.Writer, most int64) *jsonWriter {
	return &jsonWriter{w: bufio.NewWriter(w), room: room{most: most}}
}

// encode gives v as it stands behind prefix, until the next call.
func (j *jsonWriter) encode(v any, prefix string) []byte {
	j.buf.Reset()
	enc := json.NewEncoder(&j.buf)
	enc.SetEscapeHTML(false)
	enc.SetIndent(prefix, " ")
	if err := enc.Encode(v); err != nil {
		panic(err) // constant types
	}
	j.used += int64(j.buf.Len())
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
	j.w.WriteString("]")
	if prefix == "" && j.threads > 0 {
		fmt.Fprintf(j.w, ",\n \"threads_left_out\": %d", j.threads)
	}
	j.w.WriteString("\n" + prefix + "}")
}

func (j *jsonWriter) end() error {
	j.w.WriteByte('\n')
	if err := j.w.Flush(); err != nil {
		return err
	}
	return j.err()
}
