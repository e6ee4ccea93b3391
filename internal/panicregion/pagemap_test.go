package panicregion

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"reflect"
	"testing"
)

// A frame for each page of 4 KiB, whatever the machine's pages are; hidden and absent ones are errors.
func TestSplitFrames(t *testing.T) {
	for _, size := range []int{4096, 16384, 65536} {
		pages := 1 + rand.N(200)
		n := (pages*4096 + size - 1) / size
		var entries []byte
		var want []uint64
		for range n {
			frame := 1 + rand.Uint64N(1<<30)
			entries = binary.LittleEndian.AppendUint64(entries, present|1<<61|frame)
			for at := range size / 4096 {
				want = append(want, frame*uint64(size)+uint64(at)*4096)
			}
		}
		got, err := splitFrames(entries, size, pages)
		if err != nil || !reflect.DeepEqual(got, want[:pages]) {
			t.Fatalf("pages of %d: %v", size, err)
		}
		at := rand.N(n) * 8
		hidden := append([]byte(nil), entries...)
		binary.LittleEndian.PutUint64(hidden[at:], present)
		if _, err := splitFrames(hidden, size, pages); !errors.Is(err, ErrNoFrames) {
			t.Error("a hidden frame: ", err)
		}
		binary.LittleEndian.PutUint64(hidden[at:], 0)
		if _, err := splitFrames(hidden, size, pages); err == nil {
			t.Error("a page that is not in memory is taken")
		}
		if _, err := splitFrames(entries[:8*(n-1)], size, pages); err == nil {
			t.Error("too few entries are taken")
		}
	}
}
