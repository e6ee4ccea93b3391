package hang

import (
	"bufio"
	"fmt"
	"io"

	"stackshot/internal/account"
	"stackshot/internal/report"
	"stackshot/internal/show"
	"stackshot/internal/verdict"
	"stackshot/internal/waitgraph"
	"stackshot/internal/waits"
	"stackshot/kcdata"
)

// Bounds of the text.
const (
	maxFindings = 20 // that are shown with their edges
	maxPart     = 16 // edges of one deadlock
	maxStacks   = 48 // threads whose stacks are shown
	maxLimits   = 12 // sentences on what the file cannot tell
)

// text is a text that is being written.
type text struct {
	show.Page
	w        *bufio.Writer // keeps the first error
	o        *Options
	s        *kcdata.Snapshot
	v        *waitgraph.Verdict
	words    *verdict.Words
	findings []verdict.Finding // that concern the tasks asked for
	color    string            // of the lines that follow
}

// Text writes the verdict for people: the findings in sentences, then each with its edges and
// whom it keeps waiting, the stacks of the threads that matter, and how many threads wait for
// what. Errors: the writer's, *report.CutError.
func Text(w io.Writer, s *kcdata.Snapshot, v *waitgraph.Verdict, o Options) error {
	t := &text{w: bufio.NewWriter(w), o: &o, s: s, v: v, words: verdict.For(s, v), findings: Found(v, o)}
	t.Page = show.Page{Width: o.Width, Put: func(line string) {
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
	cut := t.stacks()
	t.totals()
	t.limits()
	if err := t.w.Flush(); err != nil {
		return err
	}
	return cut
}

// Found are the findings that concern the tasks of o, worst first.
func Found(v *waitgraph.Verdict, o Options) (out []verdict.Finding) {
	pids := o.asked()
	for _, f := range verdict.Findings(v) {
		if f.Concerns(pids) {
			out = append(out, f)
		}
	}
	return out
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
		for _, s := range report.Alarms(t.s) {
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
		for _, s := range t.words.Summary(t.findings) {
			t.Words("", "%s", s)
		}
	})
	if others := len(verdict.Findings(t.v)) - len(t.findings); others > 0 {
		t.Words("", "%s of other tasks: --pid leaves them out.", show.Count(others, "finding"))
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
	case f.Culprit != nil:
		t.culprit(f.Culprit)
	default:
		t.convoy(f.Convoy)
	}
}

func (t *text) deadlock(d *waitgraph.Deadlock) {
	t.doubt(d)
	var roots []node
	part := inCycleFirst(d)
	for i, w := range part {
		roots = append(roots, node{thread: w.Thread})
		if i < maxPart {
			t.edge(1, w)
		}
	}
	t.left(1, len(part)-maxPart, "more thread", " of the deadlock")
	if len(d.Behind) > 0 {
		t.Line("  behind %s:", it(len(part) == 1))
		t.tree(roots, d.Behind)
	}
}

func it(one bool) string {
	if one {
		return "it"
	}
	return "them"
}

// doubt says why a deadlock is only probable.
func (t *text) doubt(d *waitgraph.Deadlock) {
	if d.Confidence == waits.Sure {
		return
	}
	if !t.v.Waits.OneInstant {
		t.Words("  ", "\"Probably\": the file is not of one instant, so the waits may be of different moments.")
	}
	likely := 0
	for _, w := range d.Cycle {
		if w.Confidence == waits.Likely {
			likely++
		}
	}
	if likely > 0 {
		t.Words("  ", "\"Probably\": not each wait of the cycle is sure (%d of %d).", likely, len(d.Cycle))
	}
}

// inCycleFirst are the waits of a deadlock: a shortest cycle in its order, then the others.
func inCycleFirst(d *waitgraph.Deadlock) []*waits.Wait {
	seen := make(map[*waits.Wait]bool, len(d.Cycle))
	out := append([]*waits.Wait{}, d.Cycle...)
	for _, w := range d.Cycle {
		seen[w] = true
	}
	for _, w := range d.Part {
		if !seen[w] {
			out = append(out, w)
		}
	}
	return out
}

func (t *text) culprit(c *waitgraph.Culprit) {
	t.indented(1, verdict.Owner(&c.Owner))
	if c.Wait != nil {
		t.indented(2, t.about(c.Wait, false))
	}
	t.tree([]node{nodeOf(&c.Owner)}, c.Victims)
}

func (t *text) convoy(c *waitgraph.Convoy) {
	var roots []node
	for i := range c.Owners {
		roots = append(roots, nodeOf(&c.Owners[i]))
		if i < maxPart {
			t.indented(1, verdict.Owner(&c.Owners[i]))
		}
	}
	t.left(1, len(c.Owners)-maxPart, "more owner", "")
	t.tree(roots, c.Waiters)
}

// tree writes whom the roots keep waiting, nearest first.
func (t *text) tree(roots []node, list []*waits.Wait) {
	f := grow(roots, list)
	more := func(depth, n int) { t.left(depth, n, "more thread", "") }
	below := func(depth int, w *waits.Wait) {
		t.indented(depth, verdict.Thread(w.Task, w.Thread)+" "+t.about(w, true))
	}
	for _, r := range roots {
		f.walk(r, 2, below, more)
	}
	for _, w := range f.apart[:min(len(f.apart), treeWidth)] {
		t.edge(2, w)
	}
	more(2, len(f.apart)-treeWidth)
}

// edge writes one thread and what it waits for.
func (t *text) edge(depth int, w *waits.Wait) {
	t.indented(depth, verdict.Thread(w.Task, w.Thread)+" "+t.about(w, false))
}

// about says of a wait: for what, for how long, how that is known. below: the line above names
// the owner.
func (t *text) about(w *waits.Wait, below bool) string {
	s := t.words.Phrase(w)
	if below && len(w.Owners) == 1 && w.Owners[0].Relation == waits.Holds && !w.Owners[0].Dead {
		s = t.words.Thing(w)
	}
	if age := account.Age(w.Age); age != "" {
		s += "," + age
	}
	if known := verdict.Evidence(w); known != "" {
		s += " (" + known + ")"
	}
	if notes := verdict.Notes(w); notes != "" {
		s += "; " + notes
	}
	return s
}

// left says how many are not shown, if any are.
func (t *text) left(depth, n int, what, of string) {
	if n > 0 {
		t.indented(depth, fmt.Sprintf("and %s%s", show.Count(n, what), of))
	}
}

// indented writes one line of a tree.
func (t *text) indented(depth int, s string) { t.Line("%*s%s", 2*depth, "", s) }
