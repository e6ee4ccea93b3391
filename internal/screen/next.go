package screen

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"stackshot/internal/show"
	"stackshot/kcdata"
)

// Next writes the next commands alone: a screen that was shown before its file was there has none.
// Errors: the writer's.
func Next(w io.Writer, s *kcdata.Snapshot, o Options) error {
	v := newView(s, o)
	var out strings.Builder
	for _, c := range v.commands(v.sections()) {
		out.WriteString(c.text(o.Width) + "\n")
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// next is a command line that is there to be copied: it is never cut.
type next struct{ words, why string }

// text is the command and, if there is room, what it is for. A shell takes that for a comment.
func (c next) text(width int) string {
	s := "  " + c.words
	if width > 0 && show.Cells(s) > width {
		s = c.words
	}
	if full := s + "   # " + c.why; width <= 0 || show.Cells(full) <= width {
		return full
	}
	return s
}

// rows is how many rows of a terminal the command takes: it may be longer than a line.
func (c next) rows(width int) int {
	if width <= 0 {
		return 1
	}
	return max(1, (show.Cells(c.text(width))+width-1)/width)
}

// commands are what may be looked at next, the most useful first.
func (v *view) commands(sections []section) (out []next) {
	if v.o.File == "" || show.Clean(v.o.File) != v.o.File { // nobody could copy its name
		return nil
	}
	program, file := cmp.Or(v.o.Program, "stackshot"), Word(v.o.File)
	if v.o.Verdict.Hangs() {
		out = append(out, next{program + " hang " + file, "who waits for whom"})
	}
	if pid := v.first(sections); pid != 0 {
		out = append(out, next{fmt.Sprintf("%s report --pid %d %s", program, pid, file), "its stacks"})
	}
	return append(out, next{program + " report " + file, "all stacks"})
}

// first is the task to be looked at first; 0: there is none.
func (v *view) first(sections []section) uint64 {
	if len(v.suspects) > 0 {
		return v.suspects[0].by.task.ID
	}
	if e, _ := worst(sections); e != nil {
		return e.pid
	}
	return 0
}

// Word quotes a file's name for the shell.
func Word(s string) string {
	safe := s != "" && !strings.HasPrefix(s, "-")
	for i := range len(s) {
		c := s[i]
		safe = safe && (c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("/._-+:,@%", c) >= 0)
	}
	switch {
	case safe:
		return s
	case strings.HasPrefix(s, "-") && s != "-":
		s = "./" + s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
