package snapshot

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"stackshot/internal/bpf"
	"stackshot/internal/capture"
	"stackshot/internal/engine/stop"
	"stackshot/internal/engine/trap"
	"stackshot/internal/extract"
	"stackshot/internal/panicregion"
	"stackshot/internal/testneed"
	"stackshot/internal/testtask"
	"stackshot/internal/trapmemory"
	"stackshot/kcdata"
)

// fakeResident is what stackshot arm keeps: a map for stops, and the file that says so, locked.
type fakeResident struct {
	path  string
	stops *ebpf.Map
	lock  *os.File
}

func newResident(t *testing.T) *fakeResident {
	t.Helper()
	m, err := ebpf.NewMap(&ebpf.MapSpec{
		Name: "panic_live", Type: ebpf.ArrayOfMaps, KeySize: 4, ValueSize: 4, MaxEntries: 4,
		InnerMap: &ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: uint32(unsafe.Sizeof(bpf.Stop{})), MaxEntries: 1, Flags: unix.BPF_F_MMAPABLE},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	r := &fakeResident{path: filepath.Join(t.TempDir(), "armed"), stops: m}
	info, err := m.Info()
	if err != nil {
		t.Fatal(err)
	}
	id, _ := info.ID()
	r.write(t, fmt.Sprintf("pid %d\nsince 1\nlive %d\nregion 2\n", os.Getpid(), id))
	return r
}

func (r *fakeResident) write(t *testing.T, text string) {
	t.Helper()
	if r.lock != nil {
		r.lock.Close()
	}
	os.Remove(r.path)
	if err := os.WriteFile(r.path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(r.path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if err := unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_WRLCK}); err != nil {
		t.Fatal(err)
	}
	r.lock = f
}

// entered counts the slots that are taken.
func (r *fakeResident) entered() (n int) {
	var id uint32
	for i := range uint32(4) {
		if r.stops.Lookup(i, &id) == nil {
			n++
		}
	}
	return n
}

// A capture tells the resident its stop, once for each trap that it loads, and takes it back.
// What cannot be told is a warning.
func TestCaptureTellsTheResident(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	requireTrap(t)
	r := newResident(t)
	s, e := trapSession(t, Options{})
	s.resident.path = r.path
	for range 2 {
		if res, _, _ := captureWhole(t, s, Request{}); hasWarning(res, "panic_not_told") || r.entered() != 1 {
			t.Fatalf("%d stops entered, warnings %v", r.entered(), res.Warnings)
		}
	}
	head := s.resident.place.Bytes()
	static, err := panicregion.ReadStatic(head)
	if err != nil || static.Kind != panicregion.KindLive || len(static.Sections) != 7 {
		t.Fatalf("%+v, %v", static, err)
	}
	old := s.resident.place
	if err := e.Load(e.Mem.AtLeast(s.firstSize(scope{tasks: 9000, threads: 90000}))); err != nil {
		t.Fatal(err)
	}
	if captureWhole(t, s, Request{}); s.resident.place == old || r.entered() != 1 {
		t.Errorf("another trap is loaded: %d stops entered", r.entered())
	}
	for n := uint32(0); n < 4; n++ { // somebody else took all slots
		other, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: uint32(unsafe.Sizeof(bpf.Stop{})), MaxEntries: 1, Flags: unix.BPF_F_MMAPABLE})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.stops.Put(n, other); err != nil {
			t.Fatal(err)
		}
		other.Close()
	}
	if res, _, _ := captureWhole(t, s, Request{}); hasWarning(res, "panic_not_told") || !s.resident.stops.Has(e.Loaded) {
		t.Errorf("all slots are taken: warnings %v", res.Warnings)
	}
	if r.lock.Close(); r.lock != nil { // disarmed
		captureWhole(t, s, Request{})
	}
	if s.resident.place != nil || r.entered() != 3 {
		t.Errorf("disarmed: %d stops entered", r.entered())
	}
	r.write(t, "pid 1\nsince 1\nlive 4294967295\nregion 5\n")
	if res, _, _ := captureWhole(t, s, Request{}); !hasWarning(res, "panic_not_told") {
		t.Errorf("a map that does not exist: warnings %v", res.Warnings)
	}
}

// placedMemory is what a dump has of a live capture: head and list, then the trap's memory.
func placedMemory(s *Session, e *trap.Engine) []byte {
	all := bytes.Clone(s.resident.place.Bytes())
	for _, name := range []string{"stops", "workers", "", "queue", "parts", "pieces", "region"} {
		mem := s.team.Objects.MappedSlots()
		if name != "" {
			mem = e.Loaded.Mapped(name)
		}
		all = append(all, mem...)
	}
	return all
}

// After a panic in the middle of a stop the memory alone gives the threads that were
// recorded, and names the others.
func TestLiveRegionAfterAPanic(t *testing.T) {
	testneed.Lab(t, testneed.Time)
	testneed.Slow(t)
	requireTrap(t)
	requireTwoCPUs(t)
	testtask.Start(t, testtask.Bystanders(200), testtask.ManyThreads(1000))
	r, p := newResident(t), &panicker{t: t, phase: stop.PhaseCommitted}
	s := openTest(t, Options{Engine: EngineTrap, Buffer: 64 << 20}, p.hooks(false))
	p.engine = s.engine.(*trap.Engine)
	s.resident.path = r.path
	some, inPart := 0, 0
	p.actor = s.plan.Stop[flagInt(s.plan.Main == s.plan.Stop[0])] // main's census comes before any record
	for range testneed.Length(120, 400) {                         // until a panic has met the large task, too: that is by chance
		p.after = slow(time.Millisecond/2 + rand.N(5*time.Millisecond))
		if p.once(s) == 0 {
			continue
		}
		p.engine.Loaded.Stop.Word |= uint64(stop.PhasePanicked) // once took it back
		mem := placedMemory(s, p.engine)
		c := live(t, s, mem)
		p.engine.Loaded.Stop.Word = 0
		if len(c.Recorded) == 0 {
			continue
		}
		if some++; some > testneed.Length(8, 80) && inPart > 0 {
			break
		}
		if some == 1 {
			streamedIsWhole(t, s, mem)
		}
		file := liveFile(t, mem, len(c.Failed))
		for _, task := range file.Tasks {
			if len(task.Threads) > 100 && len(task.Threads) < 1000 {
				inPart++
			}
		}
	}
	t.Logf("%d captures that a panic ended, %d with a part of the large task", some, inPart)
	if some < 5 || inPart == 0 {
		t.Errorf("%d captures that a panic ended, %d with a part of the large task", some, inPart)
	}
}

// live reads a live region, in which every task is accounted for.
func live(t *testing.T, s *Session, mem []byte) *capture.Raw {
	t.Helper()
	static, err := panicregion.ReadStatic(mem)
	if err != nil {
		t.Fatal(err)
	}
	if uint64(len(mem)) != static.Pages*panicregion.PageSize {
		t.Fatalf("%d bytes, %d pages", len(mem), static.Pages)
	}
	c, err := trapmemory.Live(static, bytes.NewReader(mem))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[uint32]bool{}
	for _, x := range c.Recorded {
		seen[x.Item.Index] = true
	}
	for _, x := range c.Failed {
		seen[x.Item.Index] = true
		if x.Reason != kcdata.LeftOutPanic {
			t.Errorf("left out: %+v", x)
		}
	}
	if len(seen) != c.SeenTasks || len(c.CPUs) != len(s.plan.Stop) {
		t.Errorf("%d tasks accounted for of %d, %d CPUs", len(seen), c.SeenTasks, len(c.CPUs))
	}
	return c
}

// liveFile is the file that extraction makes of a live region.
func liveFile(t *testing.T, mem []byte, missing int) *kcdata.Snapshot {
	t.Helper()
	var out bytes.Buffer
	res, err := extract.Collate(&out, extract.FromMemory(mem), extract.Options{Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	snap, err := kcdata.ParseSnapshot(out.Bytes()) // no region beside it says which machine this is
	if err != nil || len(snap.Problems) > 0 {
		t.Fatal(err, snap.Problems)
	}
	for _, task := range snap.Tasks {
		if len(task.Threads) == 0 {
			t.Errorf("task %d has no thread", task.ID)
		}
	}
	if !hasCode(snap, "kernel_panicked") || (len(snap.LeftOut) == 0) != (missing == 0) || (len(res.Missing) == 0) != (missing == 0) {
		t.Errorf("warnings %v, %d left out, missing %q", snap.Warnings, len(snap.LeftOut), res.Missing)
	}
	return snap
}

// streamedIsWhole: read task by task, a live capture makes the same file as out of memory.
func streamedIsWhole(t *testing.T, s *Session, mem []byte) {
	t.Helper()
	load := func(parts []capture.Part) (out [][]byte, err error) {
		for _, p := range parts {
			for _, span := range p.Spans {
				out = append(out, bytes.Clone(mem[span.Off:][:span.Len]))
			}
			out = append(out, p.Pieces...)
		}
		return out, nil
	}
	files := [2]bytes.Buffer{}
	for i := range files {
		k, c := s.collating(), live(t, s, mem)
		k.KeepUserSide, k.Dead, k.Load = true, true, load
		if i == 1 {
			k.Load = nil
			for n := range c.Recorded {
				c.Recorded[n].Pieces, _ = load(c.Recorded[n : n+1])
			}
		}
		if _, err := k.Write(&files[i], c); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(files[0].Bytes(), files[1].Bytes()) {
		t.Errorf("streamed %d bytes, out of memory %d", files[0].Len(), files[1].Len())
	}
}

// A head that leads to memory of somebody else, or of no capture, is no live capture; nothing that
// stands there makes the reader fail, or read without end.
func TestLiveRegionIsHostile(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	requireTrap(t)
	r := newResident(t)
	s, e := trapSession(t, Options{})
	s.resident.path = r.path
	captureWhole(t, s, Request{})
	mem := placedMemory(s, e)
	static, err := panicregion.ReadStatic(mem)
	if err != nil {
		t.Fatal(err)
	}
	if c, err := trapmemory.Live(static, bytes.NewReader(mem)); err == nil {
		t.Errorf("a capture that is over: %d parts", len(c.Recorded))
	}
	at, _ := static.Section(panicregion.SectionStop)
	mem[at.Off] = byte(stop.PhasePanicked)
	if whole := live(t, s, mem); len(whole.Recorded) == 0 {
		t.Fatal("nothing is recorded")
	}
	small := len(mem) - int(static.Sections[6].Len) // all but the records
	for i := range testneed.Length(100, 5000) {
		torn := bytes.Clone(mem)
		for range 1 + i%40 {
			torn[rand.N(small)] = byte(rand.N(256))
		}
		torn[at.Off] = byte(stop.PhasePanicked)
		if c, err := trapmemory.Live(static, bytes.NewReader(torn)); err == nil {
			bytes := uint64(0)
			for _, p := range c.Recorded {
				for _, span := range p.Spans {
					bytes += span.Len
				}
			}
			if bytes > uint64(len(mem)) {
				t.Errorf("%d bytes of records out of %d", bytes, len(mem))
			}
		}
	}
}
