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

// stackText writes a group's stack, kernel frames above user frames. If the report has
// shown the same stack before, a reference stands for it: forty processes that wait for the
// same server fill one screen, not twenty.
func (v *view) stackText(l *lines, g *group) {
	kernel := "k" + string(v.kernelKey(nil, g.kernel))
	whole := kernel + "u" + string(userKey(nil, g.user)) + strings.Join(g.notes, "\x00")
	if first, ok := v.printed[whole]; ok {
		l.Line("        same stack as tid %d above", first)
		return
	}
	tid := g.threads[0].ID
	if len(g.kernel)+len(g.user) >= minRepeat {
		v.printed[whole] = tid
	}
	if first, ok := v.printed[kernel]; ok {
		l.Line("        same kernel stack as tid %d above", first)
	} else {
		for i, a := range g.kernel {
			l.Line("        %s", v.frame(a, g.mixed[i]))
		}
		if len(g.kernel) >= minRepeat {
			v.printed[kernel] = tid
		}
	}
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
