package kcdata

// Cgroup is a control group and its memory.
type Cgroup struct {
	LinuxCgroup
	Path  string  // in its hierarchy, from the root of the cgroup namespace that took the file
	Above *Cgroup // the next group above it that is in the file; nil: none is
}

// maxCgroupPath bounds the path of a group: PATH_MAX.
const maxCgroupPath = 4 << 10

// cgroupTable decodes the control groups. A group stands behind those above it, so there is no
// circle in what Above gives.
func (p *snapshotParser) cgroupTable(text stringTable) {
	n := p.afford(len(p.cgroups), "control groups", func(i int) int64 {
		return textCost * int64(len(text.at(p.cgroups[i].Path, maxCgroupPath)))
	})
	for i, r := range p.cgroups[:n] {
		g := &Cgroup{LinuxCgroup: r, Path: text.at(r.Path, maxCgroupPath)}
		switch {
		case uint64(r.Parent) < uint64(i):
			g.Above = p.s.Cgroups[r.Parent]
		case r.Parent != CgroupNoParent:
			p.problem("control group %d is below number %d, which does not stand before it", i, r.Parent)
		}
		p.s.Cgroups = append(p.s.Cgroups, g)
	}
}

// cgroupKey tells groups of two hierarchies apart.
type cgroupKey struct {
	version uint16
	path    string
}

// MemoryCgroups gives for each task the group whose memory controller counts for it, if the file
// has that group. Where the controller is of version 1, the group is that of Task.MemoryCgroup; else
// that of Task.Cgroup. In version 2 a group without a memory controller of its own has neither
// CgroupHasCurrent nor a limit: Above counts for it.
func (s *Snapshot) MemoryCgroups() map[*Task]*Cgroup {
	groups := make(map[cgroupKey]*Cgroup, len(s.Cgroups))
	for _, g := range s.Cgroups {
		if k := (cgroupKey{g.Version, g.Path}); groups[k] == nil {
			groups[k] = g
		}
	}
	of := make(map[*Task]*Cgroup, len(s.Tasks))
	for _, t := range s.Tasks {
		k := cgroupKey{1, t.MemoryCgroup}
		if t.MemoryCgroup == "" {
			k = cgroupKey{2, t.Cgroup}
		}
		if g := groups[k]; g != nil && k.path != "" {
			of[t] = g
		}
	}
	return of
}
