package symbol

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"

	"stackshot/internal/elffile"
	"stackshot/internal/foreign"
	"stackshot/internal/image"
)

// outcome is what one job gave. The names of a job that failed may be there in
// part.
type outcome struct {
	job   *job
	names map[uint64]*named // by the job's offs
	errs  []error
}

func (o *outcome) note(err error) {
	if err != nil {
		o.errs = append(o.errs, err)
	}
}

// run does one job. It shares nothing with its caller but the cache, so it may
// be left behind.
func (r *Resolver) run(c *call, j *job) (o outcome) {
	o.job = j
	switch j.kind {
	case jobPerf:
		names, err := r.perfNames(j)
		o.names = names
		o.note(err)
	case jobVDSO:
		names, err := r.vdsoNames(j)
		o.names = names
		o.note(err)
	default:
		r.nameFile(c, j, &o)
	}
	return o
}

// nameFile names places in an ordinary file.
func (r *Resolver) nameFile(c *call, j *job, o *outcome) {
	k, missing := r.known(j)
	if err := r.cache.Hanging(j.key, whatNames); err != nil {
		if j.key.Build != "" { // else it cannot be seen whether it is still the same
			o.names = k.names
		}
		if len(missing) > 0 || o.names == nil {
			o.note(err)
		}
		return
	}
	if k.main != nil && j.key.Build == "" && !r.unchanged(&k) {
		r.cache.Drop(j.key, whatNames)
		k, missing = r.known(j)
	}
	o.names = k.names
	if len(missing) == 0 {
		return
	}
	fresh, err := r.learn(c, j, &k, missing, o)
	if err != nil {
		o.note(err)
		return
	}
	if o.names == nil {
		o.names = fresh
	}
	maps.Copy(o.names, fresh)
	if c.ctx.Err() == nil { // else something may be missing for want of time
		k.names = maps.Clone(o.names)
		r.keep(j, k)
	}
}

// unchanged reports whether the file, which has no build-id, is still as it was.
func (r *Resolver) unchanged(k *known) bool {
	if k.place.Alive != nil && k.place.Alive() != nil {
		return false
	}
	w := k.place.Where
	w.Check = nil
	st, err := r.files.Stat(w)
	return err == nil && st == k.stat
}

// learn finds the file and its debug file, and names places in them.
func (r *Resolver) learn(c *call, j *job, k *known, offs []uint64, o *outcome) (map[uint64]*named, error) {
	main, p, err := r.find(c, j, k, offs)
	var hits map[uint64]hit
	var sections []elffile.Packed
	if main != nil {
		k.main, k.stat, k.place = main.file, main.stat, p
		k.place.Check = nil
		hits, sections = main.hits, main.sections
		o.note(main.problem)
		for _, problem := range main.file.problems {
			o.note(problem)
		}
	}
	if main == nil || !main.file.full || c.lines && !hasDebug(main.file.layout) {
		debug := r.learnDebug(c, j, k, hits, o)
		if debug == nil && main == nil {
			return nil, err
		}
		if debug != nil {
			hits = better(hits, debug.hits)
			if len(sections) == 0 {
				sections = debug.sections
			}
			o.note(debug.problem)
		}
	}
	if c.lines {
		r.learnLines(c, k, sections, o)
	}
	return r.compose(c, k, hits, o), nil
}

// better takes the debug file's word where it has one: it has all symbols.
func better(main, debug map[uint64]hit) map[uint64]hit {
	out := make(map[uint64]hit, len(debug))
	maps.Copy(out, main)
	for off, h := range debug {
		if m, ok := main[off]; h.ok || !ok {
			h.file, h.line = m.file, m.line
			out[off] = h
		}
	}
	return out
}

// learnDebug asks the split debug file, if there is one.
func (r *Resolver) learnDebug(c *call, j *job, k *known, hits map[uint64]hit, o *outcome) *loaded {
	if k.sought && k.debug == nil {
		return nil
	}
	s := j.sources[0]
	ask := func(f *File, kept *texts) map[uint64]hit { return f.rebased(s, j.offs, kept) }
	q := debugQuery{build: []byte(j.key.Build), roots: []string{""}}
	if k.main != nil {
		ask = func(f *File, kept *texts) map[uint64]hit { return f.again(hits, kept) }
		q.build, q.link, q.dir = k.main.build, k.main.link, path.Dir(s.Mapping.Path)
	}
	if s.Process.Alive() == nil {
		q.roots = []string{s.Process.Path("root"), ""}
	}
	if k.debug != nil {
		got, err := r.read(reading{
			Place: image.Place{Where: k.dwhere}, old: k.debug, oldStat: k.dstat, ask: ask,
			check:    func(f *File) error { return sameBuild(f, k.debug) },
			sections: c.lines && k.lines == nil && !k.noLines,
		})
		if err == nil {
			return got
		}
	}
	got, where, err := r.debugFile(c, q, ask)
	o.note(err)
	k.sought = true
	if got != nil {
		k.debug, k.dstat, k.dwhere = got.file, got.stat, where
	}
	return got
}

func sameBuild(f *File, old *contents) error {
	if f.contents == old || len(f.build) > 0 && bytes.Equal(f.build, old.build) {
		return nil
	}
	return fmt.Errorf("%w: the debug file was changed", foreign.ErrOther)
}

// again looks up in a debug file what the file itself translated.
func (f *File) again(hits map[uint64]hit, kept *texts) map[uint64]hit {
	out := make(map[uint64]hit, len(hits))
	for off, h := range hits {
		if h.mapped {
			h.nameBy(f, kept)
			out[off] = h
		}
	}
	return out
}

// rebased looks offsets up in a debug file without the file itself.
func (f *File) rebased(s source, offs []uint64, kept *texts) map[uint64]hit {
	out := make(map[uint64]hit, len(offs))
	for _, off := range offs {
		m := &s.Mapping
		vaddr, err := f.rebase(m.Start, m.End, off-m.Offset+m.Start)
		h := hit{vaddr: vaddr, mapped: err == nil}
		if h.mapped {
			h.nameBy(f, kept)
		}
		out[off] = h
	}
	return out
}

func (r *Resolver) learnLines(c *call, k *known, sections []elffile.Packed, o *outcome) {
	if k.lines != nil || k.noLines || len(sections) == 0 {
		return
	}
	var err error
	k.lines, err = newLineTable(c.ctx, sections)
	if err != nil {
		o.note(fmt.Errorf("lines: %w", err))
		k.lines, k.noLines = nil, true
	}
}

// compose makes names of hits.
func (r *Resolver) compose(c *call, k *known, hits map[uint64]hit, o *outcome) map[uint64]*named {
	out := make(map[uint64]*named, len(hits))
	var problem error
	for off, h := range hits {
		n := &named{}
		out[off] = n
		var places []Place
		if c.lines && k.lines != nil && h.mapped {
			var err error
			if places, err = k.lines.Places(c.ctx, h.vaddr); err != nil {
				problem = err
			}
		}
		n.funcs = functionsOf(h, places, c.lines)
	}
	if problem != nil {
		o.note(fmt.Errorf("lines: %w", problem))
	}
	return out
}

func functionsOf(h hit, places []Place, lines bool) (out []namedFunc) {
	outer := namedFunc{name: h.fn.Name, delta: h.vaddr - h.fn.Start}
	if n := len(places); n > 0 {
		for _, p := range places[:n-1] {
			out = append(out, namedFunc{name: p.Function, file: p.File, line: p.Line, delta: h.vaddr - p.Start})
		}
		outer.file, outer.line = places[n-1].File, places[n-1].Line
	}
	if lines && outer.file == "" && len(places) == 0 {
		outer.file, outer.line = h.file, h.line
	}
	if h.ok {
		out = append(out, outer)
	}
	return out
}

// vdsoNames names places in the kernel's own code for user mode, which is in
// this process too.
func (r *Resolver) vdsoNames(j *job) (map[uint64]*named, error) {
	if !r.o.Local && j.key.Build == "" {
		return nil, fmt.Errorf("%w: the vDSO of another machine, without a build-id", foreign.ErrOther)
	}
	b, err := image.VDSO(&j.sources[0].Mapping)
	if err != nil {
		return nil, err
	}
	f, err := Open(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return nil, err
	}
	out, kept := map[uint64]*named{}, &texts{left: maxTexts}
	for off, h := range f.hits(j.offs, kept) {
		out[off] = &named{functionsOf(h, nil, false)}
	}
	return out, kept.err()
}

// reason is err for people: a file that is not there is said so plainly.
func reason(err error) string {
	if errors.Is(err, fs.ErrNotExist) {
		return "the file is not there"
	}
	return err.Error()
}
