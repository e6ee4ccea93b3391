package cgroups

import (
	"cmp"
	"slices"
	"strings"

	"stackshot/internal/capture"
	"stackshot/kcdata"
)

// result makes the file's list of what was read until now.
func (s *look) result() *capture.Cgroups {
	t := &s.taken
	if s.asked < int(t.Tasks) {
		t.Unknown += t.Tasks - uint32(s.asked)
		t.Flags |= kcdata.CgroupsTimeUp
	}
	if !s.ranked {
		s.rank()
	}
	kept := s.kept()
	number := make(map[*group]uint32, len(kept))
	out := &capture.Cgroups{Groups: make([]capture.Cgroup, 0, len(kept))}
	hidden, psi := 0, false
	for i, g := range kept {
		number[g] = uint32(i)
		g.Parent = s.parentOf(g, number)
		s.count(g)
		psi = psi || g.Present&kcdata.CgroupHasPressure != 0
		if g.Outcome == kcdata.CgroupHidden {
			hidden++
		}
		out.Groups = append(out.Groups, capture.Cgroup{LinuxCgroup: g.LinuxCgroup, Path: g.path})
	}
	if len(kept) > 0 && hidden == len(kept) {
		t.Flags |= kcdata.CgroupsNoMemory
	}
	if t.Read > 0 && !psi {
		t.Flags |= kcdata.CgroupsNoPressure
	}
	out.Taken = *t
	return out
}

// kept are the groups that the file has, each behind those above it.
func (s *look) kept() []*group {
	counts := map[*group]bool{} // for groups that have no memory controller of their own
	for _, g := range s.list {
		if g.unread(); g.done && g.Outcome == kcdata.CgroupRead && g.Present&kcdata.CgroupHasCurrent == 0 {
			for up := s.above(g); up != nil; up = s.above(up) {
				if up.Present&kcdata.CgroupHasCurrent != 0 {
					counts[up] = true
					break
				}
			}
		}
	}
	kept := slices.Clone(s.list)
	for _, g := range s.groups {
		if g.Flags&kcdata.CgroupAbove == 0 {
			continue
		}
		if g.unread(); !g.flat && (g.Outcome != kcdata.CgroupRead || g.limited() || counts[g]) {
			kept = append(kept, g)
		}
	}
	slices.SortFunc(kept, func(a, b *group) int {
		return cmp.Or(cmp.Compare(a.Version, b.Version), strings.Compare(a.path, b.path))
	})
	return kept
}

// above is the group above, if that counts for this one.
func (s *look) above(g *group) *group {
	path, ok := parent(g.path)
	if !ok {
		return nil
	}
	if up := s.groups[key{g.Version, path}]; up != nil && !up.flat {
		return up
	}
	return nil
}

// parentOf is the number of the next group above that the file has.
func (s *look) parentOf(g *group, number map[*group]uint32) uint32 {
	for up := s.above(g); up != nil; up = s.above(up) {
		if n, ok := number[up]; ok {
			return n
		}
	}
	return kcdata.CgroupNoParent
}

// count adds a group to the sums.
func (s *look) count(g *group) {
	t := &s.taken
	if g.Flags&kcdata.CgroupAbove != 0 {
		t.Above++
	}
	if !g.done {
		t.Flags |= kcdata.CgroupsTimeUp
	}
	if g.hung {
		t.Flags |= kcdata.CgroupsHung
	}
	*map[uint16]*uint32{
		kcdata.CgroupRead: &t.Read, kcdata.CgroupGone: &t.Gone, kcdata.CgroupDenied: &t.Denied,
		kcdata.CgroupLate: &t.Late, kcdata.CgroupHidden: &t.Hidden, kcdata.CgroupFailed: &t.Failed,
	}[g.Outcome]++
}
