package kcdata

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// cutUp is b in pieces that end anywhere, each in memory of its own; some are empty.
func cutUp(rng *rand.Rand, b []byte, pieces int) (out [][]byte) {
	at := []int{0, len(b)}
	for range pieces - 1 {
		at = append(at, rng.IntN(len(b)+1))
	}
	slices.Sort(at)
	for i := range pieces {
		out = append(out, bytes.Clone(b[at[i]:at[i+1]]))
	}
	return out
}

// read reads all items of an editor.
func read(e *Editor) (items []Item, err error) {
	for it, err := range e.Items() {
		if err != nil {
			return items, err
		}
		items = append(items, it)
	}
	return items, nil
}

// result is what an editor writes.
func result(t testing.TB, e *Editor) []byte {
	t.Helper()
	var out bytes.Buffer
	n, err := e.WriteTo(&out)
	ok(t, err)
	if int(n) != out.Len() || e.Len() != out.Len() {
		t.Fatalf("%d bytes, it says %d and %d", out.Len(), n, e.Len())
	}
	return out.Bytes()
}

// sameItems compares what two readings gave; offsets of want begin at first.
func sameItems(t *testing.T, got, want []Item, first int) {
	t.Helper()
	if !slices.EqualFunc(got, want, func(a, b Item) bool {
		return a.Type == b.Type && a.Flags == b.Flags && a.Offset == b.Offset-first && a.Depth == b.Depth && a.elemSize == b.elemSize && bytes.Equal(a.Data, b.Data) && bytes.Equal(a.raw, b.raw)
	}) {
		t.Fatalf("items\n%+v, want\n%+v", got, want)
	}
}

// model is a file as a list of items, edited the naive way.
type model struct {
	items [][]byte
	gaps  [][][]byte // what is put before the i-th item; one more than items
}

func (m *model) bytes() []byte {
	var out []byte
	for i, gap := range m.gaps {
		out = append(out, slices.Concat(gap...)...)
		if i < len(m.items) {
			out = append(out, m.items[i]...)
		}
	}
	return out
}

// randomItems are some whole items, containers balanced.
func randomItems(t testing.TB, rng *rand.Rand, n int) []byte {
	w := NewWriter(make([]byte, 1<<10*n))
	for _, c := range randomCalls(rng, n) {
		ok(t, c.do(w))
	}
	return w.Written()
}

// K16: edits of a run of items that is cut anywhere, made in any order, are those of
// a list of items; what Patch does is what decoding, changing and encoding does.
func TestK16EditorModel(t *testing.T) {
	for seed := range uint64(3000) {
		rng := rand.New(rand.NewPCG(seed, 16))
		plain := randomItems(t, rng, rng.IntN(25))
		e := NewEditor(cutUp(rng, plain, 1+rng.IntN(12))...)
		items, err := read(e)
		ok(t, err)
		m := model{gaps: make([][][]byte, len(items)+1)}
		for _, it := range items {
			m.items = append(m.items, bytes.Clone(it.Position().Bytes()))
		}
		if !bytes.Equal(slices.Concat(m.items...), plain) {
			t.Fatalf("seed %d: the items are not the file", seed)
		}
		done := map[int]bool{}
		for range rng.IntN(2 * (len(items) + 1)) {
			if len(items) > 0 {
				randomEdit(t, rng, e, &m, items, rng.IntN(len(items)), done)
			}
		}
		want := m.bytes()
		if got := result(t, e); !bytes.Equal(got, want) {
			t.Fatalf("seed %d:\n%x, want\n%x", seed, got, want)
		}
		if again := result(t, e); !bytes.Equal(again, want) {
			t.Fatalf("seed %d: written twice:\n%x, want\n%x", seed, again, want)
		}
	}
}

// randomEdit makes one edit of the i-th item, in the editor and in the model.
func randomEdit(t *testing.T, rng *rand.Rand, e *Editor, m *model, items []Item, i int, done map[int]bool) {
	it, put := items[i], randomItems(t, rng, rng.IntN(3))
	mark := it.Type == TypeContainerBegin || it.Type == TypeContainerEnd
	switch k := rng.IntN(5); {
	case k == 0:
		e.InsertAfter(it.Position(), put)
		m.gaps[i+1] = append(m.gaps[i+1], put)
	case k == 1 && !mark && !done[i]:
		e.Replace(it.Position(), put)
		m.items[i], done[i] = put, true
	case k == 2 && !mark && !done[i]:
		e.Remove(it.Position())
		m.items[i], done[i] = nil, true
	case k == 3 && it.Type == TypeLinuxSignals && !done[i]:
		ok(t, Patch(it.Position(), func(s *LinuxSignals) { s.Blocked++ }))
		var s LinuxSignals
		ok(t, Unmarshal(m.items[i][headerSize:], &s))
		s.Blocked++
		copy(m.items[i][headerSize:], packed(&s))
	case k == 3 && arrayElem(it) == TypeLinuxThreadNS && !done[i]:
		ok(t, Patch(it.Position(), func(n *LinuxThreadNS) { n.Tid ^= 5 }))
		for j := 4; j < len(it.Data); j += 8 {
			m.items[i][headerSize+j] ^= 5
		}
	default:
		e.InsertBefore(it.Position(), put)
		m.gaps[i] = append(m.gaps[i], put)
	}
}

// An item that lies in two pieces, cut at any byte of it, or in seventeen, is read and
// patched as any other; only that one is copied.
func TestK16EditorStraddle(t *testing.T) {
	one := func(id uint32) []byte {
		w := NewWriter(make([]byte, 1<<10))
		ok(t, w.Struct(TypeLinuxThread, &LinuxThread{Tid: id}))
		ok(t, w.Bytes(0x7777, []byte{1, 2, 3})) // 13 bytes of padding
		return w.Written()
	}
	plain := slices.Concat(one(1), one(2), one(3))
	for from := range len(plain) {
		for _, pieces := range [][][]byte{
			{plain[:from], plain[from:]},
			{plain[:from], plain[from:min(from+1, len(plain))], plain[min(from+1, len(plain)):]},
			append([][]byte{plain[:from]}, slices.Collect(slices.Chunk(plain[from:], 17))...),
		} {
			given := make([][]byte, len(pieces))
			for i := range pieces {
				given[i] = bytes.Clone(pieces[i])
			}
			e := NewEditor(given...)
			items, err := read(e)
			ok(t, err)
			if len(items) != 6 {
				t.Fatalf("cut at %d: %d items", from, len(items))
			}
			ok(t, Patch(items[2].Position(), func(x *LinuxThread) { x.Tid += 40 }))
			if want := slices.Concat(one(1), one(42), one(3)); !bytes.Equal(result(t, e), want) {
				t.Fatalf("cut at %d in %d pieces: %x", from, len(pieces), result(t, e))
			}
			if len(pieces) == 2 && len(e.runs) > 3 {
				t.Errorf("cut at %d: %d runs", from, len(e.runs))
			}
		}
	}
}

// What an editor refuses, it refuses before it writes, and says what and where.
func TestEditorRefuses(t *testing.T) {
	w := NewWriter(make([]byte, 1<<10))
	ok(t, errors.Join(w.BeginContainer(TypeTask, 7), w.BeginContainer(TypeThread, 9), w.Struct(TypeLinuxThread, &LinuxThread{Tid: 9}),
		w.EndContainer(9), w.EndContainer(7)))
	plain := w.Written()
	other := NewEditor(plain)
	others, err := read(other)
	ok(t, err)
	for name, c := range map[string]struct {
		edit func(e *Editor, items []Item)
		want error
		text string
	}{
		"removed and replaced":      {func(e *Editor, its []Item) { e.Remove(its[2].Position()); e.Replace(its[2].Position(), plain) }, ErrOverlap, "at byte 64 of 320, in TASK 7"},
		"a container's begin":       {func(e *Editor, its []Item) { e.Remove(its[1].Position()) }, ErrContainerMark, "at byte 32 of 320, in TASK 7"},
		"a container's end":         {func(e *Editor, its []Item) { e.Replace(its[4].Position(), nil) }, ErrContainerMark, "at byte 304 of 320, in TASK 7"},
		"a position of another":     {func(e *Editor, _ []Item) { e.InsertBefore(others[2].Position(), nil) }, ErrWrongPosition, ", in TASK 7"},
		"behind one of another":     {func(e *Editor, _ []Item) { e.InsertAfter(others[2].Position(), nil) }, ErrWrongPosition, ", in TASK 7"},
		"no position":               {func(e *Editor, _ []Item) { e.Remove(Position{}) }, ErrWrongPosition, ", in TASK 7"},
		"an item of a plain reader": {func(e *Editor, _ []Item) { e.Remove(Item{Offset: 32}.Position()) }, ErrWrongPosition, ", in TASK 7"},
	} {
		e := NewEditor(plain)
		items, err := read(e)
		ok(t, err)
		c.edit(e, items)
		e.InsertAfter(items[0].Position(), plain)
		var out bytes.Buffer
		n, err := e.WriteTo(&out)
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) || n != 0 || out.Len() != 0 {
			t.Errorf("%s: %v, %d bytes", name, err, out.Len())
		}
	}
}

// What was not read to its end is not written, nor read again.
func TestEditorNotRead(t *testing.T) {
	plain := randomItems(t, rand.New(rand.NewPCG(5, 5)), 20)
	for name, use := range map[string]func(e *Editor){
		"not at all": func(*Editor) {},
		"left": func(e *Editor) {
			for range e.Items() {
				break
			}
			if _, err := read(e); !errors.Is(err, ErrNotRead) {
				t.Errorf("again: %v", err)
			}
		},
		"broken": func(e *Editor) {
			*e = *NewEditor(plain[:len(plain)-1])
			_, err := read(e)
			wantFormat(t, err, ErrTruncated)
		},
		"in a container": func(e *Editor) {
			*e = *NewEditor(rawItem(TypeContainerBegin, 16, 7, make([]byte, 16)...))
			_, err := read(e)
			wantFormat(t, err, ErrBadContainer)
		},
		"an end marker": func(e *Editor) {
			*e = *NewEditor(plain, rawItem(BufferEnd, 0, 0), plain)
			_, err := read(e)
			wantFormat(t, err, ErrBadContainer)
		},
	} {
		e := NewEditor(plain)
		use(e)
		var out bytes.Buffer
		if _, err := e.WriteTo(&out); !errors.Is(err, ErrNotRead) || out.Len() != 0 {
			t.Errorf("%s: %v, %d bytes", name, err, out.Len())
		}
	}
	empty := NewEditor(nil, []byte{})
	if items, err := read(empty); err != nil || len(items) != 0 || len(result(t, empty)) != 0 {
		t.Errorf("of nothing: %v, %v", items, err)
	}
}

// The first error of the writer ends it, and is what WriteTo says.
func TestEditorWriterFails(t *testing.T) {
	plain := randomItems(t, rand.New(rand.NewPCG(6, 6)), 20)
	e := NewEditor(cutUp(rand.New(rand.NewPCG(7, 7)), plain, 9)...)
	items, err := read(e)
	ok(t, err)
	e.InsertBefore(items[3].Position(), plain)
	for limit := range 2 * len(plain) {
		r, w := io.Pipe()
		go func() {
			io.CopyN(io.Discard, r, int64(limit))
			r.CloseWithError(io.ErrClosedPipe)
		}()
		if n, err := e.WriteTo(w); err != io.ErrClosedPipe || n > int64(limit) {
			t.Fatalf("after %d bytes: %d, %v", limit, n, err)
		}
	}
}

// A size on the wire takes no memory where the bytes are not there.
func TestEditorHugeItem(t *testing.T) {
	head := rawItem(0x7777, 1<<32-16, 0x80)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := read(NewEditor(head[:7], head[7:], make([]byte, 100)))
	runtime.ReadMemStats(&after)
	wantFormat(t, err, ErrTruncated)
	if n := after.TotalAlloc - before.TotalAlloc; n > 64<<10 {
		t.Errorf("%d bytes", n)
	}
}

// A million edits, made from the back.
func TestEditorManyEdits(t *testing.T) {
	const n = 1 << 20
	plain := bytes.Repeat(rawItem(0x7777, 0, 0x80), n)
	put := rawItem(0x7778, 0, 0x80)
	e := NewEditor(slices.Collect(slices.Chunk(plain, 250<<10+5))...)
	positions := make([]Position, 0, n)
	for it, err := range e.Items() {
		ok(t, err)
		positions = append(positions, it.Position())
	}
	for _, p := range slices.Backward(positions) {
		e.Replace(p, put)
	}
	if !bytes.Equal(result(t, e), bytes.Repeat(put, n)) {
		t.Error("not what was put in")
	}
}

// A record of another version is patched in the fields that it has; one of another
// type, or a field that there is no room for, is refused and nothing changes.
func TestPatch(t *testing.T) {
	thread := packed(&ThreadSnapshot{ThreadID: 7, SSFlags: 1, IOTier: 2})
	for size := range len(thread) + 40 {
		for shift := range 2 { // where memory does not fit the struct's alignment
			payload := append(bytes.Clone(thread), make([]byte, 40)...)[:size]
			w := NewWriter(make([]byte, 1<<10))
			ok(t, w.Bytes(TypeThreadSnapshot, payload))
			e := NewEditor(append(make([]byte, shift, 1<<10), w.Written()...)[shift:])
			items, err := read(e)
			ok(t, err)
			has := size >= 72 // ths_ss_flags is bytes 64 to 72
			err = Patch(items[0].Position(), func(s *ThreadSnapshot) { s.SSFlags |= 4 })
			want := bytes.Clone(payload)
			if has {
				want[64] |= 4
			}
			if (err == nil) != has || !bytes.Equal(items[0].Data, want) {
				t.Fatalf("%d bytes: %v\n% x, want\n% x", size, err, items[0].Data, want)
			}
			if err := Patch(items[0].Position(), func(s *LinuxThread) { s.Tid = 1 }); !errors.Is(err, ErrSizeMismatch) || !bytes.Equal(items[0].Data, want) {
				t.Fatalf("as another record: %v", err)
			}
		}
	}
	if err := Patch(Position{}, func(*LinuxThread) {}); !errors.Is(err, ErrWrongPosition) {
		t.Errorf("no position: %v", err)
	}
	if err := Patch(mark(t), func(*uint32) {}); !errors.Is(err, ErrReserved) {
		t.Errorf("a container: %v", err)
	}
}

// mark is the position of a container's begin.
func mark(t *testing.T) Position {
	w := NewWriter(make([]byte, 100))
	ok(t, errors.Join(w.BeginContainer(TypeTask, 1), w.EndContainer(1)))
	items, err := read(NewEditor(w.Written()))
	ok(t, err)
	return items[0].Position()
}

// Reading allocates for an editor and its runs, not for items; patching nothing.
func TestEditorAllocates(t *testing.T) {
	plain := big(t, 300)
	items := plain[headerSize : len(plain)-headerSize]
	var at Position
	n := testing.AllocsPerRun(20, func() {
		for it, err := range NewEditor(items[:len(items)/2], items[len(items)/2:]).Items() {
			if err != nil {
				t.Fatal(err)
			}
			if it.Type == TypeLinuxThread {
				at = it.Position()
			}
		}
	})
	if n > 8 {
		t.Errorf("reading: %v allocations", n)
	}
	if n := testing.AllocsPerRun(20, func() { ok(t, Patch(at, func(x *LinuxThread) { x.CPU++ })) }); n > 0 {
		t.Errorf("a patch: %v allocations", n)
	}
}

// FuzzEditor: an editor reads what a Reader reads and refuses what that refuses,
// wherever the bytes are cut, and without edits writes what it read.
func FuzzEditor(f *testing.F) {
	for seed := range uint64(6) {
		rng := rand.New(rand.NewPCG(seed, 3))
		f.Add(around(randomItems(f, rng, 12)), seed)
	}
	f.Add(rich(f), uint64(1))
	f.Fuzz(func(t *testing.T, b []byte, seed uint64) {
		rng := rand.New(rand.NewPCG(seed, 4))
		whole, werr := read(NewEditor(bytes.Clone(b)))
		mustBeFormat(t, werr)
		cut := NewEditor(cutUp(rng, b, 1+rng.IntN(9))...)
		items, err := read(cut)
		if fmt.Sprint(err) != fmt.Sprint(werr) {
			t.Fatalf("in one piece %v, cut %v", werr, err)
		}
		sameItems(t, items, whole, 0)
		if err == nil && !bytes.Equal(result(t, cut), b) {
			t.Fatal("other bytes without edits")
		}
		want, rerr := readAll(b)
		e, err := EditBuffer(b)
		if err == nil {
			items, err = read(e)
			sameItems(t, items, want, 0)
		}
		if fmt.Sprint(err) != fmt.Sprint(rerr) {
			t.Fatalf("an editor says %v, a reader %v", err, rerr)
		}
		if err == nil && !bytes.Equal(result(t, e), b) {
			t.Fatal("other bytes without edits")
		}
	})
}

// BenchmarkEditor reads a task in pieces and writes it with an insertion for each
// thread; before-ns is the way it was before: put together, read, edited by offsets.
func BenchmarkEditor(b *testing.B) {
	plain := big(b, 1000)
	plain = plain[headerSize : len(plain)-headerSize]
	pieces := slices.Collect(slices.Chunk(plain, 64<<10+24))
	put, room := rawItem(0x7778, 0, 0x80), []byte(nil)
	var is, was []time.Duration
	for b.Loop() {
		began := time.Now()
		e := NewEditor(pieces...)
		for it, err := range e.Items() {
			if err != nil {
				b.Fatal(err)
			}
			if it.Type == TypeLinuxThread {
				e.InsertBefore(it.Position(), put)
			}
		}
		_, err := e.WriteTo(io.Discard)
		ok(b, err)
		between := time.Now()
		room = joinedBefore(b, room, pieces, put)
		is, was = append(is, between.Sub(began)), append(was, time.Since(between))
	}
	slices.Sort(is)
	slices.Sort(was)
	b.ReportMetric(float64(is[len(is)/2]), "editor-ns")
	b.ReportMetric(float64(was[len(was)/2]), "before-ns")
	b.ReportMetric(float64(is[len(is)/2])/float64(was[len(was)/2]), "editor/before")
}

func joinedBefore(b *testing.B, room []byte, pieces [][]byte, put []byte) []byte {
	room = append(room[:0], rawItem(MagicStackshot, 0, 0)...)
	for _, p := range pieces {
		room = append(room, p...)
	}
	room = append(room, rawItem(BufferEnd, 0, 0)...)
	r, err := NewReader(room)
	ok(b, err)
	var edits []edit
	for it, err := range r.Items() {
		if err != nil {
			b.Fatal(err)
		}
		if it.Type == TypeLinuxThread {
			edits = append(edits, edit{off: it.Offset, put: put})
		}
	}
	slices.SortStableFunc(edits, func(a, b edit) int { return a.off - b.off })
	from := headerSize
	for _, x := range edits {
		io.Discard.Write(room[from:x.off])
		io.Discard.Write(x.put)
		from = x.off
	}
	io.Discard.Write(room[from:])
	return room
}
