package extract

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"stackshot/internal/panicregion"
	"stackshot/internal/testneed"
	"stackshot/internal/vmcore"
	"stackshot/kcdata"
)

// file extracts the best region of a dump.
func file(t testing.TB, mem *memory) (*kcdata.Snapshot, *Result, *Found, error) {
	t.Helper()
	found, err := Find(mem)
	if err != nil {
		t.Fatal(err)
	}
	if len(found.Regions) == 0 {
		return nil, nil, found, errors.New("no region")
	}
	var out bytes.Buffer
	res, err := Collate(&out, found.Regions[0], Options{Version: "test"})
	if err != nil {
		return nil, nil, found, err
	}
	s, err := kcdata.ParseSnapshot(out.Bytes())
	if err != nil || len(s.Problems) > 0 {
		t.Fatalf("%v, %q", err, s.Problems)
	}
	return s, res, found, nil
}

func TestExtractWhole(t *testing.T) {
	m := makeRegion(t, 40)
	s, res, _, err := file(t, m.dump())
	if err != nil {
		t.Fatal(err)
	}
	if len(res.Missing) > 0 || len(s.Warnings) > 0 {
		t.Errorf("%q, %q", res.Missing, s.Warnings)
	}
	if len(s.Tasks) != 40 || s.ThreadCount() != int(m.run.Threads) || s.Engine != "panic" || s.Isolation != "none" || s.Hostname != "dead" || s.BootID != "boot" {
		t.Errorf("%d tasks, %d threads, %s, %s, %s", len(s.Tasks), s.ThreadCount(), s.Engine, s.Isolation, s.Hostname)
	}
	if s.Machine.MonotonicNs != 5e9 || s.Machine.BoottimeNs != 7e9 || s.Machine.RealtimeNs != m.desc.BootEpochNs+7e9 {
		t.Errorf("%+v", s.Machine)
	}
	p := s.Panic
	if p == nil || p.Outcome != kcdata.PanicWhole || p.CPU != 1 || p.Tid != 110 || p.Flags != kcdata.PanicPreemptOff|kcdata.PanicIRQOff|kcdata.PanicStackCut|kcdata.PanicFromDump ||
		!strings.HasPrefix(string(p.Message[:]), "sysrq triggered crash\x00") || !strings.HasPrefix(string(p.Hook[:]), "vpanic\x00") {
		t.Errorf("%+v", p)
	}
	for i, task := range s.Tasks {
		for j, th := range task.Threads {
			want := 3
			if th.ID == 110 { // the hook's own frame is cut
				want = 2
			}
			if task.ID != uint64(100+10*i) || th.ID != task.ID+uint64(j) || len(th.Kernel) != want {
				t.Errorf("task %d, thread %d, %d frames", task.ID, th.ID, len(th.Kernel))
			}
			if name, ok := s.Symbols.Name(th.Kernel[len(th.Kernel)-1]); !ok || name.Name != "panic" {
				t.Errorf("%+v", name)
			}
		}
	}
	if c := s.CPUs[1]; len(s.CPUs) != 2 || c.Flags != kcdata.CPUWorked|kcdata.CPUMain|kcdata.CPURanKnown || c.RanTid != 110 {
		t.Errorf("%+v", s.CPUs)
	}
}

// A walk that stopped anywhere gives each thread that was whole, and says that it did not end.
func TestInProgressAtEveryThread(t *testing.T) {
	m := makeRegion(t, 5)
	w := kcdata.NewEditor(m.records()[:m.run.Bytes])
	var ends []uint64 // of items: a walk's bytes end at one
	for it, err := range w.Items() {
		if err != nil {
			t.Fatal(err)
		}
		ends = append(ends, uint64(it.Offset))
	}
	m.run.State, m.run.Outcome, m.run.Ended = panicregion.StateTaken, panicregion.InProgress, 0
	last := 0
	for _, at := range ends[1:] {
		m.run.Bytes = at
		m.writeRun()
		s, res, found, err := file(t, m.dump())
		if err != nil {
			t.Fatalf("%d bytes: %v", at, err)
		}
		if n := s.ThreadCount(); n < last || len(res.Missing) == 0 || s.Panic.Outcome != kcdata.PanicInProgress {
			t.Errorf("%d bytes: %d threads, %q", at, n, res.Missing)
		} else {
			last = n
		}
		wholes := 0
		for _, end := range m.ends {
			if end <= at {
				wholes++
			}
		}
		if len(s.Tasks) < wholes || len(s.Tasks) > wholes+1 {
			t.Errorf("%d bytes: %d tasks, %d are whole; %q %q", at, len(s.Tasks), wholes, s.Warnings, found.Regions[0].Flaws)
		}
	}
	if last != 1+2+3+1+2 {
		t.Errorf("%d threads at the end", last)
	}
	// Bytes that end inside an item: what is whole before comes out.
	for at := uint64(1); at < m.ends[4]; at += uint64(testneed.Length(11, 1)) {
		m.run.Bytes = at
		m.writeRun()
		wholes := 0
		for _, end := range m.ends {
			if end <= at {
				wholes++
			}
		}
		s, _, _, err := file(t, m.dump())
		if err == nil && len(s.Tasks) < wholes || err != nil && wholes > 0 {
			t.Fatalf("%d bytes: %v, %d tasks are whole", at, err, wholes)
		}
	}
}

// Each flipped bit of the head is seen: what comes out is what the other copy says, or it is named.
func TestEveryBitOfAHead(t *testing.T) {
	m := makeRegion(t, 3)
	m.static.Generation++ // a second copy
	m.static.Written++
	m.write(t)
	mem := m.dump()
	head := mem.pages[m.frames[0]]
	step := testneed.Length(13, 1)
	for bit := 0; bit < pageSize*8; bit += step {
		at := bit / 8
		if at >= panicregion.RunAt+panicregion.WalkBytes {
			break
		}
		head[at] ^= 1 << (bit % 8)
		s, res, found, err := file(t, mem)
		r := found.Regions[0]
		inStatic := at < panicregion.CopyBytes || at >= 1024 && at < 1024+panicregion.CopyBytes
		inWalk := at >= panicregion.RunAt+128
		switch {
		case err != nil && !strings.Contains(err.Error(), "damaged") && !strings.Contains(err.Error(), "empty"):
			t.Fatalf("bit %d: %v", bit, err)
		case err == nil && (inStatic && at%1024 >= 8 || inWalk) && len(r.Flaws) == 0:
			t.Fatalf("bit %d: nothing is said: %q, %+v", bit, res.Missing, s.Panic)
		case err == nil && inWalk && s.Panic.Flags&kcdata.PanicTorn == 0:
			t.Fatalf("bit %d: not marked", bit)
		case inStatic && (err != nil || len(s.Tasks) != 3):
			t.Fatalf("bit %d: %v: the other copy is whole", bit, err)
		}
		head[at] ^= 1 << (bit % 8)
	}
}

// Any damaged list page makes the region unusable, in words; an honest frames file mends that.
func TestTornLists(t *testing.T) {
	m := makeRegion(t, 3)
	lists := int(m.static.ListPages)
	frames := slices.Clone(m.image[:(1+lists)*pageSize])
	for i := range lists {
		for _, how := range []string{"flipped", "absent", "two forms", "foreign frame"} {
			mem := m.dump()
			page := mem.pages[m.frames[1+i]]
			switch how {
			case "flipped":
				page[i*37%pageSize] ^= 4
			case "absent":
				mem.lost[m.frames[1+i]] = vmcore.ErrAbsent
			case "two forms":
				other := makeRegion(t, 3)
				mem.pages[0x10000] = slices.Clone(other.image[(1+i)*pageSize:][:pageSize])
			case "foreign frame":
				bad := *m
				bad.frames = slices.Clone(m.frames)
				bad.frames[len(bad.frames)-1] = 1 << 40
				bad.image = slices.Clone(m.image)
				bad.write(t)
				mem = m.dump()
				for j := range lists {
					mem.pages[m.frames[1+j]] = slices.Clone(bad.image[(1+j)*pageSize:][:pageSize])
				}
			}
			_, _, found, err := file(t, mem)
			if how == "foreign frame" { // only the last page, behind the records, is elsewhere
				if err != nil {
					t.Errorf("%s: %v", how, err)
				}
				continue
			}
			if !errors.Is(err, panicregion.ErrDamaged) {
				t.Errorf("%s: %v, %d", how, err, len(found.Regions))
			}
			got, err := FromFrames(mem, frames)
			if err != nil || got.Regions[0].Err != nil {
				t.Errorf("%s: by frames: %v, %v", how, err, got.Regions[0].Err)
			}
		}
	}
}

// A frame twice in the list, a run of no pages, one beyond all memory: refused.
func TestHostileRuns(t *testing.T) {
	for name, runs := range map[string][]panicregion.Run{
		"twice": {{Phys: 0x1000, Count: 4}, {Phys: 0x3000, Count: 1}}, "none": {{Phys: 0x1000}}, "odd": {{Phys: 0x1001, Count: 1}},
		"beyond": {{Phys: 1 << 60, Count: 1}}, "endless": {{Phys: 0, Count: 1 << 60}},
	} {
		if err := new(Region).place(newMemory(), runs); !errors.Is(err, panicregion.ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Two regions of one boot: the newer one that recorded something. Of another boot: named, and left out.
func TestWhichRegion(t *testing.T) {
	old, empty := makeRegion(t, 2), makeRegion(t, 7)
	empty.static.Region, empty.static.Written = 99, 5000
	empty.run.State = panicregion.StateFree
	shift := func(m *made, by uint64) {
		for i := range m.frames {
			m.frames[i] += by
		}
		m.write(t)
	}
	shift(empty, 1<<30)
	mem := old.dump()
	empty.into(mem)
	s, _, found, err := file(t, mem)
	if err != nil || len(s.Tasks) != 2 || len(found.Regions) != 2 || !strings.Contains(found.Regions[1].Err.Error(), "empty") {
		t.Fatal(err, found.Regions)
	}
	newer := makeRegion(t, 9)
	newer.static.Region, newer.static.Written = 200, 6000
	shift(newer, 2<<30)
	newer.into(mem)
	if s, _, _, err := file(t, mem); err != nil || len(s.Tasks) != 9 {
		t.Fatal(err)
	}
	foreign := makeRegion(t, 11)
	foreign.static.Region, foreign.static.Written, foreign.static.BootID = 300, 4000, [16]byte{9}
	shift(foreign, 3<<30)
	foreign.into(mem)
	s, _, found, err = file(t, mem)
	i := slices.IndexFunc(found.Regions, func(r *Region) bool { return errors.Is(r.Err, ErrForeign) })
	if err != nil || len(s.Tasks) != 9 || i < 0 || found.Regions[i].Static.Region != 300 || !strings.Contains(found.Regions[i].Line(), "of another boot") {
		t.Fatal(err, i)
	}
	// The dump's own words count more than times.
	mem.info["BUILD-ID"] = "cd"
	if _, _, found, err := file(t, mem); !errors.Is(err, ErrForeign) || len(found.Regions) != 4 {
		t.Error(err)
	}
	mem.info["BUILD-ID"], mem.info["SYMBOL(_stext)"] = "ab", "ffffffff9a000000"
	if _, _, _, err := file(t, mem); !errors.Is(err, ErrForeign) {
		t.Error(err)
	}
	mem.info["SYMBOL(_stext)"] = "ffffffff81010000"
	if _, _, _, err := file(t, mem); err != nil {
		t.Error(err)
	}
}

// A description that is half written, or lost, costs the names and nothing else.
func TestWithoutDescription(t *testing.T) {
	m := makeRegion(t, 4)
	m.image[m.static.Sections[0].Off+5] ^= 1
	s, res, _, err := file(t, m.dump())
	if err != nil || len(s.Tasks) != 4 || len(res.Missing) == 0 || s.Arch != "x86_64" || s.BootID != "01020000-0000-0000-0000-000000000000" {
		t.Fatal(err, res)
	}
	if text := fmt.Sprint(s.Warnings); !strings.Contains(text, "description of the machine") || !strings.Contains(text, "no_symbols") {
		t.Error(text)
	}
}

// A page of the records that is lost costs the tasks that lie in it, and they are counted. One that a
// dump level left out counts as zeros, and is counted.
func TestLostPages(t *testing.T) {
	m := makeRegion(t, 200)
	first := int(m.static.Sections[1].Off / pageSize)
	used := int(m.run.Bytes / pageSize)
	if used < 4 {
		t.Fatal("the records are too small for this test")
	}
	for page := range used {
		mem := m.dump()
		mem.lost[m.frames[first+page]] = vmcore.ErrDamaged
		s, res, _, err := file(t, mem)
		if err != nil {
			t.Fatal(err)
		}
		from, to := uint64(page*pageSize), uint64((page+1)*pageSize)
		whole := 0
		for i, end := range m.ends {
			begin := uint64(0)
			if i > 0 {
				begin = m.ends[i-1]
			}
			if end <= from || begin >= to {
				whole++
			}
		}
		if len(s.Tasks) != whole || len(res.Missing) == 0 || s.Panic.PagesLost == 0 {
			t.Errorf("page %d: %d tasks, want %d; %q", page, len(s.Tasks), whole, res.Missing)
		}
	}
	mem := m.dump()
	mem.lost[m.frames[len(m.frames)-1]] = vmcore.ErrAbsent // behind the records
	if s, res, _, err := file(t, mem); err != nil || len(s.Tasks) != 200 || len(res.Missing) > 0 || s.Panic.PagesAbsent != 0 {
		t.Error(err, res)
	}
}

func FuzzRegion(f *testing.F) {
	m := makeRegion(f, 4)
	f.Add(m.image[:pageSize], m.records()[:m.run.Bytes], uint16(3), uint16(0))
	f.Fuzz(func(t *testing.T, head, records []byte, lose, list uint16) {
		m := makeRegion(t, 1)
		copy(m.image[:pageSize], head)
		copy(m.records(), records)
		m.image[pageSize+int(list)%pageSize] ^= byte(list >> 12)
		mem := m.dump()
		if lose != 0 {
			mem.lost[m.frames[int(lose)%len(m.frames)]] = vmcore.ErrDamaged
		}
		if s, res, _, err := file(t, mem); err == nil && len(s.Tasks) != res.Tasks {
			t.Errorf("%d tasks, %d", len(s.Tasks), res.Tasks)
		}
		r := FromMemory(m.image)
		var out bytes.Buffer
		Collate(&out, r, Options{})
		r.Line()
	})
}
