package report

import (
	"io"
	"strings"
	"testing"

	"stackshot/internal/testheap"
	"stackshot/kcdata"
)

// longNames is a small file that makes much of itself: a name and a source file of
// 4 KiB each are those of 18,000 frames, which differ in their lines.
func longNames() *kcdata.Snapshot {
	const threads, frames = 60, 300
	strs := []byte("\x00" + strings.Repeat("n", 4000) + "\x00" + strings.Repeat("f", 4000) + "\x00")
	task := &kcdata.Task{ID: 7, Name: "app"}
	var records []kcdata.LinuxUserSymbol
	for i := range uint64(threads) {
		th := &kcdata.Thread{ID: i + 7}
		for n := range uint64(frames) {
			addr := i<<16 + n
			th.User = append(th.User, addr)
			records = append(records, kcdata.LinuxUserSymbol{Addr: addr, Name: 1, File: 4002, Line: uint32(addr)})
		}
		task.Threads = append(task.Threads, th)
	}
	task.UserSymbols = kcdata.NewUserSymbolTable(records, strs)
	return &kcdata.Snapshot{Tasks: []*kcdata.Task{task}}
}

func TestLongNamesOfManyFrames(t *testing.T) {
	s := longNames()
	for _, f := range []struct { // the heap keeps what one of them takes: that of the least goes first
		name  string
		write func(io.Writer, *kcdata.Snapshot, Options) error
	}{{"folded", Folded}, {"pprof", Pprof}, {"text", Text}, {"json", JSON}} {
		testheap.Bound(t, 48<<20, f.name, func() {
			if err := f.write(io.Discard, s, Options{}); err != nil {
				t.Errorf("%s: %v", f.name, err)
			}
		})
	}
}
