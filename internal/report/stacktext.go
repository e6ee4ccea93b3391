package report

import (
	"fmt"
	"stackshot/internal/show"
	"strings"
)

// minRepeat is the shortest stack worth referring to.
const minRepeat = 3

// A user stack of more than maxUserLines is shown by both its ends. JSON and
// the other formats have all of it.
const (
	maxUserLines = 128
	innerLines   = 96
	outerLines   = 24
)

// stackText writes a group's stack, kernel frames above user frames. What stands
// above already is referred to: forty processes that wait for the same server
// fill one screen, not twenty.
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

func userText(l *lines, frames []*userFrame) {
	text := foldCycles(frames)
	for i := 0; i < len(text); i++ {
		if hidden := len(text) - innerLines - outerLines; i == innerLines && len(text) > maxUserLines {
			l.Line("        ... %s, in the JSON report", show.Count(hidden, "more line"))
			i += hidden
		}
		l.Line("        %s", text[i].text())
	}
}

// stackLine is a frame or, without one, what stands for many. Its text is made when
// it is shown: of a deep stack most are not.
type stackLine struct {
	frame *userFrame
	again string
}

func (s stackLine) text() string {
	if s.frame != nil {
		return s.frame.text()
	}
	return s.again
}

// A recursion of at most maxCycle functions is folded where that saves at least
// minSaved lines.
const (
	maxCycle = 4
	minSaved = 8
)

// foldCycles writes frames, a recursion once and how often it goes on.
func foldCycles(frames []*userFrame) []stackLine {
	var out []stackLine
	for len(frames) > 0 {
		period, times := cycle(frames)
		for _, f := range frames[:period] {
			out = append(out, stackLine{frame: f})
		}
		if times > 0 {
			out = append(out, stackLine{again: fmt.Sprintf("... and the last %s %d more times", show.Count(period, "frame"), times)})
		}
		frames = frames[period*(1+times):]
	}
	return out
}

// cycle returns how many frames begin a recursion, and how often they come
// again; one frame and 0 where it is not worth folding.
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
