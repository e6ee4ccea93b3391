package main

import (
	"strings"

	"stackshot/internal/bpf"
)

// openFiles says how it is found out who has the other ends of the files that threads wait at.
func (d *doctor) openFiles() finding {
	pass, err := bpf.OpenEndPass(bpf.EndPassOptions{})
	if err != nil {
		return bad("/proc alone: "+err.Error(), "who has the other end of a pipe or a socket is found in part, and later")
	}
	if err := pass.Close(); err != nil {
		return unknown(err)
	}
	known, err := bpf.KnownEndTypes()
	if err != nil {
		return unknown(err)
	}
	var lost []string
	for _, k := range []struct {
		has  bool
		what string
	}{{known.Unix, "unix sockets"}, {known.FUSE, "requests of FUSE"}, {known.Userfaultfd, "userfaultfds"}} {
		if !k.has {
			lost = append(lost, k.what)
		}
	}
	if len(lost) > 0 {
		return bad("task_file iterator; the kernel has no type information of "+strings.Join(lost, ", ")+" (or the module is not loaded)",
			"those are not followed to their other ends")
	}
	return good("task_file iterator; unix sockets, FUSE and userfaultfds are known")
}

// fileLocks: the kernel may be built without them.
func (d *doctor) fileLocks() finding {
	if _, err := readHead(d.proc, "", "locks", 1); err != nil {
		return bad("not known: "+err.Error(), "file locks are found only at the files that somebody has open")
	}
	return good("/proc/locks")
}
