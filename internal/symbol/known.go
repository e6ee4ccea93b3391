package symbol

import (
	"maps"

	"stackshot/internal/foreign"
	"stackshot/internal/image"
	"stackshot/kcdata"
)

// whatNames is what an image.Cache keeps a *known under.
const whatNames = "names"

// namedBytes is the estimated cost of one address, without the text of its names.
const namedBytes = 160

// known is what was learnt of one file. Constant once it is kept; what it points
// to is constant or has a lock of its own.
type known struct {
	main    *fileRead    // nil: the file was not found, only its debug file
	stat    foreign.Stat // of main, which may be dropped to save memory
	debug   *fileRead    // split debug file; nil: none
	sought  bool         // the debug file was looked for
	lines   *lineTable
	noLines bool // its DWARF cannot be used
	names   names
}

// fileRead is a file as it was read once. It is constant.
type fileRead struct {
	*contents
	stat  foreign.Stat
	place image.Place // where it was found; without its Check
}

// names are the functions that hold places in a file, innermost first, by offset in
// the file; none: nothing holds it. Offset is from the function's start; Module is
// not set.
type names map[uint64][]kcdata.UserFunction

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

// textBytes is the cost of the names. Many addresses share one.
func (k *known) textBytes() (n int) {
	seen := map[string]bool{}
	for _, funcs := range k.names {
		for _, f := range funcs {
			for _, s := range []string{f.Name, f.File} {
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
	if ok {
		k = *kept
	}
	known := k.names
	k.names = make(names, len(j.offs))
	for _, off := range j.offs {
		if funcs, ok := known[off]; ok {
			k.names[off] = funcs
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
