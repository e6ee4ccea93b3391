package report

import (
	"fmt"
	"strings"

	"stackshot/internal/show"
)

// Bounds of what one thread is shown with: files may make much of little.
const (
	maxUserFrames  = 1 << 14 // of a user stack, inlined functions counted
	maxThreadNames = 4 << 20 // bytes of names in a stack, as JSON
)

// CutError says what a report that came to Options.MaxBytes does not show. All else
// of it is written, and it is well formed.
type CutError struct {
	Threads  int   // that are not shown
	Mappings int   // of JSON, too
	Bytes    int64 // the limit
}

func (e *CutError) Error() string {
	var what []string
	if e.Threads > 0 {
		what = append(what, show.Count(e.Threads, "thread"))
	}
	if e.Mappings > 0 {
		what = append(what, show.Count(e.Mappings, "mapping"))
	}
	return fmt.Sprintf("%s left out: the report would be longer than %s", strings.Join(what, " and "), show.Size(uint64(e.Bytes)))
}

// room is what of Options.MaxBytes is left.
type room struct {
	most, used int64
	threads    int // not shown
	mappings   int // likewise
}

func (r *room) full() bool { return r.most > 0 && r.used >= r.most }

// err is nil where nothing was left out.
func (r *room) err() error {
	if r.threads+r.mappings == 0 {
		return nil
	}
	return &CutError{r.threads, r.mappings, r.most}
}
