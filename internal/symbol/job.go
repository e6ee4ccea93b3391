package symbol

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"

	"stackshot/internal/elffile"
	"stackshot/internal/foreign"
	"stackshot/internal/image"
	"stackshot/kcdata"
)

// outcome is what one job gave. The names of a job that failed may be there in
// part.
type outcome struct {
	job   *job
	names names // of the job's offs
	errs  []error
}

func (o *outcome) note(err error) {
	if err != nil {
		o.errs = append(o.errs, err)
	}
}

// run does one job. It shares nothing with its caller but the cache, so it may
// be left behind.
func (r *Resolver) run(ctx context.Context, j *job) outcome {
	o := outcome{job: j}
	var err error
	switch j.kind {
	case jobPerf:
		o.names, err = r.perfNames(j)
	case jobVDSO:
		o.names, err = r.vdsoNames(j)
	default:
		err = r.nameFile(ctx, j, &o)
	}
	o.note(err)
	return o
}

// nameFile names places in an ordinary file.
func (r *Resolver) nameFile(ctx context.Context, j *job, o *outcome) error {
	k, missing := r.known(j)
	if err := r.cache.Hanging(j.key, whatNames); err != nil {
		if j.key.Build == "" { // then nobody can see whether it is still the same
			return err
		}
		if o.names = k.names; len(missing) == 0 {
			return nil
		}
		return err
	}
	if k.main != nil && j.key.Build == "" && !r.unchanged(k.main) {
		r.cache.Drop(j.key, whatNames)
		k, missing = r.known(j)
	}
	o.names = k.names
	if len(missing) == 0 {
		return nil
	}
	fresh, err := r.learn(ctx, j, &k, missing, o)
	if err != nil {
		return err
	}
	maps.Copy(o.names, fresh)
	if ctx.Err() == nil { // else something may be missing for want of time
		k.names = maps.Clone(o.names)
		r.keep(j, k)
	}
	return nil
}

// unchanged reports whether a file without a build-id is still as it was.
func (r *Resolver) unchanged(f *fileRead) bool {
	if f.place.Alive != nil && f.place.Alive() != nil {
		return false
	}
	st, err := r.files.Stat(f.place.Where)
	return err == nil && st == f.stat
}

// learn finds the file and its debug file, and names places in them.
func (r *Resolver) learn(ctx context.Context, j *job, k *known, offs []uint64, o *outcome) (names, error) {
	main, err := r.find(ctx, j, k, offs)
	var hits map[uint64]hit
	var sections []elffile.Packed
	if main != nil {
		k.main, k.stat, hits, sections = main.file, main.file.stat, main.hits, main.sections
		o.note(main.problem)
		for _, problem := range main.file.problems {
			o.note(problem)
		}
	}
	if main == nil || !main.file.full || r.o.Lines && !hasDebug(main.file.layout) {
		debug := r.learnDebug(ctx, j, k, hits, o)
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
	if r.wantsLines(k) && len(sections) > 0 {
		if k.lines, err = newLineTable(ctx, sections); err != nil {
			o.note(fmt.Errorf("lines: %w", err))
			k.lines, k.noLines = nil, true
		}
	}
	return r.compose(ctx, k, hits, o), nil
}

// wantsLines says whether the DWARF of the file has still to be read.
func (r *Resolver) wantsLines(k *known) bool { return r.o.Lines && k.lines == nil && !k.noLines }

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
func (r *Resolver) learnDebug(ctx context.Context, j *job, k *known, hits map[uint64]hit, o *outcome) *loaded {
	if k.sought && k.debug == nil {
		return nil
	}
	s := &j.sources[0]
	rd := reading{sections: r.wantsLines(k), names: j.names}
	rd.ask = func(f *File, kept *texts) map[uint64]hit { return f.rebased(&s.Mapping, j.offs, kept) }
	q := debugQuery{build: []byte(j.key.Build), roots: []string{""}}
	if k.main != nil {
		rd.ask = func(f *File, kept *texts) map[uint64]hit { return f.again(hits, kept) }
		q.build, q.link, q.dir = k.main.build, k.main.link, path.Dir(s.Mapping.Path)
	}
	if s.Process.Alive() == nil {
		q.roots = []string{s.Process.Path("root"), ""}
	}
	if old := k.debug; old != nil {
		rd := rd
		rd.Place, rd.old = old.place, old
		rd.check = func(f *File) error { return sameBuild(f, old.contents) }
		if got, err := r.read(rd); err == nil {
			return got
		}
	}
	got, err := r.debugFile(ctx, q, rd)
	o.note(err)
	k.sought = true
	if got != nil {
		k.debug = got.file
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
func (f *File) rebased(m *kcdata.Mapping, offs []uint64, kept *texts) map[uint64]hit {
	out := make(map[uint64]hit, len(offs))
	for _, off := range offs {
		vaddr, err := f.rebase(m.Start, m.End, off-m.Offset+m.Start)
		h := hit{vaddr: vaddr, mapped: err == nil}
		if h.mapped {
			h.nameBy(f, kept)
		}
		out[off] = h
	}
	return out
}

// compose makes names of hits.
func (r *Resolver) compose(ctx context.Context, k *known, hits map[uint64]hit, o *outcome) names {
	out := make(names, len(hits))
	var problem error
	for off, h := range hits {
		var places []Place
		if r.o.Lines && k.lines != nil && h.mapped {
			var err error
			if places, err = k.lines.Places(ctx, h.vaddr); err != nil {
				problem = err
			}
		}
		out[off] = functionsOf(h, places, r.o.Lines)
	}
	if problem != nil {
		o.note(fmt.Errorf("lines: %w", problem))
	}
	return out
}

// functionsOf gives the functions at a hit, innermost first: those that places says
// are inlined there, and the one that the symbols name.
func functionsOf(h hit, places []Place, lines bool) (out []kcdata.UserFunction) {
	outer := kcdata.UserFunction{Name: h.fn.Name, Offset: h.vaddr - h.fn.Start}
	if n := len(places); n > 0 {
		for _, p := range places[:n-1] {
			out = append(out, kcdata.UserFunction{Name: p.Function, File: p.File, Line: p.Line, Offset: h.vaddr - p.Start})
		}
		outer.File, outer.Line = places[n-1].File, places[n-1].Line
	} else if lines {
		outer.File, outer.Line = h.file, h.line
	}
	if h.ok {
		out = append(out, outer)
	}
	return out
}

// vdsoNames names places in the kernel's own code for user mode, which is in
// this process too.
func (r *Resolver) vdsoNames(j *job) (names, error) {
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
	out, kept := names{}, newTexts(maxTexts, j.names)
	for off, h := range f.hits(j.offs, kept, false) {
		out[off] = functionsOf(h, nil, false)
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
