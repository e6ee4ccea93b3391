package extract

import (
	"encoding/binary"
	"slices"
	"strings"
	"testing"
	"time"

	"stackshot/internal/panicregion"
	"stackshot/internal/testheap"
	"stackshot/internal/testneed"
	"stackshot/internal/vmcore"
	"stackshot/kcdata"
)

// However many pages are lost, each of them is known.
func TestEveryLostPageIsKnown(t *testing.T) {
	r := new(Region)
	const n = 70_000
	for i := range uint64(n) {
		r.miss(2*i, vmcore.ErrDamaged)
	}
	for _, page := range []uint64{0, 2, 2 * (n - 1)} {
		if !r.lostIn(page*pageSize, 1) {
			t.Errorf("page %d", page)
		}
	}
	if r.lostIn(3*pageSize, pageSize) || !r.lostIn(3*pageSize, pageSize+1) {
		t.Error("page 3 is there, page 4 is not")
	}
}

// holed is memory of which only the pages below an address are there. It counts what is read.
type holed struct {
	*memory
	end, read uint64
}

func (m *holed) ReadPhys(p []byte, pa uint64) error {
	m.read += min(uint64(len(p)), m.end-min(m.end, pa))
	if pa+uint64(len(p)) > m.end {
		return vmcore.ErrDamaged
	}
	return nil
}

// One lost page at the end of a long run does not have the run read again and again.
func TestLostEndIsReadOnce(t *testing.T) {
	const pages = 4096
	mem := &holed{memory: newMemory(), end: (pages - 1) * pageSize}
	r := new(Region)
	if err := r.place(mem, []panicregion.Run{{Phys: 0, Count: pages}}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.ReadAt(make([]byte, pages*pageSize), 0); err != nil || !r.lostIn((pages-1)*pageSize, 1) || r.lostIn(0, (pages-1)*pageSize) {
		t.Fatal(err)
	}
	if mem.read > 2*pages*pageSize {
		t.Errorf("%d MiB of %d were read", mem.read>>20, pages*pageSize>>20)
	}
}

// itemHead is the header of an item.
func itemHead(b []byte, t kcdata.Type, size uint32, flags uint64) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(t))
	b = binary.LittleEndian.AppendUint32(b, size)
	return binary.LittleEndian.AppendUint64(b, flags)
}

// Records made so that a task seems to begin at each of many places, and that each of these takes a walk through all the
// rest to be found wanting: the search gives up in time, and says so.
func TestSplitEnds(t *testing.T) {
	testneed.Lab(t, testneed.Time)
	const starts, tail = 40_000, 1 << 20 // items
	var b []byte
	end := uint32(starts * 48)
	for i := range uint32(starts) {
		b = itemHead(b, kcdata.TypeContainerBegin, 4, 7)
		b = append(binary.LittleEndian.AppendUint32(b, uint32(kcdata.TypeTask)), make([]byte, 12)...)
		b = itemHead(b, kcdata.TypeTaskSnapshot, end-(i+1)*48, 0) // leaps over all other starts
	}
	for range tail {
		b = itemHead(b, kcdata.TypeLinuxMeminfo, 0, 0)
	}
	b = itemHead(b, kcdata.TypeLinuxMeminfo, 1<<30, 0)
	good, _ := someTasks(t, 1)
	b = append(slices.Clone(good), b...)
	r := &Region{image: b, Static: new(panicregion.Static)}
	began := time.Now()
	s := split(r, 0, uint64(len(b)))
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("%v", took)
	}
	if text := strings.Join(s.flaws, "; "); len(s.spans) != 1 || !strings.Contains(text, "are left out") || len(s.flaws) > maxFlaws+2 || s.skipped != uint64(len(b)-len(good)) {
		t.Errorf("%d tasks, %d bytes skipped: %s", len(s.spans), s.skipped, text)
	}
}

// A frames file that has everything twice has one region.
func TestFramesTwice(t *testing.T) {
	m := makeRegion(t, 3)
	frames := m.image[:(1+int(m.static.ListPages))*pageSize]
	found, err := FromFrames(m.dump(), slices.Concat(frames, frames))
	if err != nil || len(found.Regions) != 1 || found.Regions[0].Err != nil {
		t.Errorf("%v, %d regions", err, len(found.Regions))
	}
}

// Lists of many regions, each with as many runs as one may have: together they take no more memory than one.
func TestManyLongLists(t *testing.T) {
	var file []byte
	for i := range 4 {
		runs := make([]panicregion.Run, maxRuns)
		for j := range runs {
			runs[j] = panicregion.Run{Phys: uint64(2*j) * pageSize, Count: 1}
		}
		lists := (len(runs) + panicregion.RunsPerPage - 1) / panicregion.RunsPerPage
		s := &panicregion.Static{Kind: panicregion.KindPanic, Region: uint64(i + 1), Pages: maxRuns, ListPages: uint32(lists)}
		b := make([]byte, (1+lists)*pageSize)
		if err := panicregion.PutStatic(b, s); err != nil {
			t.Fatal(err)
		}
		if err := panicregion.PutList(b[pageSize:], s, runs); err != nil {
			t.Fatal(err)
		}
		file = append(file, b...)
	}
	testheap.Bound(t, 80<<20, "four lists", func() {
		found, err := FromFrames(newMemory(), file)
		if err != nil || len(found.Regions) != 4 {
			t.Errorf("%v, %d regions", err, len(found.Regions))
		}
	})
}

// What a region says of itself is one line, however it was damaged.
func TestLineIsOneLine(t *testing.T) {
	m := makeRegion(t, 1)
	m.run.Hook, m.run.Key = panicregion.HookSysrq, '\n'
	m.writeRun()
	r := FromMemory(m.image)
	if text := r.Line(); strings.Contains(text, "\n") || !strings.Contains(text, `SysRq \x0a`) {
		t.Error(text)
	}
	info := map[string]string{"BUILD-ID": strings.Repeat("ab", 1<<19)}
	if text := foreignTo(info, r.Static); len(text) > 300 || text == "" {
		t.Errorf("%d bytes", len(text))
	}
}

// Tasks that are too many are left out, in bytes that are counted; as many as may be are no fault.
func TestMostTasks(t *testing.T) {
	var b []byte
	for i := range uint64(maxTasks + 1) {
		b = itemHead(b, kcdata.TypeContainerBegin, 4, i)
		b = append(binary.LittleEndian.AppendUint32(b, uint32(kcdata.TypeTask)), make([]byte, 12)...)
		b = itemHead(b, kcdata.TypeContainerEnd, 0, i)
	}
	r := &Region{image: b, Static: new(panicregion.Static)}
	if s := split(r, 0, uint64(len(b))); len(s.spans) != maxTasks || s.skipped != 48 || len(s.flaws) != 1 {
		t.Errorf("%d tasks, %d bytes skipped, %q", len(s.spans), s.skipped, s.flaws)
	}
	if s := split(r, 0, uint64(len(b)-48)); len(s.spans) != maxTasks || s.skipped != 0 || len(s.flaws) != 0 {
		t.Errorf("%d tasks, %d bytes skipped, %q", len(s.spans), s.skipped, s.flaws)
	}
}
