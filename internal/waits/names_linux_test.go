package waits

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"stackshot/internal/testneed"
)

// The kernel leaves functions of the scheduler and of locks out of a stack. A row that names one
// of this kernel's waits for nothing.
func TestNamesAreInStacks(t *testing.T) {
	testneed.Live(t)
	testneed.Root(t)
	text, err := os.ReadFile("/proc/kallsyms")
	if err != nil {
		t.Fatal(err)
	}
	bounds := map[string]uint64{}
	at := map[string]uint64{}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		addr, err := strconv.ParseUint(f[0], 16, 64)
		if err != nil || len(f) != 3 { // a module's has a fourth
			continue
		}
		name := plain(f[2])
		if strings.HasPrefix(name, "__sched_text_") || strings.HasPrefix(name, "__lock_text_") {
			bounds[name] = addr
		} else {
			at[name] = addr
		}
	}
	if bounds["__sched_text_end"] == 0 {
		t.Fatal("kallsyms has no addresses")
	}
	seen := 0
	for name, addr := range at {
		if compiled.leaf.of(name) == (set{}) {
			continue
		}
		seen++
		for _, section := range []string{"__sched_text_", "__lock_text_"} {
			if addr >= bounds[section+"start"] && addr < bounds[section+"end"] {
				t.Errorf("%s lies in %s", name, section)
			}
		}
	}
	t.Logf("%d functions of this kernel are in the table", seen)
	if seen < 100 {
		t.Errorf("%d functions of this kernel are in the table", seen)
	}
}
