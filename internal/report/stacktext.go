package report

import (
	"fmt"
	"slices"
	"strings"

	"stackshot/internal/show"
)

// minRepeat is the least number of frames of a stack that others refer to.
const minRepeat = 3

// Of a user stack of more than maxUserLines lines both ends are shown. JSON and
// the other formats have all of it.
const (
	maxUserLines = 128
	innerLines   = 96 // shown at the leaf
	outerLines   = 24 // shown at the outermost frame
)

// printed is where the text shows a stack: under which thread, and behind how many lines.
type printed struct {
	tid  uint64
	line int
}

// near is how many lines above a stack may stand to which a reference leads: a reader finds it on
// the same screen of 24 lines.
const near = 18

// above is the thread under which the text shows a stack near the end of l.
func (v *view) above(l *lines, key string) (printed, bool) {
	at, found := v.printed[key]
	return at, found && l.n-at.line <= near
}

// stackText writes a group's stack, kernel frames above user frames. If the same stack stands
// on the same screen, a reference stands for it.
func (v *view) stackText(l *lines, g *group) {
	kernel := "k" + string(v.kernelKey(nil, g.kernel))
	whole := kernel + "u" + string(userKey(nil, g.user)) + strings.Join(g.notes, "\x00")
	if first, ok := v.above(l, whole); ok {
		l.Line("        same stack as tid %d above", first.tid)
		return
	}
	here := printed{g.threads[0].ID, l.n}
	remember := func(key string, frames int) {
		if frames >= minRepeat && !g.threads[0].IsIdle() { // an idle thread has no tid
			v.printed[key] = here
		}
	}
	if first, ok := v.above(l, kernel); ok {
		l.Line("        same kernel stack as tid %d above", first.tid)
		here.line = first.line // whoever refers to this stack needs both
	} else {
		for i, a := range g.kernel {
			l.Line("        %s", v.frame(a, g.mixed[i]))
		}
		remember(kernel, len(g.kernel))
	}
	remember(whole, len(g.kernel)+len(g.user))
	userText(l, g.user)
	for _, s := range g.notes {
		if !v.allChains || s != "user stack "+chainText { // the header says it
			l.Line("        (%s)", s)
		}
	}
}

// userText writes a user stack; it may leave out the middle.
func userText(l *lines, frames []*userFrame) {
	text := foldCycles(frames)
	if hidden := len(text) - innerLines - outerLines; len(text) > maxUserLines {
		gap := func() string { return fmt.Sprintf("... %s, in the JSON report", show.Count(hidden, "more line")) }
		text = slices.Replace(text, innerLines, innerLines+hidden, gap)
	}
	for _, line := range text {
		l.Line("        %s", line())
	}
}

// A recursion of at most maxCycle functions is folded where that saves at least
// minSaved lines.
const (
	maxCycle = 4
	minSaved = 8
)

// foldCycles returns a line for each frame. The frames of a recursion are listed once, and
// a line says how often they are repeated. A text is made only when it is shown: most lines
// of a deep stack are not.
func foldCycles(frames []*userFrame) (text []func() string) {
	for len(frames) > 0 {
		period, times := cycle(frames)
		for _, f := range frames[:period] {
			text = append(text, f.text)
		}
		if times > 0 {
			text = append(text, func() string {
				return fmt.Sprintf("... and the last %s %d more times", show.Count(period, "frame"), times)
			})
		}
		frames = frames[period*(1+times):]
	}
	return text
}

// cycle returns how many frames at the beginning form a recursion, and how often they are
// repeated; 1 and 0 if folding would save too little.
func cycle(frames []*userFrame) (period, times int) {
	for period = 1; period <= maxCycle; period++ {
		n := period
		for n < len(frames) && frames[n].id == frames[n-period].id {
			n++
		}
		if times = n/period - 1; period*times >= minSaved {
			return period, times
		}
	}
	return 1, 0
}
