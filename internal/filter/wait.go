package filter

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"stackshot/internal/waits"
)

// waitTest looks at the kind of a thread's wait, and at the words for what it waits for.
func waitTest(m match) test {
	return func(x *subject) bool {
		w := x.v.Waits.Of[x.thread]
		if w == nil {
			return false
		}
		if x.texts == nil {
			x.texts = x.waitTexts(w)
		}
		return slices.ContainsFunc(x.texts, m)
	}
}

// waitTexts are the texts of the field wait.
func (f *Filter) waitTexts(w *waits.Wait) []string {
	redacted := f.s.HasMachine && f.s.Machine.Redacted != 0
	out := []string{string(w.Kind), strings.TrimPrefix(f.words.Thing(w), "waits for ")}
	if w.Resource.ID != 0 && !redacted && w.Kind != waits.FUSE { // its number is a device
		out = append(out, fmt.Sprintf("%#x", w.Resource.ID))
	}
	file := w.File
	if file == nil {
		return out
	}
	if !redacted {
		out = append(out, file.Device, file.Remote)
	}
	if file.Mount != nil {
		out = append(out, field(file.Mount.FSType[:]))
		if !redacted {
			out = append(out, field(file.Mount.Point[:]), field(file.Mount.Source[:]))
		}
	}
	return out
}

// field is the text in a field of a record.
func field(b []byte) string {
	text, _, _ := bytes.Cut(b, []byte{0})
	return string(text)
}
