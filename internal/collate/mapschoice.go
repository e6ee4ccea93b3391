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

// mostUseful cuts t.maps to maxMappings: those that a frame lies in, then those
// that one may lie in, then the first of the others. The unwinder finds return
// addresses nowhere but in registers and on the stack, so no stack becomes shorter
// by what is cut.
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

// rankMaps says how useful each mapping is. A return address behind a
// call that is a mapping's last instruction lies at its end; where they are signed,
// on arm64, the signature is in the bits above (internal/unwind strips it likewise).
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
