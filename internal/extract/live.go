package extract

import (
	"errors"
	"fmt"

	"stackshot/internal/clock"
	"stackshot/internal/collate"
	"stackshot/internal/host"
	"stackshot/internal/panicregion"
	"stackshot/internal/show"
	"stackshot/internal/trapmemory"
	"stackshot/kcdata"
)

// prepareLive is Prepare for the memory of a capture that held the machine when it panicked
// (panicregion.KindLive). It says nothing of the machine itself: that is o.Beside's to say.
func prepareLive(r *Region, o Options) (*Prepared, error) {
	c, err := trapmemory.Live(r.Static, r)
	if err != nil {
		return nil, err
	}
	if len(c.Recorded) == 0 {
		return nil, fmt.Errorf("nothing is recorded: of %s seen none had been recorded when the kernel panicked", show.Count(c.SeenTasks, "task"))
	}
	p := &Prepared{r: r, raw: c, opt: o, live: true, d: &panicregion.Description{
		PageSize: pageSize, BootID: BootName(r.Static.BootID), FirstNS: true, Arch: archName(r.Static.Arch), Tool: "stackshot",
		KallsymsWhy: "the dump has no description of this machine",
	}}
	if o.Beside != nil && o.Beside.Static != nil && o.Beside.Static.BootID == r.Static.BootID {
		d, err := o.Beside.Description()
		if err != nil {
			r.Flaws = append(r.Flaws, err.Error())
		} else {
			p.d = d
		}
	}
	p.host = host.FromRegion(p.d)
	p.d.Symbols = ""
	c.WaitSources, c.FileSources = p.d.WaitSources, p.d.FileSources
	c.Wants.Redact = p.d.Redact
	c.At = clock.Moment{Monotonic: c.Capture.StopNs}
	if w := o.walk(); w != nil && w.BeganBoot > w.Began { // both clocks, at one moment
		c.At.Boottime = c.Capture.StopNs + w.BeganBoot - w.Began
		c.At.Realtime = p.d.BootEpochNs + c.At.Boottime
	}
	return p, nil
}

// walk is that of the region beside; nil: there is none, or it did not run.
func (o *Options) walk() *panicregion.Walk {
	if o.Beside == nil || o.Beside.Walk == nil || !o.Beside.Walk.Ran() {
		return nil
	}
	return o.Beside.Walk
}

// missingLive is missing for a live capture.
func (p *Prepared) missingLive(sum *collate.Summary) (out []string) {
	if n := kcdata.LeftOutTasks(sum.LeftOut); n > 0 {
		out = append(out, fmt.Sprintf("of %s not all threads were recorded when the kernel panicked, or could be read", show.Count(n, "task")))
	}
	if n := p.r.lost.n; n > 0 {
		out = append(out, fmt.Sprintf("%s of its memory could not be read", show.Count(n, "page")))
	}
	return out
}

// warnOfPages says which pages of a live capture are not there: it has no record of a panic to say so.
func (p *Prepared) warnOfPages() {
	if n := p.r.lost.n; n > 0 {
		p.raw.Warn("region_damaged", fmt.Sprintf("%s of this capture's memory could not be read: tasks that lie there are left out", show.Count(n, "page")))
	}
	if n := p.r.gone.n; n > 0 {
		p.raw.Warn("region_damaged", fmt.Sprintf("%s of this capture's memory are not in the dump and count as zeros", show.Count(n, "page")))
	}
}

// Beside gives the regions of a dump but one: the captures of the same boot that held the machine when it
// panicked, and what is left.
func (f *Found) Beside(r *Region) (live, others []*Region) {
	for _, o := range f.Regions {
		switch {
		case o == r:
		case o.Err == nil && o.Static.Kind == panicregion.KindLive && o.Static.BootID == r.Static.BootID:
			live = append(live, o)
		default:
			others = append(others, o)
		}
	}
	return live, others
}

// Describes gives the region of the same boot that describes the machine, for a live capture, which does not
// itself; nil: there is none.
func (f *Found) Describes(r *Region) (best *Region) {
	if r.Static.Kind != panicregion.KindLive {
		return nil
	}
	for _, o := range f.Regions { // the best is first
		if o.Static != nil && o.Static.Kind == panicregion.KindPanic && o.Static.BootID == r.Static.BootID && len(o.Static.Sections) > 0 && !errors.Is(o.Err, ErrForeign) {
			return o
		}
	}
	return nil
}
