package bpf

import (
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf"

	"stackshot/internal/bpf/bpftest"
	"stackshot/internal/testneed"
)

// What only the objects of the tests may have: by the rule of knobs.h, and by the names
// that such things had in the shipped objects before.
var knobNames = regexp.MustCompile(`\btest_\w+|cfg_(?:all_maps|floor|stale_tid)`)

// No shipped object has anything that is there for tests alone: no symbol, no variable,
// no map, no type, not even a line of source. The tests' objects have all of it.
func TestKnobsDoNotShip(t *testing.T) {
	testneed.Live(t)
	shipped, err := filepath.Glob("*_bpfel.o")
	if err != nil || len(shipped) < 8 {
		t.Fatal(shipped, err)
	}
	for _, object := range shipped {
		if got := knobsIn(t, object); len(got) > 0 {
			t.Errorf("%s, which ships, has %q", object, got)
		}
	}
	for _, arch := range []string{"x86", "arm64"} {
		for object, want := range map[string][]string{
			"pull": {"test_all_maps", "test_no_fields", "test_stale_tid"},
			"trap": {"test_all_maps", "test_delay", "test_delays", "test_floor", "test_no_fields", "test_stale_tid"},
		} {
			object = "bpftest/" + object + "_" + arch + "_bpfel.o"
			if got := knobsIn(t, object); !slices.Equal(got, want) {
				t.Errorf("%s has %q, want %q", object, got, want)
			}
		}
	}
}

// knobsIn are the names for tests alone that stand anywhere in a file, in order.
func knobsIn(t *testing.T, file string) []string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, name := range knobNames.FindAll(data, -1) {
		found[string(name)] = true
	}
	return slices.Sorted(maps.Keys(found))
}

// But for the knobs, the objects of the tests have what those have that ship: the same
// programs, variables and maps, of the same sizes.
func TestObjectsOfTheTestsAreTheShipped(t *testing.T) {
	testneed.Live(t)
	for ships, tests := range map[string]string{"object": "pull", "trapobject": "trap"} {
		for _, arch := range []string{"x86", "arm64"} {
			want := contents(t, ships+"_"+arch+"_bpfel.o")
			got := contents(t, "bpftest/"+tests+"_"+arch+"_bpfel.o")
			maps.DeleteFunc(got, func(name string, _ [2]uint32) bool { return strings.Contains(name, " test_") })
			// .rodata holds the variables, and is as large as all of them.
			delete(want, "map .rodata")
			delete(got, "map .rodata")
			if !maps.Equal(got, want) {
				t.Errorf("%s, %s: %v, shipped are %v", tests, arch, got, want)
			}
		}
	}
}

// contents are an object's programs, variables and maps, with the sizes of each: of a
// variable; of a map's keys and values.
func contents(t *testing.T, object string) map[string][2]uint32 {
	t.Helper()
	spec, err := ebpf.LoadCollectionSpec(object)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][2]uint32{}
	for name := range spec.Programs {
		out["program "+name] = [2]uint32{}
	}
	for name, v := range spec.Variables {
		out["variable "+name] = [2]uint32{uint32(v.Size())}
	}
	for name, m := range spec.Maps {
		out["map "+name] = [2]uint32{m.KeySize, m.ValueSize}
	}
	return out
}

// Go's view of a delay is the object's.
func TestDelayLayout(t *testing.T) {
	testneed.Live(t)
	for _, arch := range []string{"x86", "arm64"} {
		s, g := structOf(t, typesOf(t, "bpftest/trap_"+arch+"_bpfel.o"), "test_delay"), reflect.TypeFor[bpftest.Delay]()
		hold, _ := g.FieldByName("HoldNs")
		window, _ := g.FieldByName("WindowNs")
		if int(s.Size) != int(g.Size()) || uintptr(s.Members[0].Offset.Bytes()) != hold.Offset || uintptr(s.Members[1].Offset.Bytes()) != window.Offset {
			t.Errorf("%s: struct test_delay is %+v, in Go %v", arch, s, g)
		}
	}
}
