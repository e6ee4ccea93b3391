package extract

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"stackshot/internal/bpf"
	"stackshot/internal/panicregion"
	"stackshot/internal/vmcore"
	"stackshot/kcdata"
)

// memory is a dump made by hand: pages by their physical address.
type memory struct {
	pages map[uint64][]byte
	lost  map[uint64]error
	info  map[string]string
}

func newMemory() *memory {
	return &memory{pages: map[uint64][]byte{}, lost: map[uint64]error{}, info: map[string]string{}}
}

func (m *memory) Info() map[string]string { return m.info }

func (m *memory) ReadPhys(p []byte, pa uint64) error {
	for done := 0; done < len(p); {
		at := pa + uint64(done)
		page := at &^ (pageSize - 1)
		if err := m.lost[page]; err != nil {
			return fmt.Errorf("%#x: %w", page, err)
		}
		b := m.pages[page]
		if b == nil {
			return fmt.Errorf("%#x: %w", page, vmcore.ErrOutside)
		}
		done += copy(p[done:], b[at-page:])
	}
	return nil
}

func (m *memory) Pages(fn func(pa uint64, run []byte) error) (t vmcore.Tally, err error) {
	for _, pa := range slices.Sorted(maps.Keys(m.pages)) {
		if m.lost[pa] != nil {
			continue
		}
		t.Pages++
		if err := fn(pa, m.pages[pa]); err != nil {
			return t, err
		}
	}
	return t, nil
}

// made is a region made by hand.
type made struct {
	static panicregion.Static
	run    bpf.PanicRun
	desc   panicregion.Description
	image  []byte
	frames []uint64 // by page of the region
	ends   []uint64 // bytes of the records after each task
}

// someTasks gives the records of n tasks, each with a few threads that have stacks.
func someTasks(t testing.TB, n int) (records []byte, ends []uint64) {
	t.Helper()
	w := kcdata.NewBuffer(1 << 16)
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := range n {
		id := uint64(100 + 10*i)
		must(w.BeginContainer(kcdata.TypeTask, id))
		snap := kcdata.TaskSnapshot{}
		snap.Pid = int32(id)
		copy(snap.Comm[:], fmt.Sprintf("task%d", i))
		must(w.Struct(kcdata.TypeTaskSnapshot, &snap))
		must(w.Struct(kcdata.TypeLinuxTask, &kcdata.LinuxTask{Tgid: uint32(id), Present: kcdata.TaskHasIDs}))
		for j := range 1 + i%3 {
			tid := id + uint64(j)
			must(w.BeginContainer(kcdata.TypeThread, tid))
			must(w.Struct(kcdata.TypeThreadSnapshot, &kcdata.ThreadSnapshot{ThreadID: tid}))
			must(w.Struct(kcdata.TypeLinuxThread, &kcdata.LinuxThread{Tid: uint32(tid), Tgid: uint32(id), KstackDepth: 3}))
			must(w.Uint64s(kcdata.TypeKernStackLR64, []uint64{0xffffffff81000105, 0xffffffff81000205, 0xffffffff81000305}))
			must(w.EndContainer(tid))
		}
		must(w.EndContainer(id))
		ends = append(ends, uint64(w.Len()))
	}
	return slices.Clone(w.Written()), ends
}

const someSymbols = "ffffffff81000000 T _text\nffffffff81000100 t bpf_hook\nffffffff81000200 t vpanic\nffffffff81000300 t panic\nffffffff81000400 t other\n"

// makeRegion is a region in which a panic by thread 110 of task 110 has recorded n tasks.
func makeRegion(t testing.TB, n int) *made {
	t.Helper()
	m := &made{}
	records, ends := someTasks(t, n)
	m.ends = ends
	m.desc = panicregion.Description{
		Tool: "stackshot test", Hostname: "dead", Release: "6.12", Arch: "x86_64", BootID: "boot", PageSize: 4096, FirstNS: true, BootEpochNs: 1_700_000_000_000_000_000,
		CPUs: []panicregion.CPU{{CPU: 0}, {CPU: 1}}, Hooks: []string{"vpanic"}, Symbols: someSymbols,
	}
	m.run = bpf.PanicRun{
		State: panicregion.StateLeft, Hook: panicregion.HookPanic, Outcome: panicregion.Whole, Cpu: 1, Tid: 110, Tgid: 110, Level: 3,
		Began: 5e9, Ended: 6e9, BeganBoot: 7e9, Bytes: uint64(len(records)), Tasks: uint32(n),
	}
	for i := range n {
		m.run.Threads += uint32(1 + i%3)
	}
	put(m.run.Comm[:], "bash")
	put(m.run.Format[:], "sysrq triggered crash\n")
	packed, err := m.desc.Pack()
	if err != nil {
		t.Fatal(err)
	}
	pages := func(n int) int { return (n + pageSize - 1) / pageSize }
	room := pages(len(records)) + 2
	data := 1 + pages(len(packed)) + room
	lists := panicregion.ListPages(data)
	descAt := (1 + lists) * pageSize
	recordsAt := descAt + pages(len(packed))*pageSize
	m.image = make([]byte, (data+lists)*pageSize)
	copy(m.image[descAt:], packed)
	copy(m.image[recordsAt:], records)
	m.static = panicregion.Static{
		Kind: panicregion.KindPanic, Arch: 62, Region: 77, Generation: 4, BootID: [16]byte{1, 2}, BuildID: []byte{0xab}, TextAddr: 0xffffffff81000000,
		Pages: uint64(data + lists), ListPages: uint32(lists), Written: 1000,
		Sections: []panicregion.Section{
			{Kind: panicregion.SectionDescription, Sum: panicregion.Sum(packed), Off: uint64(descAt), Len: uint64(len(packed))},
			{Kind: panicregion.SectionRecords, Off: uint64(recordsAt), Len: uint64(room * pageSize)},
		},
	}
	at := uint64(0x100000)
	for range data + lists {
		m.frames = append(m.frames, at)
		at += pageSize * uint64(1+rand.IntN(3))
	}
	rand.Shuffle(len(m.frames)/2, func(i, j int) { m.frames[i], m.frames[j] = m.frames[j], m.frames[i] })
	m.write(t)
	return m
}

func put(to []int8, s string) {
	for i := range s {
		to[i] = int8(s[i])
	}
}

// write writes head and list into the image, as static and run have them.
func (m *made) write(t testing.TB) {
	t.Helper()
	if err := panicregion.PutStatic(m.image[:pageSize], &m.static); err != nil {
		t.Fatal(err)
	}
	if err := panicregion.PutList(m.image[pageSize:], &m.static, panicregion.Runs(m.frames)); err != nil {
		t.Fatal(err)
	}
	m.writeRun()
}

func (m *made) writeRun() {
	b := unsafe.Slice((*byte)(unsafe.Pointer(&m.run)), unsafe.Sizeof(m.run))
	sum := uint64(0xcbf29ce484222325)
	for at := int(unsafe.Offsetof(m.run.Hook)); at < int(unsafe.Offsetof(m.run.Sum)); at += 8 {
		sum = (sum ^ binary.LittleEndian.Uint64(b[at:])) * 0x100000001b3
	}
	if m.run.Sum = sum; m.run.State == panicregion.StateTaken {
		m.run.Sum = 0
	}
	copy(m.image[panicregion.RunAt:], b)
}

// records are those of the image.
func (m *made) records() []byte {
	s := m.static.Sections[1]
	return m.image[s.Off:][:s.Len]
}

// into puts the region into a dump.
func (m *made) into(mem *memory) {
	for i, at := range m.frames {
		mem.pages[at] = slices.Clone(m.image[i*pageSize:][:pageSize])
	}
}

// dump is a dump that has the region and pages of other things around it.
func (m *made) dump() *memory {
	mem := newMemory()
	for at := uint64(0x100000); at < 0x100000+uint64(len(m.frames))*4*pageSize; at += pageSize {
		mem.pages[at] = make([]byte, pageSize)
	}
	m.into(mem)
	return mem
}
