package symbol

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync/atomic"

	"stackshot/internal/elffile"
	"stackshot/internal/foreign"
	"stackshot/internal/image"
)

// loaded is what one reading of a file gave. It shares nothing with others.
type loaded struct {
	file     *fileRead
	hits     map[uint64]hit   // by offset in the file that was mapped
	sections []elffile.Packed // where they were wanted
	problem  error
}

// hit is what the symbols say of one place.
type hit struct {
	vaddr  uint64
	mapped bool // the place is in a segment
	fn     Function
	ok     bool
	file   string // by Go's own table
	line   uint32
}

// reading is one file to read: where it is, what it must be, what is known of it
// already, and what to ask it. It is constant once it has begun, because a helper that
// is late still looks at it.
type reading struct {
	image.Place
	old      *fileRead // of a reading before
	check    func(*File) error
	ask      func(*File, *texts) map[uint64]hit
	sections bool
	names    *room
}

// read does a reading on a helper thread.
func (r *Resolver) read(rd reading) (*loaded, error) {
	out := &loaded{file: &fileRead{place: rd.Place}}
	out.file.place.Check = nil
	check := rd.Check
	where := rd.Where
	where.Check = func(st foreign.Stat) error {
		out.file.stat = st
		if check != nil {
			return check(st)
		}
		return nil
	}
	_, err := r.files.LoadFrom(where, func(ra io.ReaderAt, size int64) (any, error) {
		if rd.Alive != nil {
			if err := rd.Alive(); err != nil {
				return nil, err
			}
		}
		in := elffile.NewReader(ra, size)
		in.Room = r.o.room()
		return nil, out.fill(rd, in)
	})
	if err != nil {
		return nil, err // out may still be written to
	}
	return out, nil
}

func (l *loaded) fill(rd reading, in elffile.Reader) error {
	var f *File
	if rd.old != nil && rd.old.stat == l.file.stat {
		f = &File{rd.old.contents, in}
	} else {
		var err error
		if f, err = open(in); err != nil {
			return err
		}
	}
	if err := rd.check(f); err != nil {
		return err
	}
	kept := newTexts(in.Room, rd.names)
	l.file.contents, l.hits = f.contents, rd.ask(f, kept)
	l.problem = kept.err()
	if rd.sections {
		sections, err := f.debugSections()
		l.sections, l.problem = sections, errors.Join(l.problem, err)
	}
	return nil
}

// hits looks places up that are offsets in the file; lines: with source lines.
func (f *File) hits(offs []uint64, kept *texts, lines bool) map[uint64]hit {
	out := make(map[uint64]hit, len(offs))
	for _, off := range offs {
		var h hit
		if h.vaddr, h.mapped = f.layout.Segments.Address(off, 0); h.mapped {
			h.nameBy(f, kept)
			if lines {
				h.file, h.line = f.SourceLine(h.vaddr)
				h.file = kept.keep(h.file)
			}
		}
		out[off] = h
	}
	return out
}

// nameBy asks f for the function.
func (h *hit) nameBy(f *File, kept *texts) {
	fn, ok := f.Function(h.vaddr)
	name := kept.keep(fn.Name)
	h.fn, h.ok = Function{Name: name, Start: fn.Start}, ok && name != ""
}

// maxTexts is how many bytes of names and source file names one reading keeps. A
// million addresses may lie in one function whose name is long.
const maxTexts = 64 << 20

// texts keeps each name once.
type texts struct {
	seen map[string]string
	most int
	left int
	all  *room // of all files together
	lost int   // texts for which there was no room
}

func newTexts(most uint64, all *room) *texts {
	n := int(min(maxTexts, most))
	return &texts{most: n, left: n, all: all}
}

// room is how many bytes are left for something that grows in several places at once; nil: no bound.
type room struct{ left atomic.Int64 }

// take reports whether n bytes were left.
func (r *room) take(n int) bool { return r == nil || r.left.Add(-int64(n)) >= 0 }

func (t *texts) keep(s string) string {
	if same, ok := t.seen[s]; ok || s == "" {
		return same
	}
	if len(s) > t.left || !t.all.take(len(s)) {
		t.lost++
		return ""
	}
	if t.seen == nil {
		t.seen = map[string]string{}
	}
	t.left -= len(s)
	t.seen[s] = s
	return s
}

func (t *texts) err() error {
	if t.lost == 0 {
		return nil
	}
	return fmt.Errorf("names: %d left out, at most %d bytes are kept of one file: %w", t.lost, t.most, elffile.ErrTooBig)
}

// find tries the places of a job's file in turn. If none holds the file, the error is
// that of the first place that holds anything.
func (r *Resolver) find(ctx context.Context, j *job, k *known, offs []uint64) (*loaded, error) {
	nearest := fs.ErrNotExist
	for i := range j.sources {
		for _, p := range j.sources[i].Places() {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			got, err := r.read(reading{
				Place: p, old: k.main, sections: r.wantsLines(k), names: j.names,
				check: func(f *File) error { return image.SameBuild(j.key.Build, f.build) },
				ask:   func(f *File, kept *texts) map[uint64]hit { return f.hits(offs, kept, r.o.Lines) },
			})
			if err == nil || r.cache.NoteHung(j.key, whatNames, err) {
				return got, err // if it hangs, the others are the same file
			}
			if errors.Is(nearest, fs.ErrNotExist) {
				nearest = err
			}
		}
	}
	return nil, nearest
}
