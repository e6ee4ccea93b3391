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
type Failed struct {
	File  string `json:"file"`
	Error string `json:"error"`
}

type document struct {
	Format  string     `json:"format"`
	Version int        `json:"version"`
	Files   []*Figures `json:"files"`
	Over    []Dist     `json:"over_files"`
	Failed  []Failed   `json:"failed"`
}

// JSON writes the figures of every file, and the distributions over all of
// them, as one object. Errors are the writer's.
func JSON(w io.Writer, files []*Figures, failed []Failed) error {
	d := document{Format: "stackshot-latency", Version: JSONVersion, Files: files, Over: Over(files), Failed: []Failed{}}
	if d.Files == nil {
		d.Files = []*Figures{}
	}
	for _, f := range failed {
		d.Failed = append(d.Failed, Failed{show.Clean(f.File), show.Clean(f.Error)})
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	return enc.Encode(d)
}
