package hang

import (
	"bufio"
	"fmt"
	"io"

	"stackshot/internal/account"
	"stackshot/internal/alarm"
	"stackshot/internal/show"
	"stackshot/internal/verdict"
	"stackshot/internal/waitgraph"
	"stackshot/kcdata"
)

// Bounds of the text.
const (
	maxFindings = 20 // that are shown with their edges
	maxPart     = 16 // edges of one deadlock
	maxStacks   = 48 // threads whose stacks are shown
	maxLimits   = 12 // sentences on what the file cannot tell
	maxAsked    = 16 // threads that were asked for, and that no finding concerns
)

// below says where the findings are that the first sentences leave out.
const below = "they follow"

// text is a text that is being written.
type text struct {
	show.Page
	w        *bufio.Writer // keeps the first error
	o        *Options
	s        *kcdata.Snapshot
	v        *waitgraph.Verdict
	words    *verdict.Words
	findings []verdict.Finding // as they are told, that concern the threads asked for
	color    string            // of the lines that follow
}

// Text writes the verdict for people: the findings in sentences, then each with its edges and
// whom it keeps waiting, the stacks of the threads that matter, and how many threads wait for
// what. Errors: the writer's, *report.CutError.
func Text(w io.Writer, s *kcdata.Snapshot, v *waitgraph.Verdict, o Options) error {
	words := verdict.For(s, v)
	t := &text{w: bufio.NewWriter(w), o: &o, s: s, v: v, words: words, findings: words.Told(o.Only)}
	t.Page = show.Page{Width: o.Width, Wrap: true, Put: func(line string) {
		if o.Color {
			line = show.Paint(t.color, line)
		}
		t.w.WriteString(line)
		t.w.WriteByte('\n')
	}}
	t.header()
	for i, f := range t.findings[:min(len(t.findings), maxFindings)] {
		t.finding(i+1, f)
	}
	if more := len(t.findings) - maxFindings; more > 0 {
		t.Line("")
		t.Words("", "and %s; the JSON form has all", show.Count(more, "more finding"))
	}
	t.unconcerned()
	cut := t.stacks()
	t.totals()
	t.limits()
	t.notShown()
	if err := t.w.Flush(); err != nil {
		return err
	}
	return cut
}

// summary is the verdict in at most three sentences, of the findings that are shown.
func summary(words *verdict.Words, v *waitgraph.Verdict, findings []verdict.Finding) []string {
	if len(findings) == 0 && v.Hangs() {
		return []string{"Nothing that hangs concerns the threads asked for."}
	}
	return words.Summary(findings, below)
}

func (t *text) colored(color string, f func()) {
	t.color = color
	f()
	t.color = ""
}

// header says which machine, what limits trust, and what hangs.
func (t *text) header() {
	t.colored(show.Bold, func() { t.Words("", "%s", account.BriefMachine(t.s)) })
	t.colored(show.Red, func() {
		for _, s := range alarm.All(t.s, t.o.Absent) {
			t.Words("!! ", "%s", s)
		}
	})
	for _, s := range []string{account.BriefPause(t.s), account.BriefAtomicity(t.s)} {
		if s != "" {
			t.Words("", "%s", s)
		}
	}
	t.Line("")
	color := ""
	if len(t.findings) > 0 {
		color = show.Red
	}
	t.colored(color, func() {
		for _, s := range summary(t.words, t.v, t.findings) {
			t.Words("", "%s", s)
		}
	})
	if t.o.Only == nil {
		return
	}
	if others := len(t.words.Told(nil)) - len(t.findings); others > 0 {
		t.Words("", "%s of other threads: not shown.", show.Count(others, "finding"))
	}
}

// finding writes one finding with its edges, then the tree of those that it keeps waiting.
func (t *text) finding(n int, f verdict.Finding) {
	t.Line("")
	t.colored(show.Bold, func() { t.Words(fmt.Sprintf("== %d. ", n), "%s", t.words.Title(f)) })
	if n > verdict.InSummary(t.findings) {
		t.Words("  ", "%s", t.words.Sentence(f))
	}
	switch {
	case f.Deadlock != nil:
		t.deadlock(f.Deadlock)
	case len(f.Others) > 0:
		t.together(f.Together())
	case f.Culprit != nil:
		t.culprit(f)
	default:
		t.convoy(f.Convoy)
	}
}
