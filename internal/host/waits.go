package host

import "stackshot/internal/bpf"

// Waits is what the BPF programs record of what threads wait for. The slow paths of locks have
// names only if the kernel shows its symbols; else no stack is scanned, and the file's sources say
// so. words: user memory can be read.
func (h *Host) Waits(on, words bool) bpf.Waits {
	w := bpf.Waits{On: on, Words: words}
	if !w.On || h.Kallsyms == nil {
		return w
	}
	for name, at := range h.Kallsyms.Text() {
		if kind := bpf.SlowPathKind(name); kind != 0 {
			w.Slow = append(w.Slow, bpf.SlowPath{Start: at.Start, End: at.End, Kind: kind})
		}
	}
	return w
}
