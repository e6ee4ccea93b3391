package arm

import (
	"bytes"
	"fmt"
	"os"
	"testing"

	"stackshot/internal/bpf"
	"stackshot/internal/panicregion"
	"stackshot/internal/testneed"
)

// A new description goes to the other room: the head of before stays whole, with what it names. Many
// of them take no more memory than one.
func TestRefresh(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	a := armed(t, Options{Sysrq: true, Panic: true, UserStacks: bpf.UserAuto, Wait: true, Version: "test"})
	region := a.panic.Region
	was := bytes.Clone(region[:a.layout.at])
	var first, last int64
	rounds := testneed.Length(6, 100)
	for i := range rounds {
		old := a.static
		if err := a.refresh(); err != nil {
			t.Fatal(err)
		}
		s := wantDescribed(t, region)
		if s.Generation != old.Generation+1 {
			t.Fatalf("generation %d after %d", s.Generation, old.Generation)
		}
		d := old.Sections[0]
		if got := region[d.Off : d.Off+d.Len]; panicregion.Sum(got) != d.Sum {
			t.Error("the description of before is not whole any more")
		}
		if rss := residentMemory(t); i == 1 {
			first = rss
		} else {
			last = rss
		}
	}
	if last > first+16<<20 {
		t.Errorf("resident %d KiB after two, %d after %d", first>>10, last>>10, rounds)
	}
	list := a.layout.lists * panicregion.PageSize
	if !bytes.Equal(was[panicregion.PageSize:][:list], region[panicregion.PageSize:][:list]) {
		t.Error("the list has changed")
	}
	// One that is too large is refused, and the head stays.
	a.layout.room = 10
	if err := a.refresh(); err == nil {
		t.Error("a description without room is written")
	}
	wantDescribed(t, region)
}

// wantDescribed: the head is whole, and names a description of this machine.
func wantDescribed(t *testing.T, region []byte) *panicregion.Static {
	t.Helper()
	s, err := panicregion.ReadStatic(region[:panicregion.PageSize])
	if err != nil {
		t.Fatal(err)
	}
	d, ok := s.Section(panicregion.SectionDescription)
	if !ok || panicregion.Sum(region[d.Off:d.Off+d.Len]) != d.Sum {
		t.Fatalf("%+v", s)
	}
	got, err := panicregion.Unpack(region[d.Off : d.Off+d.Len])
	if err != nil {
		t.Fatal(err)
	}
	if host, _ := os.Hostname(); got.Hostname != host || len(got.Symbols) == 0 || len(got.CPUs) == 0 || len(got.Hooks) == 0 || got.Tool != "test" {
		t.Errorf("%+v", got)
	}
	return s
}

func residentMemory(t *testing.T) (bytes int64) {
	t.Helper()
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	var total, pages int64
	if _, err := fmt.Sscan(string(b), &total, &pages); err != nil {
		t.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}
