package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
)

// slowestTests is how many are told.
const slowestTests = 25

// slowest prints which tests took longest. One that waits for its turn (t.Parallel) does not count
// that time.
func (r *run) slowest(out io.Writer) {
	names := slices.SortedFunc(maps.Keys(r.took), func(a, b name) int {
		return cmp.Or(cmp.Compare(r.took[b], r.took[a]), cmp.Compare(a.pkg+a.test, b.pkg+b.test))
	})
	fmt.Fprintln(out, "\nthe slowest tests:")
	for _, n := range names[:min(slowestTests, len(names))] {
		fmt.Fprintf(out, "%7.1f s  %s %s\n", r.took[n], n.pkg, n.test)
	}
}
