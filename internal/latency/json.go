package latency

import (
	"encoding/json"
	"io"

	"stackshot/internal/show"
)

// JSONVersion is the version of the form that JSON writes and
// docs/latency-json.md describes. Keys are added without raising it.
const JSONVersion = 1

// Failed is one file that could not be read.
type Failed struct{ File, Error string }

// JSON writes the figures of every file, and the distributions over all of
// them, as one object. Errors are the writer's.
func JSON(w io.Writer, files []*Figures, failed []Failed) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	return enc.Encode(show.Object{
		{"format", "stackshot-latency"}, {"version", JSONVersion},
		{"files", append([]*Figures{}, files...)}, {"over_files", Over(files)},
		{"failed", show.List(failed, func(f *Failed) show.Object {
			return show.Object{{"file", show.Clean(f.File)}, {"error", show.Clean(f.Error)}}
		})},
	})
}
