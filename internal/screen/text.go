package screen

import (
	"bufio"
	"io"
	"slices"

	"stackshot/internal/account"
	"stackshot/internal/alarm"
	"stackshot/internal/show"
	"stackshot/internal/waitgraph"
	"stackshot/kcdata"
)

// Text writes the screen. Errors: the writer's.
func Text(w io.Writer, s *kcdata.Snapshot, o Options) error {
	out := bufio.NewWriter(w)
	for _, l := range newView(s, o).screen() {
		text := l.text
		if o.Color {
			text = show.Paint(l.color, text)
		}
		out.WriteString(text)
		out.WriteByte('\n')
	}
	return out.Flush()
}

// Brief is the first thing that is wrong, or that nothing is, in one line without colours.
func Brief(s *kcdata.Snapshot, verdict *waitgraph.Verdict) string {
	v := newView(s, Options{Verdict: verdict})
	sections := v.sections()
	if len(v.suspects) > 0 {
		return alarm.All(s, nil)[0]
	}
	if text := v.nothing(sections); text != "" {
		return text
	}
	_, first := worst(sections)
	return first
}

// sections are those of the screen that have something to say, in its order.
func (v *view) sections() (out []section) {
	for _, x := range v.suspects { // the alarms name them
		v.mark(x.by.Thread)
	}
	all := v.hanging()
	for _, of := range []func() section{v.cpu, v.memory, v.disk, v.many} {
		all = append(all, of())
	}
	for _, s := range all {
		slices.SortStableFunc(s.entries, minorLast)
		if len(s.entries) > 0 {
			out = append(out, s)
		}
	}
	return out
}

// worst is the first of the entries that are not minor, and what it says; nil: there is none.
func worst(sections []section) (first *entry, text string) {
	for i := range sections {
		for k := range sections[i].entries {
			if e := &sections[i].entries[k]; !e.minor {
				return e, sections[i].brief(e)
			}
		}
	}
	return nil, ""
}

// screen are the lines of the screen, within the terminal.
func (v *view) screen() []line {
	sections := v.sections()
	p := page{width: v.o.Width, rows: v.o.Height, limited: v.o.Height > 0}
	p.header(v.machine(), alarm.All(v.s, v.o.Absent))
	lines := v.inLine()
	p.footer(v.lineWords(lines), v.atRest(lines), v.picture(), v.commands(sections))
	p.body(v.nothing(sections), sections)
	return p.lines()
}

// nothing says that nothing is wrong, and which sections are worth a look though; "" if something
// is wrong.
func (v *view) nothing(sections []section) string {
	if e, _ := worst(sections); e != nil {
		return ""
	}
	text := v.notStuck(sections)
	for i := range sections {
		sep := ", "
		if i == 0 {
			sep = "; worth a look: "
		}
		text += sep + sections[i].word()
	}
	return text
}

// notStuck says how much is known of that nothing is stuck.
func (v *view) notStuck(sections []section) string {
	isListed := func(s section) bool { return s.word() == "STUCK" || s.word() == "STOPPED" }
	switch {
	case len(v.suspects) > 0:
		return "nothing else is seen to be stuck"
	case slices.ContainsFunc(sections, isListed):
		return "nothing is known to be stuck for long"
	case len(v.threads) == 0:
		return "there is no thread to look at"
	case v.words.Blind() != "":
		return "nothing is known to be stuck: " + v.words.Blind()
	case v.o.Verdict.Waits != nil && !v.o.Verdict.Waits.OneInstant:
		return "nothing is stuck, as far as a picture can tell that is not of one instant"
	}
	if len(v.s.LeftOut)+len(account.CPUsWith(v.s, kcdata.CPUMissed)) > 0 {
		return "nothing is stuck in what the picture has"
	}
	return "nothing is stuck"
}
