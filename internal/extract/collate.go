package extract

import (
	"fmt"
	"io"
	"math"
	"slices"

	"stackshot/internal/capture"
	"stackshot/internal/clock"
	"stackshot/internal/collate"
	"stackshot/internal/host"
	"stackshot/internal/panicregion"
	"stackshot/kcdata"
)

// Options of Collate.
type Options struct {
	Version  string   // of this program
	Warnings []string // about the dump, for the file

	Own    func() []kcdata.Warning // the caller's own, asked for when the end of the file is made; may be nil
	Beside *Region                 // for a live capture: Found.Describes; nil: none
}

// Result is what was made of a region.
type Result struct {
	*collate.Summary
	Panic   *kcdata.LinuxPanic // nil: of a live capture
	At      clock.Moment       // when it was taken
	Host    string
	Missing []string // what the file lacks, in sentences; none: it is whole
}

// Prepared is a region whose records have been looked through, before anything is written.
type Prepared struct {
	r     *Region
	d     *panicregion.Description
	split *splitter
	raw   *capture.Raw
	host  *host.Host
	opt   Options
	live  bool   // of a capture that held the machine (live.go)
	mem   []byte // of the task that is being read
}

// Collate writes the file of a region.
func Collate(out io.Writer, r *Region, o Options) (*Result, error) {
	p, err := Prepare(r, o)
	if err != nil {
		return nil, err
	}
	return p.Write(out)
}

// Prepare looks through a region's records. An error says why no file can be made of it.
func Prepare(r *Region, o Options) (*Prepared, error) {
	if r.Err != nil {
		return nil, r.Err
	}
	if r.Static.Kind != panicregion.KindPanic {
		return prepareLive(r, o)
	}
	d, err := r.Description()
	p := &Prepared{r: r, d: d, opt: o}
	if err != nil { // the records stand for themselves: threads without names are better than nothing
		r.Flaws = append(r.Flaws, err.Error())
		p.d = &panicregion.Description{PageSize: pageSize, BootID: BootName(r.Static.BootID), KernelBuild: r.Static.BuildID, FirstNS: true,
			Arch: archName(r.Static.Arch), KallsymsWhy: err.Error(), Tool: "stackshot"}
	} else if p.d.BootID == "" {
		p.d.BootID = BootName(r.Static.BootID)
	}
	records, _ := r.Static.Section(panicregion.SectionRecords)
	p.host = host.FromRegion(p.d)
	p.d.Symbols = ""
	p.split = split(r, records.Off, r.Walk.Bytes)
	if len(p.split.spans) == 0 {
		return nil, fmt.Errorf("%w: no task can be read", panicregion.ErrDamaged)
	}
	p.makeRaw(records)
	return p, nil
}

// archName is uname's word for an ELF machine.
func archName(machine uint32) string {
	return map[uint32]string{62: "x86_64", 183: "aarch64"}[machine]
}

// At is when the region was taken.
func (p *Prepared) At() clock.Moment { return p.raw.At }

// Hostname is the machine's.
func (p *Prepared) Hostname() string { return p.host.Hostname }

func (p *Prepared) makeRaw(room panicregion.Section) {
	w := p.r.Walk
	c := &capture.Raw{
		Engine: capture.Panic, Isolation: capture.None, WaitSources: p.d.WaitSources, FileSources: p.d.FileSources, WholeCensus: w.Outcome == panicregion.Whole,
		At:   clock.Moment{Monotonic: w.Began, Boottime: w.BeganBoot, Realtime: p.d.BootEpochNs + w.BeganBoot},
		Hook: &capture.Hook{Thread: uint64(w.Tid), Functions: p.d.Hooks, Caller: w.Caller},
	}
	if w.Hook == panicregion.HookSysrq {
		c.Engine = capture.Sysrq
	}
	if w.Tid == 0 {
		c.Hook.Thread = kcdata.IdleThreadID(w.CPU)
	}
	c.Wants = capture.Wants{Redact: p.d.Redact}
	c.Capture = kcdata.LinuxCapture{StopNs: w.Began, Tries: 1, BufferSize: room.Len, BufferUsed: w.Bytes}
	if w.Ended > w.Began {
		c.Capture.ElapsedNs = w.Ended - w.Began
	}
	p.raw = c
	p.cpus()
	for i, one := range p.split.spans {
		part := capture.Part{Threads: one.threads, Spans: []capture.Span{{Off: room.Off + one.off, Len: one.len}}}
		if one.open != nil {
			part.Pieces = [][]byte{one.ends()}
		}
		c.Recorded = append(c.Recorded, part)
		it := &c.Recorded[i].Item
		it.Index, it.Tgid, it.Count = uint32(i), one.tgid, one.threads
		c.SeenThreads += int(one.threads)
	}
	c.SeenTasks = len(c.Recorded)
}

// cpus are those that the description has, and the one that the walk ran on.
func (p *Prepared) cpus() {
	w := p.r.Walk
	for _, one := range p.d.CPUs[:min(len(p.d.CPUs), maxCPUs)] {
		p.raw.CPUs = append(p.raw.CPUs, kcdata.LinuxCPU{CPU: one.CPU, Kind: one.Kind, Cluster: one.Cluster})
	}
	at := slices.IndexFunc(p.raw.CPUs, func(c kcdata.LinuxCPU) bool { return c.CPU == w.CPU })
	if at < 0 {
		at = len(p.raw.CPUs)
		p.raw.CPUs = append(p.raw.CPUs, kcdata.LinuxCPU{CPU: w.CPU})
	}
	one := &p.raw.CPUs[at]
	one.Flags |= kcdata.CPUWorked | kcdata.CPUMain | kcdata.CPURanKnown
	one.RanTid, one.RanTgid, one.Tasks, one.Threads, one.Bytes = w.Tid, w.Tgid, w.Tasks, w.Threads, w.Bytes
	if w.Tid == 0 {
		one.Flags |= kcdata.CPUIdle
	}
}

const maxCPUs = 1 << 14

// load gives the bytes of a task. They are good until the next call.
func (p *Prepared) load(parts []capture.Part) (out [][]byte, err error) {
	room := uint64(0)
	for _, part := range parts {
		for _, s := range part.Spans {
			room += s.Len
		}
	}
	if uint64(cap(p.mem)) < room {
		p.mem = nil // so that two are not there at once
		p.mem = make([]byte, room)
	}
	mem := p.mem[:room]
	for _, part := range parts {
		for _, s := range part.Spans {
			b := mem[:s.Len]
			mem = mem[s.Len:]
			if _, err := p.r.ReadAt(b, int64(s.Off)); err != nil {
				return nil, err
			}
			if p.r.lostIn(s.Off, s.Len) {
				return nil, fmt.Errorf("%w: a page of its records is lost", panicregion.ErrDamaged)
			}
			out = append(out, b)
		}
		out = append(out, part.Pieces...)
	}
	return out, nil
}

// Write writes the file. An error comes from out.
func (p *Prepared) Write(out io.Writer) (*Result, error) {
	c := p.raw
	k := &collate.Collator{Host: p.host, Version: p.opt.Version, KeepUserSide: true, Dead: true, Load: p.load, Surveyed: p.surveyed, Warnings: p.opt.Own}
	sum, err := k.Write(out, c)
	if err != nil {
		return nil, err
	}
	return &Result{Summary: sum, Panic: c.Panic, At: c.At, Host: p.host.Hostname, Missing: p.missing(sum)}, nil
}

// surveyed is called when all tasks have been read once: now is known which pages the dump has.
func (p *Prepared) surveyed() {
	for _, text := range p.opt.Warnings {
		p.raw.Warn("dump", text)
	}
	for _, text := range p.r.Flaws {
		p.raw.Warn("region_damaged", text)
	}
	if p.live {
		p.warnOfPages()
	} else {
		p.raw.Panic = p.record()
		p.warnOfRecords()
	}
	if p.host.Kallsyms == nil {
		p.raw.Warn("no_symbols", "kernel functions have no names: "+p.host.KallsymsWhy)
	} else if h := p.raw.Hook; h != nil && !h.Cut {
		p.raw.Warn("hook_not_cut", "the stack of the thread in the hook is left whole, or is not there: no frame of the hooked function was found in it")
	}
}

// warnOfRecords says what is wrong with the records of a walk.
func (p *Prepared) warnOfRecords() {
	for _, text := range p.split.flaws {
		p.raw.Warn("region_damaged", text)
	}
	if n := len(p.split.spans); n > 0 && p.split.spans[n-1].open != nil {
		p.raw.Warn("task_open", fmt.Sprintf("task %d was being recorded when the walk ended: threads of it may be missing", p.split.spans[n-1].tgid))
	}
}

// record is the file's record of the walk.
func (p *Prepared) record() *kcdata.LinuxPanic {
	r, w := p.r, p.r.Walk
	x := &kcdata.LinuxPanic{
		Cause: w.Hook, Outcome: w.Outcome, Key: w.Key, CPU: w.CPU, Tid: w.Tid, Tgid: w.Tgid, Tasks: w.Tasks, Threads: w.Threads, Idle: w.Idle, Live: w.Live,
		PagesAbsent: uint32(min(r.gone.n, math.MaxInt32)), PagesLost: uint32(min(r.lost.n, math.MaxInt32)),
		BeganNs: w.Began, EndedNs: w.Ended, Bytes: w.Bytes, Room: p.raw.Capture.BufferSize, Nested: w.Nested, Lost: w.Lost,
		Region: r.Static.Region, Generation: r.Static.Generation,
	}
	flag := func(on bool, bit uint32) {
		if on {
			x.Flags |= bit
		}
	}
	flag(w.Level&1 != 0, kcdata.PanicPreemptOff)
	flag(w.Level&2 != 0, kcdata.PanicIRQOff)
	flag(w.Checked != 0, kcdata.PanicByKey)
	flag(p.raw.Hook.Cut, kcdata.PanicStackCut)
	flag(w.Torn(), kcdata.PanicTorn)
	flag(r.image == nil, kcdata.PanicFromDump)
	copy(x.Comm[:len(x.Comm)-1], w.Comm)
	copy(x.Hook[:len(x.Hook)-1], hookName(w.Hook, p.d.Hooks))
	if !p.d.Redact {
		copy(x.Message[:len(x.Message)-1], w.Message())
	}
	return x
}

// hookName is the function that is hooked for a cause.
func hookName(cause uint32, hooks []string) string {
	names := map[uint32][]string{
		panicregion.HookSysrq: {"__handle_sysrq"}, panicregion.HookPanic: {"vpanic", "panic"}, panicregion.HookCrash: {"crash_kexec", "__crash_kexec"},
	}[cause]
	for _, name := range names {
		if slices.Contains(hooks, name) {
			return name
		}
	}
	return ""
}

// missing says what the file lacks.
func (p *Prepared) missing(sum *collate.Summary) (out []string) {
	if p.live {
		return p.missingLive(sum)
	}
	w := p.r.Walk
	switch w.Outcome {
	case panicregion.InProgress:
		out = append(out, fmt.Sprintf("the walk did not end: it had recorded %d threads", w.Threads))
	case panicregion.NoRoom:
		out = append(out, fmt.Sprintf("the memory for the records was full after %d threads", w.Threads))
	case panicregion.OutOfTime:
		out = append(out, fmt.Sprintf("time was up after %d threads", w.Threads))
	}
	if n := kcdata.LeftOutTasks(sum.LeftOut); n > 0 {
		out = append(out, fmt.Sprintf("%d tasks are damaged and left out", n))
	}
	if n := len(p.split.flaws); n > 0 {
		out = append(out, fmt.Sprintf("%d bytes of records are damaged, or too many, and left out", p.split.skipped))
	}
	if sum.Threads < int(w.Threads) && w.Outcome != panicregion.InProgress {
		out = append(out, fmt.Sprintf("%d of %d recorded threads are in the file", sum.Threads, w.Threads))
	}
	if n := p.r.lost.n; n > 0 {
		out = append(out, fmt.Sprintf("%d pages of the region are lost", n))
	}
	return append(out, p.r.Flaws...)
}
