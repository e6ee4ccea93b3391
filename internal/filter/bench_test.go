package filter

import (
	"fmt"
	"testing"

	"stackshot/kcdata"
)

// BenchmarkSelect chooses among 20,000 threads with 12 frames on each stack.
func BenchmarkSelect(b *testing.B) {
	s := &kcdata.Snapshot{}
	var syms []kcdata.LinuxSymbol
	strs := []byte{0}
	for i := range uint64(500) {
		syms = append(syms, kcdata.LinuxSymbol{Addr: 1<<63 + i, Name: uint32(len(strs))})
		strs = append(strs, fmt.Sprintf("function_%d\x00", i)...)
	}
	s.Symbols = kcdata.NewSymbolTable(syms, strs)
	for i := range uint64(2000) {
		t := &kcdata.Task{ID: i, Name: fmt.Sprint("task", i%90), HasLinux: true, Cgroup: fmt.Sprint("/system.slice/", i%40), Mappings: []kcdata.Mapping{{LinuxMapping: kcdata.LinuxMapping{Start: 1 << 20, End: 2 << 20}, Path: "/lib/x.so"}}}
		for j := range uint64(10) {
			th := &kcdata.Thread{ID: i*10 + j, HasLinux: true}
			for k := range uint64(12) {
				th.Kernel = append(th.Kernel, 1<<63+(i*j+k*7)%500)
				th.User = append(th.User, 1<<20+(i*j+k*7)%5000)
			}
			t.Threads = append(t.Threads, th)
		}
		s.Tasks = append(s.Tasks, t)
	}
	for _, text := range []string{"func~nothing*here", "module=x.so", "state=D and name=task1*", "wait~mutex", "cgroup^system.slice/3 or age>10s"} {
		e, err := Parse(text)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(text, func(b *testing.B) {
			for b.Loop() {
				Select(e, s, nil)
			}
		})
	}
}
