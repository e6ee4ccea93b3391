package cgroups

import (
	"cmp"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"stackshot/internal/procfs"
	"stackshot/kcdata"
)

// byThreads is the list in the order of threads, most first.
func byThreads(list []Member) []Member {
	out := slices.Clone(list)
	slices.SortStableFunc(out, func(a, b Member) int { return cmp.Compare(b.Threads, a.Threads) })
	return out
}

func sortByThreads(list []*group) {
	slices.SortFunc(list, func(a, b *group) int {
		return cmp.Or(cmp.Compare(b.Threads, a.Threads), strings.Compare(a.path, b.path))
	})
}

// groupReader reads groups.
type groupReader struct {
	*look
	where places
	files map[uint16][]procfs.File // by version; their memory is used again
}

// climb reads a group and those above it, as far as they have not been read. It is false if the time
// is up.
func (r *groupReader) climb(g *group) bool {
	for {
		if !g.done && (!r.timeLeft() || !r.group(g)) {
			return false
		}
		path, ok := parent(g.path)
		if !ok {
			return true
		}
		g = r.groups[key{g.Version, path}]
	}
}

// group reads one group.
func (r *groupReader) group(g *group) bool {
	dir := r.where.dir(g.Version, g.path)
	if dir == "" {
		return r.put(func() { g.Outcome, g.done = kcdata.CgroupHidden, true })
	}
	files := r.files[g.Version]
	if r.Proc.Readers != nil {
		r.Proc.Readers.Read(r.Root+dir, files)
	} else {
		procfs.FS{Root: r.Root + dir}.Read("", files)
	}
	return r.put(func() {
		g.fill(filesOf[g.Version], files)
		g.done = true
	})
}

// limited reports whether a group has a limit.
func (g *group) limited() bool {
	over := func(bit uint32, limit uint64) bool { return g.Present&bit != 0 && limit != kcdata.CgroupUnlimited }
	return over(kcdata.CgroupHasMax, g.Max) || over(kcdata.CgroupHasHigh, g.High) || over(kcdata.CgroupHasSwapMax, g.SwapMax)
}

// unread is what a group gets that the time was not enough for.
func (g *group) unread() {
	if !g.done {
		g.Outcome, g.Errno = kcdata.CgroupLate, uint32(unix.ETIMEDOUT)
	}
}
