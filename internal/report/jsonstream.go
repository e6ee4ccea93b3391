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
	w *bufio.Writer // keeps the first error
	room
}

func newJSONWriter(w io.Writer, most int64) *jsonWriter {
	return &jsonWriter{w: bufio.NewWriter(w), room: room{most: most}}
}

// encode writes v as it stands behind prefix, without its end.
func (j *jsonWriter) encode(v any, prefix, end string) {
	enc := json.NewEncoder(withoutEnd{j, []byte(end)})
	enc.SetEscapeHTML(false)
	enc.SetIndent(prefix, " ")
	if err := enc.Encode(v); err != nil {
		panic(err) // constant types
	}
}

// withoutEnd takes the one write of an encoder.
type withoutEnd struct {
	j   *jsonWriter
	end []byte
}

func (w withoutEnd) Write(p []byte) (int, error) {
	w.j.used += int64(len(p))
	w.j.w.Write(bytes.TrimSuffix(p, w.end))
	return len(p), nil
}

// open writes v, whose last member is an empty list, up to where its items go.
func (j *jsonWriter) open(v any, prefix string) { j.encode(v, prefix, "]\n"+prefix+"}\n") }

// list writes a list of n members behind open, or behind another with its name. Those
// for which nothing is left are counted.
func (j *jsonWriter) list(name string, n int, prefix string, left *int, member func(i int) any) {
	if name != "" {
		fmt.Fprintf(j.w, ",\n%s %q: [", prefix, name)
	}
	written := 0
	for ; written < n && !j.full(); written++ {
		j.item(written, prefix)
		j.encode(member(written), prefix+"  ", "\n")
	}
	*left += n - written
	j.endList(written, prefix)
}

// item begins the n-th item, from 0; its prefix is that of the list's owner and two
// spaces.
func (j *jsonWriter) item(n int, prefix string) {
	if n > 0 {
		j.w.WriteByte(',')
	}
	j.w.WriteString("\n" + prefix + "  ")
}

func (j *jsonWriter) endList(n int, prefix string) {
	if n > 0 {
		j.w.WriteString("\n" + prefix + " ")
	}
	j.w.WriteByte(']')
}

// close ends what open began.
func (j *jsonWriter) close(prefix string) { j.w.WriteString("\n" + prefix + "}") }

func (j *jsonWriter) end() error {
	if j.threads > 0 {
		fmt.Fprintf(j.w, ",\n \"threads_left_out\": %d", j.threads)
	}
	if j.mappings > 0 {
		fmt.Fprintf(j.w, ",\n \"mappings_left_out\": %d", j.mappings)
	}
	j.close("")
	j.w.WriteByte('\n')
	if err := j.w.Flush(); err != nil {
		return err
	}
	return j.err()
}
