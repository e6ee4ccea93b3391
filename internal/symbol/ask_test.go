package symbol

import (
	"context"

	"stackshot/kcdata"
)

// What tests ask of single places and files, where the command asks for all at once.

// BuildID returns the GNU build-id; nil without one.
func (f *File) BuildID() []byte { return f.build }

// Problems returns why tables of the file are not used.
func (f *File) Problems() []error { return f.problems }

// Vaddr turns an offset in the file, in bytes, into an address that it was linked for.
func (f *File) Vaddr(off uint64) (uint64, bool) { return f.layout.Segments.Address(off, 0) }

// offset is the inverse of Vaddr.
func (f *File) offset(vaddr uint64) (uint64, bool) {
	for _, p := range f.layout.Segments {
		if vaddr >= p.Vaddr && vaddr-p.Vaddr < p.Filesz {
			return p.Off + (vaddr - p.Vaddr), true
		}
	}
	return 0, false
}

// Functions returns the functions that p of t is in, innermost first; nil if
// nothing is known of it. A return address is looked up in the call before it,
// and its offset counted from the address itself. Calls for many places are
// better made by Resolve.
func (r *Resolver) Functions(t *kcdata.Task, p kcdata.UserPlace) []kcdata.UserFunction {
	w := newWanted(r.o.Local, r.o.Proc)
	w.add(t, p)
	return r.do(context.Background(), w, nil).Tasks[t].Functions(p)
}
