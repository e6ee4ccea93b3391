package symbol

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"stackshot/internal/foreign"
	"stackshot/internal/testneed"
	"stackshot/kcdata"
)

// The files that gave no names are listed in the order of the mappings, whichever worker
// ends first: two reports of the same file are the same.
func TestSkippedInOrder(t *testing.T) {
	testneed.Lab(t, testneed.Time)
	dir := t.TempDir()
	task := &kcdata.Task{ID: 1, Threads: []*kcdata.Thread{{}}}
	for i := range uint64(500) {
		lo := i<<20 + 0x1000
		task.Mappings = append(task.Mappings, kcdata.Mapping{LinuxMapping: kcdata.LinuxMapping{Start: lo, End: lo + 0x1000, Inode: i + 1}, Path: fmt.Sprintf("%s/%03d", dir, i), BuildID: []byte{byte(i), byte(i >> 8)}})
		task.Threads[0].User = append(task.Threads[0].User, lo+8)
	}
	for range 5 {
		res := resolver(t, Options{}, foreign.Options{}).Resolve(t.Context(), []*kcdata.Task{task})
		if len(res.Skipped) != 500 {
			t.Fatalf("skipped %d of 500", len(res.Skipped))
		}
		if !slices.IsSortedFunc(res.Skipped, func(a, b Skip) int { return strings.Compare(a.What, b.What) }) {
			t.Fatal("not in the order of the mappings")
		}
	}
}
