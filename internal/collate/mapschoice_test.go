package collate

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"stackshot/internal/procfs"
	"stackshot/kcdata"
	"strings"
	"testing"
)

// Of random mappings and threads: never more than fit, ascending, none of a frame
// left out while another is kept.
func TestMostUsefulMappings(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 9))
	for range 30 {
		var maps []kcdata.Mapping
		at := uint64(1 << 20)
		for range maxMappings + 1 + r.IntN(3000) {
			at += r.Uint64N(2) * 4096
			maps = append(maps, kcdata.Mapping{LinuxMapping: kcdata.LinuxMapping{Start: at, End: at + 4096, Inode: 9}})
			at += 4096
		}
		pick := func() (uint64, int) {
			i := r.IntN(len(maps))
			return maps[i].Start + 8*(1+r.Uint64N(511)), i
		}
		task := &taskBytes{maps: slices.Clone(maps)}
		frames := map[uint64]bool{}
		see := func() uint64 {
			a, i := pick()
			frames[maps[i].Start] = true
			return a
		}
		for range 1 + r.IntN(300) {
			th := threadAt{ip: see(), sampled: []uint64{see()}}
			th.user.Chain = []kcdata.LinuxUserLink{{PC: see()}}
			if runtime.GOARCH == "arm64" {
				th.user.Chain = append(th.user.Chain, kcdata.LinuxUserLink{PC: see() | 0x2a<<48})
			}
			th.user.Registers = []uint64{see(), 1, ^uint64(0)}
			th.user.Stack = []kcdata.UserBytes{{Addr: 0x7ff4, Data: append(make([]byte, 4), binary.LittleEndian.AppendUint64(nil, see())...)}}
			_, i := pick() // the address behind a call that is the last instruction of a mapping
			frames[maps[i].Start] = true
			th.user.Chain = append(th.user.Chain, kcdata.LinuxUserLink{PC: maps[i].End})
			task.threads = append(task.threads, th)
		}
		var out loaded
		task.mostUseful(&out)
		kept := map[uint64]bool{}
		for _, m := range task.maps {
			kept[m.Start] = true
		}
		if len(kept) != maxMappings || !slices.IsSortedFunc(task.maps, func(a, b kcdata.Mapping) int { return int(a.Start) - int(b.Start) }) {
			t.Fatalf("%d mappings, or not ascending", len(task.maps))
		}
		for start := range frames {
			if !kept[start] {
				t.Fatalf("the mapping at %#x is left out, a frame lies in it", start)
			}
		}
		want := fmt.Sprintf("maps: %d executable mappings are left out: a task has at most 4096 in the file", len(maps)-maxMappings)
		if got := strings.Join(out.notes, "; "); got != want {
			t.Fatalf("%q, want %q", got, want)
		}
	}
}

// The bits above an address are a signature on arm64, and elsewhere part of a number
// that is no address.
func TestSignedAddressesOnArm64Alone(t *testing.T) {
	task := &taskBytes{
		maps:    []kcdata.Mapping{{LinuxMapping: kcdata.LinuxMapping{Start: 0x10000, End: 0x11000}}},
		threads: []threadAt{{ip: 0x10800 | 0x2a<<48}},
	}
	for signed, want := range map[bool]int{true: mappingFrame, false: mappingOther} {
		if rank := task.rankMaps(signed); rank[0] != want {
			t.Errorf("signed %v: rank %d, want %d", signed, rank[0], want)
		}
	}
}

// Where even those of frames do not fit, that is said.
func TestMappingsOfFramesLeftOut(t *testing.T) {
	var text strings.Builder
	task := &taskBytes{}
	for i := range maxMappings + 5 {
		start := uint64(0x10000 + i*8192)
		fmt.Fprintf(&text, "%x-%x r-xp 00000000 00:00 0 \n", start, start+4096)
		task.threads = append(task.threads, threadAt{ip: start})
	}
	var out loaded
	if err := task.parseMaps(procfs.File{Data: []byte(text.String())}, &out); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(out.notes, "; "); len(task.maps) != maxMappings || !strings.HasSuffix(got, "maps: in 5 of those left out a frame may lie") {
		t.Errorf("%d mappings, %q", len(task.maps), got)
	}
}

// More mappings than are kept, and a text that is cut, are said.
func TestMappingsAreBounded(t *testing.T) {
	var b strings.Builder
	for i := range maxMappings + 7 {
		fmt.Fprintf(&b, "%x-%x r-xp 00000000 00:00 0 \n", 0x10000+i*8192, 0x11000+i*8192)
	}
	for _, cut := range []bool{false, true} {
		var out loaded
		task := &taskBytes{}
		if err := task.parseMaps(procfs.File{Data: []byte(b.String() + "7fff"), Truncated: true}, &out); err != nil {
			t.Fatal(err)
		}
		if notes := strings.Join(out.notes, "; "); len(task.maps) != maxMappings || !strings.Contains(notes, "7 executable mappings are left out") || !strings.Contains(notes, "more than 16777216 bytes") {
			t.Errorf("cut %v: %d, %q", cut, len(task.maps), notes)
		}
	}
}
