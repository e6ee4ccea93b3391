package report

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"stackshot/internal/show"
)

// jsonWriter writes a document thread by thread: each frame of each stack has its
// names, so that the whole is many times what the file was. Encode alone would
// hold it, twice.
type jsonWriter struct {
	w   *bufio.Writer // keeps the first error
	enc *json.Encoder // into buf
	buf bytes.Buffer
	room
}

func newJSONWriter(w io.Writer, most int64) *jsonWriter {
	j := &jsonWriter{w: bufio.NewWriter(w), room: room{most: most}}
	j.enc = json.NewEncoder(&j.buf)
	j.enc.SetEscapeHTML(false)
	return j
}

// encode writes v as it stands behind prefix, without its end.
func (j *jsonWriter) encode(v any, prefix, end string) {
	j.buf.Reset()
	j.enc.SetIndent(prefix, " ")
	if err := j.enc.Encode(v); err != nil {
		panic(err) // constant types
	}
	n, _ := j.w.Write(bytes.TrimSuffix(j.buf.Bytes(), []byte(end)))
	j.used += int64(n)
}

// open writes o, whose last member is an empty list, up to where its items go.
func (j *jsonWriter) open(o show.Object, prefix string) {
	end := "]\n" + prefix + "}\n"
	j.encode(o, prefix, end)
	j.used += int64(len(end))
}

// object writes o as encode does, but member by member: as one value, the frames in it
// would be copied once more.
func (j *jsonWriter) object(o show.Object, prefix string) {
	before := "{"
	for key, value := range o.Members() {
		n, _ := fmt.Fprintf(j.w, "%s\n%s %q: ", before, prefix, key)
		j.used += int64(n)
		j.encode(value, prefix+" ", "\n")
		before = ","
	}
	j.close(prefix)
	j.used += int64(len("\n}\n") + len(prefix))
}

// list writes a list of n members behind open, or behind another with its name. Those
// for which nothing is left are counted.
func (j *jsonWriter) list(name string, n int, prefix string, left *int, member func(i int) show.Object) {
	if name != "" {
		fmt.Fprintf(j.w, ",\n%s %q: [", prefix, name)
	}
	written := 0
	for ; written < n && !j.full(); written++ {
		j.item(written, prefix)
		j.object(member(written), prefix+"  ")
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
