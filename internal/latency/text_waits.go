package latency

import (
	"cmp"
	"fmt"

	"stackshot/internal/show"
)

func (p *page) waits(w *Waits, top int) {
	series := w.All(top)
	for i := range series {
		p.series(&series[i])
	}
	var but show.Parts
	but.If(w.lone() > 0, "%s alone of their boot or machine", show.Count(w.lone(), "file"))
	but.If(w.NoBoot > 0, "%s without a boot id", show.Count(w.NoBoot, "file"))
	but.If(w.Twice > 0, "%s of the same moment as another", show.Count(w.Twice, "file"))
	but.If(w.dropped > 0, "%s not followed, because there are too many", show.Count(w.dropped, "wait"))
	if len(but) > 0 {
		p.Line("")
		p.Words("", "not in a series: %s", but.Join("; "))
	}
}

func (p *page) series(s *Series) {
	p.heading("WHERE THEY WAIT: %s of %s, one boot, over %s", show.Count(s.Files, "file"), cmp.Or(s.Hostname, "unknown host"), show.Fine(s.SpanNs))
	p.table(true, rowsOf([]string{"stuck", "seen in", "threads", "new", "gone", "who, where"}, s.Places, func(x *Place) []string {
		who := cmp.Or(x.Command, "?") + " in " + cmp.Or(x.Place, "an unknown place")
		if x.Example != nil {
			who += ", e.g. tid " + fmt.Sprint(*x.Example.Tid)
		}
		return []string{
			show.Thousands(uint64(x.Stuck)), fmt.Sprintf("%.0f%%", 100*x.Share), show.Thousands(uint64(x.Threads)),
			show.Thousands(uint64(x.Appeared)), show.Thousands(uint64(x.Gone)), who,
		}
	}))
	p.more(s.PlaceCount-len(s.Places), "place")
	if s.Idle > 0 {
		p.Words("", "%s not listed", show.Count(s.Idle, "idle kernel thread"))
	}
	p.Words("", "stuck: in every file at this place with the same count of context switches, and not at rest; new, gone: not there in the first, in the last file")
}
