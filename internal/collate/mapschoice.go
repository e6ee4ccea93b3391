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
	mappingOther  = iota // nothing that was recorded leads there
	mappingLikely        // a register, or a word of the stack: a return address, or a number that looks like one
	mappingFrame         // a program counter, or a frame of what is known of the stack
)

// mostUseful cuts t.maps to maxMappings. It keeps first the mappings in which a frame lies,
// then those in which one may lie, then the others from the start. The unwinder finds
// return addresses only in registers and on the stack, so no stack becomes shorter.
func (t *taskBytes) mostUseful(out *loaded) {
	over := len(t.maps) - maxMappings
	if over <= 0 {
		return
	}
	rank := t.rankMaps(runtime.GOARCH == "arm64")
	var order []int
	for want := mappingFrame; want >= mappingOther; want-- {
		for i := range t.maps {
			if rank[i] == want {
				order = append(order, i)
			}
		}
	}
	wanted := 0
	for _, i := range order[maxMappings:] {
		if rank[i] != mappingOther {
			wanted++
		}
	}
	kept := make([]kcdata.Mapping, 0, maxMappings)
	slices.Sort(order[:maxMappings])
	for _, i := range order[:maxMappings] {
		kept = append(kept, t.maps[i])
	}
	t.maps = kept
	out.note("maps: %d executable mappings are left out: a task has at most %d in the file", over, maxMappings)
	if wanted > 0 {
		out.note("maps: in %d of those left out a frame may lie", wanted)
	}
}

// rankMaps says how useful each mapping is. If a call is the last instruction of a
// mapping, its return address is the mapping's end, so the end counts as inside. On arm64
// return addresses may be signed: the signature is in the high bits, and is stripped as
// internal/unwind does it.
func (t *taskBytes) rankMaps(signed bool) []int {
	rank := make([]int, len(t.maps))
	note := func(addr uint64, want int) (found bool) {
		i := sort.Search(len(t.maps), func(i int) bool { return t.maps[i].Start > addr }) - 1
		for ; i >= 0 && addr <= t.maps[i].End; i-- { // two, if they meet at addr
			rank[i], found = max(rank[i], want), true
		}
		return found
	}
	for i := range t.threads {
		t.threads[i].userAddresses(func(addr uint64, want int) {
			for width := 52; !note(addr, want) && signed && width >= 39; width-- {
				addr &= 1<<width - 1
			}
		})
	}
	return rank
}

// userAddresses gives the addresses that were recorded of a thread's user side.
func (th *threadAt) userAddresses(note func(addr uint64, want int)) {
	note(th.ip, mappingFrame)
	for _, a := range th.sampled {
		note(a, mappingFrame)
	}
	for _, link := range th.user.Chain {
		note(link.PC, mappingFrame)
	}
	for _, a := range th.user.Registers {
		note(a, mappingLikely)
	}
	for _, piece := range th.user.Stack {
		b := piece.Data[min(len(piece.Data), int(-piece.Addr&7)):]
		for ; len(b) >= 8; b = b[8:] {
			note(binary.LittleEndian.Uint64(b), mappingLikely)
		}
	}
}
