package panicregion

import (
	"errors"
	"math/rand/v2"
	"reflect"
	"testing"
)

func someStatic() *Static {
	return &Static{Kind: KindPanic, Arch: 62, Region: 7, Generation: 4, BootID: [16]byte{1, 2, 3}, BuildID: []byte{9, 8, 7}, TextAddr: 1 << 60,
		Pages: 600, ListPages: uint32(ListPages(600)), Written: 5, Sections: []Section{{SectionRecords, 0, 4096, 8192}}}
}

func TestStaticRoundTrip(t *testing.T) {
	head := make([]byte, PageSize)
	if _, err := ReadStatic(head); !errors.Is(err, ErrNoHead) || IsHead(head) {
		t.Fatal(err)
	}
	a, b := someStatic(), someStatic()
	b.Generation++
	for _, s := range []*Static{a, b} {
		if err := PutStatic(head, s); err != nil {
			t.Fatal(err)
		}
	}
	got, err := ReadStatic(head)
	if err != nil || !reflect.DeepEqual(got, b) {
		t.Fatalf("%+v, %v", got, err)
	}
	// A torn copy leaves the other one.
	for bit := range CopyBytes * 8 {
		torn := append([]byte(nil), head...)
		torn[copySize+bit/8] ^= 1 << (bit % 8) // generation 5
		if got, err := ReadStatic(torn); err != nil || !reflect.DeepEqual(got, a) {
			t.Fatalf("bit %d: %+v, %v", bit, got, err)
		}
	}
	if CopyBytes > copySize || HeadCopies*copySize > RunAt {
		t.Error("copies overlap")
	}
}

func TestListRoundTrip(t *testing.T) {
	var phys []uint64
	for i := range 600 {
		at := uint64(i) * 2 * PageSize
		if rand.N(3) == 0 && i > 0 {
			at = phys[i-1] + PageSize
		}
		phys = append(phys, at)
	}
	s := someStatic()
	pages := make([]byte, int(s.ListPages)*PageSize)
	if err := PutList(pages, s, Runs(phys)); err != nil {
		t.Fatal(err)
	}
	var got []uint64
	for i := range int(s.ListPages) {
		page := pages[i*PageSize : (i+1)*PageSize]
		l, err := ReadList(page)
		if err != nil || !IsList(page) || l.Region != s.Region || l.BootID != s.BootID || int(l.Index) != i || l.Runs != nil && l.Page != uint64(len(got)) && len(l.Runs) > 0 {
			t.Fatalf("%+v, %v", l, err)
		}
		for _, r := range l.Runs {
			for n := range r.Count {
				got = append(got, r.Phys+n*PageSize)
			}
		}
		page[rand.N(PageSize)] ^= 1
		if _, err := ReadList(page); !errors.Is(err, ErrDamaged) {
			t.Fatal("a flipped bit was not seen", err)
		}
	}
	if !reflect.DeepEqual(got, phys) {
		t.Error("the frames differ")
	}
}
