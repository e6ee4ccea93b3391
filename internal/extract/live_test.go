package extract

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"stackshot/internal/bpf"
	"stackshot/internal/panicregion"
	"stackshot/internal/testheap"
	"stackshot/internal/testneed"
	"stackshot/internal/trapmemory"
	"stackshot/kcdata"
)

func liveFile(t testing.TB, r *Region, o Options) (*kcdata.Snapshot, *Result, error) {
	t.Helper()
	var out bytes.Buffer
	res, err := Collate(&out, r, o)
	if err != nil {
		return nil, nil, err
	}
	s, err := kcdata.ParseSnapshot(out.Bytes())
	if err != nil || len(s.Problems) > 0 {
		t.Fatalf("%v, %q", err, s.Problems)
	}
	return s, res, nil
}

func TestLiveWhole(t *testing.T) {
	s, res, err := liveFile(t, makeLive(t, 5).region(t), Options{})
	if err != nil || len(s.Tasks) != 5 || s.ThreadCount() != 9 || s.Engine != "trap" || len(res.Missing) > 0 {
		t.Fatalf("%v, %+v", err, res)
	}
	if text := fmt.Sprint(s.Warnings); !strings.Contains(text, "kernel_panicked") || !strings.Contains(text, "no_symbols") {
		t.Error(text)
	}
}

// A head, or a section, that says what cannot be is refused in words; nothing is made of it.
func TestLiveRefused(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*madeLive)
		want   error
	}{
		"not begun":    {func(m *madeLive) { m.stop.Word = 0 }, trapmemory.ErrNotLive},
		"nobody":       {func(m *madeLive) { m.stop.Want = 0 }, trapmemory.ErrNotLive},
		"too many":     {func(m *madeLive) { m.stop.Want = 1 << 40 }, trapmemory.ErrNotLive},
		"never held":   {func(m *madeLive) { m.workers[0].In, m.workers[1].In = 0, 0 }, trapmemory.ErrNotLive},
		"few parts":    {func(m *madeLive) { m.items = 500 }, panicregion.ErrDamaged},
		"no part done": {func(m *madeLive) { clear(m.parts) }, nil},
	} {
		m := makeLive(t, 5)
		c.change(m)
		if _, _, err := liveFile(t, m.region(t), Options{}); err == nil || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Pieces whose links form a cycle are followed once, however many items lead there: of no bytes they
// would take for ever, of one byte all memory.
func TestLiveCycles(t *testing.T) {
	testneed.Lab(t, testneed.Time)
	for _, size := range []uint32{0, 1} {
		m := makeLive(t, 1)
		m.items, m.parts, m.room = 60_000, nil, 1<<30
		for range m.items {
			m.parts = append(m.parts, bpf.TrapPart{Worker: 1, State: bpf.PartWhole, Flags: 3, Threads: 1, Len: size, More: 1})
		}
		const pieces = 1 << 19
		for i := range uint32(pieces) {
			m.pieces = append(m.pieces, bpf.TrapPiece{Len: size, More: (i+1)%pieces + 1})
		}
		r := m.region(t)
		began := time.Now()
		testheap.Bound(t, 96<<20, fmt.Sprintf("pieces of %d bytes", size), func() {
			if c, err := trapmemory.Live(r.Static, r); err == nil && len(c.Recorded)+len(c.Failed) != m.items {
				t.Errorf("%d of %d items", len(c.Recorded)+len(c.Failed), m.items)
			}
		})
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("pieces of %d bytes: %v", size, took)
		}
	}
}

// The head that a capture of another boot has left in memory, by a clock that was ahead, does not make the panic's
// region one of another boot.
func TestLiveOfAnotherBoot(t *testing.T) {
	of := func(kind uint32, boot byte, written uint64) *Region {
		return &Region{Static: &panicregion.Static{Kind: kind, BootID: [16]byte{boot}, Written: written}}
	}
	dead, stale, same := of(panicregion.KindPanic, 1, 100), of(panicregion.KindLive, 2, 900), of(panicregion.KindLive, 1, 200)
	f := &Found{Regions: []*Region{stale, same, dead}}
	f.judge(map[string]string{})
	if dead.Err != nil || same.Err != nil || !errors.Is(stale.Err, ErrForeign) {
		t.Errorf("%v, %v, %v", dead.Err, same.Err, stale.Err)
	}
	alone := &Found{Regions: []*Region{of(panicregion.KindLive, 1, 5), of(panicregion.KindLive, 2, 9)}}
	alone.judge(map[string]string{})
	if r := alone.Regions[0]; r.Err != nil || r.Static.BootID[0] != 2 {
		t.Errorf("%+v", r)
	}
}
