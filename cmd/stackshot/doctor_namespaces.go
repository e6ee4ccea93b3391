package main

import (
	"fmt"
	"path"
	"strings"
	"time"

	"stackshot/internal/mounts"
	"stackshot/snapshot"
)

// unknown says why something could not be found out, which costs nothing.
func unknown(err error) finding { return good("not known: " + err.Error()) }

// lock says whether this process's captures take turns with everybody else's.
func (d *doctor) lock() finding {
	path, err := snapshot.TryLock()
	if err != nil {
		return bad("none", err.Error())
	}
	return good(path)
}

// runDir says whether /run, where captures meet, is the host's. It is, if process 1 of the
// first pid namespace has the same directory there.
func (d *doctor) runDir() finding {
	const cost = "captures outside are not kept apart from those here"
	if _, isFirst, err := d.proc.PidNamespace(); err == nil && !isFirst {
		return bad("of a container (pid namespace), maybe not the host's", cost)
	}
	ours, err := d.mountOf("self", "/run")
	if err != nil {
		return bad("not known: "+err.Error(), cost)
	}
	theirs, err := d.mountOf("1", "/run")
	switch {
	case err != nil:
		return bad("not known: process 1: "+err.Error(), cost)
	case ours != theirs:
		return bad("not the host's: "+ours+", process 1 has "+theirs, cost)
	}
	return good("the host's")
}

// mountOf says which directory of which file system a process sees at dir: device
// and path in it. It touches nothing of the file system.
func (d *doctor) mountOf(pid, dir string) (string, error) {
	b, err := readHead(d.proc, pid, "mountinfo", maxConfig)
	if err != nil {
		return "", err
	}
	way := mounts.Parse(b).Way(dir)
	if len(way) == 0 {
		return "", fmt.Errorf("no file system that this root sees holds %s", dir)
	}
	at := way[len(way)-1]
	return at.Dev.String() + " " + path.Join(at.Root, strings.TrimPrefix(dir, at.Point)), nil
}

func (d *doctor) pidNamespace() finding {
	inode, isFirst, err := d.proc.PidNamespace()
	switch {
	case err != nil:
		return unknown(err)
	case isFirst:
		return good("the first")
	}
	return bad(fmt.Sprint(inode), "tasks of this namespace only, and no engine trap")
}

// timeNamespace says how far this process's clocks are from the machine's, in ns.
func timeNamespace(monotonic, boottime int64, err error) finding {
	switch {
	case err != nil:
		return bad("not known: "+err.Error(), "times may be those of a time namespace")
	case monotonic == 0 && boottime == 0:
		return good("none, or one with the machine's clocks")
	}
	return good(fmt.Sprintf("CLOCK_MONOTONIC is %v off the machine's, CLOCK_BOOTTIME %v: taken off in what is recorded",
		time.Duration(monotonic), time.Duration(boottime)))
}
