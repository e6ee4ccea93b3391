package snapshot

import (
	"stackshot/internal/bpf"
	"stackshot/internal/procfs"
)

// waitTaking is what an engine with BPF programs records of what threads wait for. The
// slow paths of locks have names only if the kernel shows its symbols (nil: it does not);
// else no stack is scanned, and the file's sources say so.
func waitTaking(wait string, symbols *procfs.Kallsyms, memory bool) bpf.Waits {
	w := bpf.Waits{On: wait == WaitOn, Words: memory}
	if !w.On || symbols == nil {
		return w
	}
	for name, at := range symbols.Text() {
		if kind := bpf.SlowPathKind(name); kind != 0 {
			w.Slow = append(w.Slow, bpf.SlowPath{Start: at.Start, End: at.End, Kind: kind})
		}
	}
	return w
}
