package symbol

import (
	"maps"

	"stackshot/internal/foreign"
	"stackshot/internal/image"
)

// whatNames is what an image.Cache keeps a *known under.
const whatNames = "names"

// namedBytes is about what one address takes, without the text of its names.
const namedBytes = 160

// known is what was learnt of one file. Constant once it is kept; what it points
// to is constant or has a lock of its own.
type known struct {
	main    *contents // nil: the file was not found, only its debug file
	stat    foreign.Stat
	place   image.Place // where it was found
	debug   *contents   // split debug file; nil: none
	dstat   foreign.Stat
	dwhere  foreign.Where
	sought  bool // the debug file was looked for
	lines   *lineTable
	noLines bool // lines were looked for
	names   map[uint64]*named
}

// named is what holds one place in a file; constant.
type named struct{ funcs []namedFunc } // innermost first; empty: nothing holds it

type namedFunc struct {
	name, file string
	delta      uint64 // from the function's start
	line       uint32
}

// Cost is what it takes, bytes.
func (k *known) Cost() int64 {
	n := 1024 + len(k.names)*namedBytes + k.textBytes()
	if k.main != nil {
		n += k.main.bytes()
	}
	if k.debug != nil {
		n += k.debug.bytes()
	}
	if k.lines != nil {
		n += k.lines.size + maxUnitBytes/4
	}
	return int64(n)
}

// textBytes is what the names take, of which many addresses share one.
func (k *known) textBytes() (n int) {
	seen := map[string]bool{}
	for _, name := range k.names {
		for _, f := range name.funcs {
			for _, s := range []string{f.name, f.file} {
				if !seen[s] {
					seen[s] = true
					n += len(s)
				}
			}
		}
	}
	return n
}

// known returns a copy of what is known of a job's file, which the caller may
// change, and those of the job's places that have no name yet.
func (r *Resolver) known(j *job) (k known, missing []uint64) {
	kept, ok := r.cache.Get(j.key, whatNames).(*known)
	if !ok {
		return known{}, j.offs
	}
	k = *kept
	k.names = make(map[uint64]*named, len(j.offs))
	for _, off := range j.offs {
		if n := kept.names[off]; n != nil {
			k.names[off] = n
		} else {
			missing = append(missing, off)
		}
	}
	return k, missing
}

// keep files what a job learnt, with what others have learnt of the file since.
func (r *Resolver) keep(j *job, k known) {
	r.cache.Update(j.key, whatNames, func(old image.Coster) image.Coster {
		if old, ok := old.(*known); ok && old.stat == k.stat {
			maps.Copy(k.names, old.names)
		}
		if k.Cost() > r.cache.MaxCost() {
			// The names are small; the tables can be read again.
			k.main, k.debug, k.lines, k.sought, k.noLines = nil, nil, nil, false, false
		}
		return &k
	})
}
