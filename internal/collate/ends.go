package collate

import (
	"slices"

	"stackshot/kcdata"
)

// dropMoved drops what was found for threads that had gone on: it may be of another wait.
func (f *files) dropMoved() {
	e := f.ends
	e.Ends = slices.DeleteFunc(e.Ends, func(end kcdata.LinuxEnd) bool { return !f.counts(&end) })
	e.FUSE = slices.DeleteFunc(e.FUSE, func(r kcdata.LinuxFUSE) bool { return r.Tid != 0 && r.Flags&kcdata.FUSEForeign == 0 && f.gone[r.Tid] })
}

// counts reports whether an end is of a thread that still waits. A thread in a file system or in a page
// fault has no descriptor: servers of FUSE stay, and those of memory in which a thread still waits.
func (f *files) counts(e *kcdata.LinuxEnd) bool {
	switch {
	case f.stays[e.Of]:
		return true
	case e.Kind == kcdata.FileFUSE:
		return true
	case e.Kind == kcdata.FileUserfaultfd && e.Of == e.Object:
		return f.awaits[e.Backlog] // the process whose memory it serves
	}
	return false
}

// redactEnds takes addresses, ports, paths and names out of what was read after the release.
func (f *files) redactEnds() {
	e := f.ends
	for i := range e.Ends {
		r := &e.Ends[i]
		r.Object, r.Peer, r.Of, r.File = f.number(r.Object), f.number(r.Peer), f.number(r.Of), f.number(r.File)
		r.Local, r.Remote, r.Port, r.PeerPort = [16]byte{}, [16]byte{}, 0, 0
	}
	for i := range e.FUSE {
		r := &e.FUSE[i]
		r.Conn, r.Node = f.number(r.Conn), f.number(r.Node) // a server may use addresses as numbers of nodes
	}
	for i := range e.Mounts {
		m := &e.Mounts[i]
		m.Source, m.Point, m.Root = [len(m.Source)]byte{}, [len(m.Point)]byte{}, [len(m.Root)]byte{}
	}
	e.Devices = nil
}

// write writes the sums and the lists.
func (f *files) write(w *kcdata.StickyWriter) {
	w.Record(kcdata.TypeLinuxFilesTaken, &f.taken)
	if e := f.ends; e != nil {
		w.ArrayIfAny(kcdata.TypeLinuxEnd, e.Ends, len(e.Ends))
		w.ArrayIfAny(kcdata.TypeLinuxFileLock, e.Locks, len(e.Locks))
		w.ArrayIfAny(kcdata.TypeLinuxMount, e.Mounts, len(e.Mounts))
		w.ArrayIfAny(kcdata.TypeLinuxDevice, e.Devices, len(e.Devices))
		w.ArrayIfAny(kcdata.TypeLinuxFUSE, e.FUSE, len(e.FUSE))
	}
}
