package arm

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stackshot/internal/bpf"
	"stackshot/internal/panicregion"
	"stackshot/internal/testtask"
)

func TestMain(m *testing.M) {
	testtask.MaybeRun()
	code := m.Run()
	if built != "" {
		os.RemoveAll(built)
	}
	os.Exit(code)
}

// The parts of a layout follow each other and fill it, and the list has room for a run for each page.
func TestPlan(t *testing.T) {
	for range 1000 {
		description, records := 1+rand.N(8<<20), panicregion.PageSize*(1+rand.N(100_000))
		l := plan(description, records)
		if l.room < description || l.at+records != l.bytes() || l.rooms[0] != (1+l.lists)*panicregion.PageSize ||
			l.rooms[1] != l.rooms[0]+l.room || l.at != l.rooms[1]+l.room || l.at%panicregion.PageSize != 0 {
			t.Fatalf("%d, %d: %+v", description, records, l)
		}
		if l.lists*panicregion.RunsPerPage < l.pages() {
			t.Fatalf("%d list pages for %d pages", l.lists, l.pages())
		}
	}
}

func TestRecords(t *testing.T) {
	o := Options{UserStacks: bpf.UserAuto}
	few, threads := o.records(crowd{30, 90})
	if few != least || threads < 90*headRoom {
		t.Errorf("a small machine gets %d bytes, for %d threads", few, threads)
	}
	many, threads := o.records(crowd{500, 4000})
	if many < 4000*headRoom*(threadRoom+userRoom) || threads < 4000*headRoom-1 {
		t.Errorf("4,000 threads get %d bytes, for %d", many, threads)
	}
	o.Redact = true
	if less, _ := o.records(crowd{500, 4000}); less >= many {
		t.Errorf("redacted: %d bytes", less)
	}
	o.Buffer = 1<<20 + 1
	if got, _ := o.records(crowd{500, 4000}); got != 1<<20+4096 {
		t.Errorf("--buffer: %d bytes", got)
	}
}

func TestKernelKeys(t *testing.T) {
	free := ""
	for key := range 256 {
		if KernelKey(byte(key)) == "" {
			free += string(rune(key))
		}
	}
	if free != "ABCEFGHIJKLMNOPQTUVWXYZay" {
		t.Error("free: ", free)
	}
	for mask, through := range map[int]bool{0: false, 1: true, 8: true, 438: false, 446: true, 511: true, 16: false} {
		if LetsThrough(mask) != through {
			t.Errorf("kernel.sysrq %d: %v", mask, !through)
		}
	}
}

// Modules that come or go change the shape; users of a module that come or go do not.
func TestShape(t *testing.T) {
	w, err := openWatch()
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	shape := func(modules string) uint64 {
		name := filepath.Join(t.TempDir(), "modules")
		if err := os.WriteFile(name, []byte(modules), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		old := w.modules
		w.modules = f
		defer func() { w.modules = old }()
		n, err := w.shape()
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	many := strings.Repeat("filler 4096 0 - Live 0xffffffffc0100000\n", 5000) // several buffers
	base := shape(many + "nfs 4096 1 lockd, Live 0xffffffffc0000000\n")
	if shape(many+"nfs 4096 27 lockd,grace,x, Live 0xffffffffc0000000\n") != base {
		t.Error("users of a module change the shape")
	}
	for _, other := range []string{"nfs 4096 1 lockd, Unloading 0xffffffffc0000000\n", "nfs 8192 1 lockd, Live 0xffffffffc0000000\n", "nfs 4096 1 lockd, Live 0xffffffffc1000000\n", ""} {
		if shape(many+other) == base {
			t.Errorf("%q: the shape is the same", other)
		}
	}
}
