package cgroups

import (
	"fmt"
	"os"
	"testing"
	"time"

	"stackshot/internal/procfs"
	"stackshot/internal/testneed"
)

// 1,000 real control groups, as Look reads them, without /proc/PID/cgroup of their tasks.
func BenchmarkGroups(b *testing.B) {
	testneed.Root(b)
	const groups = 1000
	where, err := findPlaces(procfs.FS{})
	if err != nil {
		b.Fatal(err)
	}
	version := uint16(2)
	if len(where[1]) > 0 {
		version = 1
	}
	top := fmt.Sprintf("/stackshot-bench-%d", os.Getpid())
	s := &look{Looker: &Looker{Most: MostGroups}, until: time.Now().Add(time.Hour), groups: map[key]*group{}}
	defer os.Remove(where.dir(version, top))
	for i := range groups {
		g := newGroup(key{version, fmt.Sprintf("%s/%d", top, i)})
		dir := where.dir(version, g.path)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			b.Skip(err)
		}
		defer os.Remove(dir)
		s.list, s.groups[g.key()] = append(s.list, g), g
	}
	readers := procfs.NewReaders(0, 0)
	defer readers.Close()
	s.Proc.Readers = readers
	s.rank()
	r := groupReader{look: s, where: where, files: map[uint16][]procfs.File{1: readable(filesOf[1]), 2: readable(filesOf[2])}}
	for b.Loop() {
		for _, g := range s.groups {
			g.done = false
		}
		for _, g := range s.list {
			if !r.climb(g) {
				b.Fatal("no time left")
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/groups, "µs/group")
}
