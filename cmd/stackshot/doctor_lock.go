package main

import (
	"fmt"
	"path"
	"strings"

	"stackshot/internal/mounts"
	"stackshot/internal/show"
	"stackshot/snapshot"
)

// lock says whether this process's captures take turns with everybody else's.
func (d *doctor) lock(section string) {
	if path, err := snapshot.TryLock(); err != nil {
		d.bad(section, "lock", "none", err.Error())
	} else {
		d.good(section, "lock", path)
	}
	d.run(section)
}

// run says whether /run, where captures meet, is the host's: one beside the first
// process's in the first pid namespace is.
func (d *doctor) run(section string) {
	const name, cost = "/run", "captures outside are not kept apart from those here"
	_, isFirst, err := d.proc.PidNamespace()
	if err == nil && !isFirst {
		d.bad(section, name, "of a container (pid namespace), maybe not the host's", cost)
		return
	}
	ours, err := d.mountOf("self", name)
	theirs, initErr := d.mountOf("1", name)
	switch {
	case err != nil:
		d.bad(section, name, "not known: "+err.Error(), cost)
	case initErr != nil:
		d.bad(section, name, "not known: process 1: "+initErr.Error(), cost)
	case ours != theirs:
		d.bad(section, name, "not the host's: "+ours+", process 1 has "+theirs, cost)
	default:
		d.good(section, name, "the host's")
	}
}

// mountOf says which directory of which file system a process sees at dir: device
// and path in it. Nothing of the file system is touched.
func (d *doctor) mountOf(pid, dir string) (string, error) {
	b, err := readOne(d.proc, pid, "mountinfo", maxConfig)
	if err != nil {
		return "", show.WithoutPath(err)
	}
	way := mounts.Parse(b).Way(dir)
	if len(way) == 0 {
		return "", fmt.Errorf("no file system that this root sees holds %s", dir)
	}
	at := way[len(way)-1]
	return at.Dev.String() + " " + path.Join(at.Root, strings.TrimPrefix(dir, at.Point)), nil
}
