package hang

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"stackshot/internal/account"
	"stackshot/internal/show"
	"stackshot/internal/verdict"
	"stackshot/internal/waitgraph"
	"stackshot/internal/waits"
	"stackshot/kcdata"
)

// maxDotWaits bounds the waits of one finding in the graph, maxDotLabel a label, in cells.
const (
	maxDotWaits = 40
	maxDotLabel = 80
)

// node is who stands in a graph: a thread, a process with several, or the number of one that
// the file does not have.
type node struct {
	thread *kcdata.Thread
	task   *kcdata.Task
	tid    uint32 // if both are nil
}

func nodeOf(o *waits.Owner) node {
	switch {
	case o.Whole && o.Task != nil && len(o.Task.Threads) > 1:
		return node{task: o.Task}
	case o.Thread != nil:
		return node{thread: o.Thread}
	}
	return node{tid: o.Tid}
}

// graph is a graph that is being written.
type graph struct {
	w         *bufio.Writer // keeps the first error
	words     *verdict.Words
	threads   map[node]int
	resources map[waits.Resource]int
	edges     map[[2]string]bool
	places    int // that are drawn, of threads in D
	left      int // waits that are not drawn
}

// Dot writes the findings as a graph in the language of Graphviz: threads are boxes, what they
// wait for and hold are ellipses. The findings that are not drawn are counted in its label.
// Errors: the writer's.
func Dot(w io.Writer, s *kcdata.Snapshot, v *waitgraph.Verdict, o Options) error {
	g := &graph{
		w: bufio.NewWriter(w), words: verdict.For(s, v), threads: map[node]int{}, resources: map[waits.Resource]int{}, edges: map[[2]string]bool{},
	}
	findings := g.words.Told(o.Only)
	g.line("digraph hang {")
	g.line("rankdir=LR; node [shape=box];")
	for _, f := range findings[:min(len(findings), maxFindings)] {
		g.finding(f)
	}
	lines := []string{account.BriefMachine(s)}
	lines = append(lines, summary(g.words, v, findings)...)
	if n := len(findings) - maxFindings; n > 0 {
		lines = append(lines, show.Count(n, "more finding")+" not drawn")
	}
	if g.left > 0 {
		lines = append(lines, show.Count(g.left, "more wait")+" not drawn")
	}
	g.line("label=%s;", quoted(lines...))
	g.line("}")
	return g.w.Flush()
}

func (g *graph) line(format string, args ...any) { fmt.Fprintf(g.w, format+"\n", args...) }

// quoted is a string of the language, with a line for each of lines.
func quoted(lines ...string) string {
	escape := strings.NewReplacer(`\`, `\\`, `"`, `\"`)
	out := make([]string, len(lines))
	for i, s := range lines {
		out[i] = escape.Replace(show.Clean(s))
	}
	return `"` + strings.Join(out, `\n`) + `"`
}

// label is quoted, each line cut.
func label(lines ...string) string {
	out := make([]string, len(lines))
	for i, s := range lines {
		out[i] = show.Fit(s, maxDotLabel)
	}
	return quoted(out...)
}

func (g *graph) finding(f verdict.Finding) {
	switch {
	case f.Deadlock != nil:
		g.waits(inCycleFirst(f.Deadlock), "red")
		g.waits(f.Deadlock.Behind, "")
	case len(f.Others) > 0:
		g.together(f.Together())
	case f.Culprit != nil:
		o := f.Culprit.Owner
		o.Whole = o.Whole && o.Thread == nil
		at := g.box(nodeOf(&o), "red", verdict.Culprit(f.Culprit))
		if f.Culprit.Wait != nil {
			g.waits([]*waits.Wait{f.Culprit.Wait}, "")
		}
		g.waits(f.Culprit.Victims, "")
		g.member(o.Task, at, "red")
	default:
		r := g.resource(f.Convoy.Resource)
		for i := range f.Convoy.Owners[:min(len(f.Convoy.Owners), maxDotWaits)] {
			g.edge(r, g.owner(&f.Convoy.Owners[i], ""), "held by", "", waits.Sure)
		}
		g.waits(f.Convoy.Waiters, "")
	}
}

// together draws threads in D, and the place at which all of them wait.
func (g *graph) together(list []*waits.Wait) {
	g.waits(list, "red")
	if list[0].Resource != (waits.Resource{}) {
		return // waits has drawn it
	}
	at := fmt.Sprintf("p%d", g.places)
	g.places++
	g.line("%s [shape=ellipse, label=%s];", at, label(g.words.Place(list[0])))
	for _, w := range list[:min(len(list), maxDotWaits)] {
		g.edge(g.thread(w, "red"), at, string(w.Evidence), "red", w.Confidence)
	}
}

// waits draws the first of a list, with who can end them.
func (g *graph) waits(list []*waits.Wait, color string) {
	drawn := list[:min(len(list), maxDotWaits)]
	for _, w := range drawn { // before an edge names them as owners
		g.thread(w, color)
	}
	for _, w := range drawn {
		from := g.thread(w, color)
		if w.Resource != (waits.Resource{}) {
			r := g.resource(w.Resource)
			g.edge(from, r, string(w.Evidence), color, w.Confidence)
			from = r
		}
		for i := range w.Owners[:min(len(w.Owners), maxDotWaits)] {
			o := &w.Owners[i]
			g.edge(from, g.owner(o, ""), string(o.Relation), color, w.Confidence)
		}
	}
	for _, w := range drawn {
		g.member(w.Task, g.thread(w, color), color)
	}
	g.left += len(list) - len(drawn)
}

// member draws the edge from a process, if it stands in the graph, to one of its threads.
func (g *graph) member(t *kcdata.Task, thread, color string) {
	if id, ok := g.threads[node{task: t}]; ok && t != nil {
		g.edge(fmt.Sprintf("t%d", id), thread, "thread", color, waits.Sure)
	}
}

// edge draws an edge once. What is only likely is dashed.
func (g *graph) edge(from, to, what, color string, c waits.Confidence) {
	if g.edges[[2]string{from, to}] {
		return
	}
	g.edges[[2]string{from, to}] = true
	style := ""
	if c != waits.Sure {
		style = ", style=dashed"
	}
	g.line("%s -> %s [label=%s%s%s];", from, to, label(what), style, colored(color))
}

func colored(color string) string {
	if color == "" {
		return ""
	}
	return ", color=" + color
}

// thread draws the thread of a wait once and gives its name in the graph.
func (g *graph) thread(w *waits.Wait, color string) string {
	return g.box(node{thread: w.Thread}, color, verdict.Thread(w.Task, w.Thread), g.words.Thing(w)+account.Age(w.Age))
}

// owner draws an owner once.
func (g *graph) owner(o *waits.Owner, color string) string {
	return g.box(nodeOf(o), color, verdict.Owner(o))
}

func (g *graph) box(n node, color string, lines ...string) string {
	if id, ok := g.threads[n]; ok {
		return fmt.Sprintf("t%d", id)
	}
	id := len(g.threads)
	g.threads[n] = id
	g.line("t%d [label=%s%s];", id, label(lines...), colored(color))
	return fmt.Sprintf("t%d", id)
}

func (g *graph) resource(r waits.Resource) string {
	if id, ok := g.resources[r]; ok {
		return fmt.Sprintf("r%d", id)
	}
	id := len(g.resources)
	g.resources[r] = id
	g.line("r%d [shape=ellipse, label=%s];", id, label(g.words.Resource(r)))
	return fmt.Sprintf("r%d", id)
}
