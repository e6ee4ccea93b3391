package host

import (
	"reflect"
	"testing"

	"stackshot/internal/panicregion"
	"stackshot/internal/procfs"
)

// What a description keeps of this machine is this machine again, its symbols too.
func TestRegionRoundTrip(t *testing.T) {
	h := Describe(procfs.FS{}, false)
	d := new(panicregion.Description)
	h.Region(d)
	packed, err := d.Pack()
	if err != nil {
		t.Fatal(err)
	}
	if d, err = panicregion.Unpack(packed); err != nil {
		t.Fatal(err)
	}
	got := FromRegion(d)
	if h.Kallsyms != nil {
		t.Logf("%d symbols, %d bytes, packed with the rest %d", h.Kallsyms.Len(), len(d.Symbols), len(packed))
		if got.TextAddr() != h.TextAddr() || got.Kallsyms.Len() != h.Kallsyms.Len() {
			t.Errorf("%#x, %d symbols", got.TextAddr(), got.Kallsyms.Len())
		}
		for name, r := range h.Kallsyms.Text() {
			a, _ := h.Kallsyms.Resolve(r.Start + 1)
			if b, ok := got.Kallsyms.Resolve(r.Start + 1); !ok || a != b {
				t.Fatalf("%s: %+v, want %+v", name, b, a)
			}
		}
	}
	got.Kallsyms, h.Kallsyms = nil, nil
	h.mods, h.dead = h.Modules(), true
	if len(h.mods) == 0 {
		got.mods, h.mods = nil, nil
	}
	if !reflect.DeepEqual(got, h) {
		t.Errorf("%+v\nwant %+v", got, h)
	}
	if x := FromRegion(&panicregion.Description{Symbols: "no table"}); x.Kallsyms != nil || x.KallsymsWhy == "" {
		t.Error("a damaged table is not named")
	}
}
