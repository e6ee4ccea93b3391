// Package cgroupname says in a few words whose a control group is: the unit of systemd, the pod,
// the container. Their managers write these names into the group's path, each in its own way, and
// all ways stand in one table (table.go).
//
// The package is pure. Its results are fit to be shown (show.Clean).
package cgroupname
