package collate

import (
	"encoding/binary"
	"runtime"
	"slices"
	"sort"

	"stackshot/kcdata"
)

// How useful a mapping is, for the choice where a task has more than are kept.
const (
	MappingOther  = iota // nothing that was recorded leads there
	mappingLikely        // a register, or a word of the stack: a return address, or a number that looks like one
	MappingFrame         // a program counter, or a frame of what is known of the stack
)

// MostUseful cuts t.Maps to MaxMappings: those that a frame lies in, then those
// that one may lie in, then the first of the others. The unwinder finds return
// addresses nowhere but in registers and on the stack, so no stack becomes shorter
// by what is cut.
func (t *TaskBytes) MostUseful(out *Loaded) {
	over := len(t.Maps) - MaxMappings
	if over <= 0 {
		return
	}
	rank := t.RankMaps(runtime.GOARCH == "arm64")
	var order []int
	for want := MappingFrame; want >= MappingOther; want-- {
		for i := range t.Maps {
			if rank[i] == want {
				order = append(order, i)
			}
		}
	}
	wanted := 0
	for _, i := range order[MaxMappings:] {
		if rank[i] != MappingOther {
			wanted++
		}
	}
	kept := make([]kcdata.Mapping, 0, MaxMappings)
	slices.Sort(order[:MaxMappings])
	for _, i := range order[:MaxMappings] {
		kept = append(kept, t.Maps[i])
	}
	t.Maps = kept
	out.Note("maps: %d executable mappings are left out: a task has at most %d in the file", over, MaxMappings)
	if wanted > 0 {
		out.Note("maps: in %d of those left out a frame may lie", wanted)
	}
}

// RankMaps says how useful each mapping is. A return address behind a
// call that is a mapping's last instruction lies at its end; where they are signed,
// on arm64, the signature is in the bits above (internal/unwind strips it likewise).
func (t *TaskBytes) RankMaps(signed bool) []int {
	rank := make([]int, len(t.Maps))
	note := func(addr uint64, want int) (found bool) {
		i := sort.Search(len(t.Maps), func(i int) bool { return t.Maps[i].Start > addr }) - 1
		for ; i >= 0 && addr <= t.Maps[i].End; i-- { // two, if they meet at addr
			rank[i], found = max(rank[i], want), true
		}
		return found
	}
	for i := range t.Threads {
		t.Threads[i].userAddresses(func(addr uint64, want int) {
			for width := 52; !note(addr, want) && signed && width >= 39; width-- {
				addr &= 1<<width - 1
			}
		})
	}
	return rank
}

// userAddresses gives the addresses that were recorded of a thread's user side.
func (th *ThreadAt) userAddresses(note func(addr uint64, want int)) {
	note(th.IP, MappingFrame)
	for _, a := range th.Sampled {
		note(a, MappingFrame)
	}
	for _, link := range th.User.Chain {
		note(link.PC, MappingFrame)
	}
	for _, a := range th.User.Registers {
		note(a, mappingLikely)
	}
	for _, piece := range th.User.Stack {
		b := piece.Data[min(len(piece.Data), int(-piece.Addr&7)):]
		for ; len(b) >= 8; b = b[8:] {
			note(binary.LittleEndian.Uint64(b), mappingLikely)
		}
	}
}
