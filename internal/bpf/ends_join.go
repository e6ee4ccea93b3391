package bpf

import (
	"cmp"
	"slices"

	"golang.org/x/sys/unix"

	"stackshot/kcdata"
)

// joined gives each end to each wait that it was looked for; more: there are more than are
// kept. A process whose leader is gone may be shown once for each of its threads.
func (f *foundParts) joined(k *endKeys, most int) (out []kcdata.LinuxEnd, more bool) {
	type once struct {
		of         uint64
		flags      uint32
		tgid, fd   uint32
		start, obj uint64
	}
	seen := map[once]bool{}
	keep := func(e kcdata.LinuxEnd) {
		id := once{e.Of, e.Flags | e.LockKind<<16, e.Tgid, uint32(e.Fd), e.Start, e.Object}
		if seen[id] {
			return
		}
		if len(out) >= most {
			more = true
			return
		}
		seen[id] = true
		out = append(out, e)
	}
	paired := map[uint64]bool{}
	var ports []endOut
	for _, o := range f.ends {
		if o.Index >= uint32(len(k.list)) {
			o.End.Of = o.End.Object
			keep(o.End)
			continue
		}
		if k.list[o.Index].By == byPort {
			ports = append(ports, o)
			continue
		}
		for _, r := range k.reasons[o.Index] {
			e := o.End
			e.Of = r.of
			if e.Flags&kcdata.EndAccepts == 0 { // else the object is not open here
				e.Flags |= r.flags
			}
			if e.Flags&kcdata.EndPair != 0 {
				paired[r.of] = true
			}
			keep(e)
		}
	}
	f.joinPorts(k, ports, paired, keep)
	slices.SortFunc(out, func(a, b kcdata.LinuxEnd) int {
		return cmp.Or(cmp.Compare(a.Tgid, b.Tgid), cmp.Compare(a.Fd, b.Fd), cmp.Compare(a.Of, b.Of), cmp.Compare(a.Flags, b.Flags))
	})
	return out, more
}

// joinPorts: whoever listens at the port of a connection has it, as long as it has no
// descriptor of its own; a datagram socket that is not connected is the other end itself.
func (f *foundParts) joinPorts(k *endKeys, ports []endOut, paired map[uint64]bool, keep func(kcdata.LinuxEnd)) {
	one := map[uint64]bool{}
	for _, o := range ports {
		for _, r := range k.reasons[o.Index] {
			e := o.End
			e.Of = r.of
			if !reaches(r.wanted, &e) || e.Object == r.of {
				continue
			}
			switch {
			case e.Flags&kcdata.EndListens == 0:
				e.Flags |= kcdata.EndPair
			case !paired[r.of]:
				e.Flags |= kcdata.EndAccepts
			case one[r.of]:
				continue
			}
			one[r.of] = true
			keep(e)
		}
	}
}

// reaches: the remote address of a connection is one of this machine's own, as far as one
// can tell without a list of them, and the socket is bound to it or to all addresses.
func reaches(w *WantedEnd, e *kcdata.LinuxEnd) bool {
	remote, v4 := address(w.Family, w.Remote)
	local, _ := address(w.Family, w.Local)
	bound, boundV4 := address(e.Family, e.Local)
	if bound == remote && boundV4 == v4 {
		return true
	}
	if bound != [16]byte{} || e.Family == unix.AF_INET && !v4 {
		return false
	}
	loopback := v4 && remote[0] == 127 || !v4 && remote == [16]byte{15: 1}
	return loopback || remote == local
}
