package procfs

import (
	"maps"
	"testing"
)

const (
	interrupts618 = "           CPU0       CPU2       \n" +
		" 24:          1          2  IO-APIC   5-edge      ACPI:Ged\n" +
		"LOC:        100        200   Local timer interrupts\n" +
		"ERR:          7\nMIS:          0\n"
	statCPUs = "cpu  1 2 3 4 5 6 7 0 0 0\ncpu0 10 20 30 40 50 60 70 0 0 0\ncpu2 1 1 1 1 1 1 1 0 0 0\nintr 5 1 2\nbtime 17\n"
)

func TestParseInterrupts(t *testing.T) {
	got, err := ParseInterrupts([]byte(interrupts618))
	if err != nil || !maps.Equal(got, map[int]uint64{0: 101, 2: 202}) {
		t.Errorf("%v, %v", got, err)
	}
	for _, bad := range []string{"", "\n", "CPU0 CPUx\n", "LOC: 1 2\n"} {
		if got, err := ParseInterrupts([]byte(bad)); err == nil {
			t.Errorf("%q: %v", bad, got)
		}
	}
}

func TestParseCPUTicks(t *testing.T) {
	got, err := ParseCPUTicks([]byte(statCPUs))
	if err != nil || !maps.Equal(got, map[int]CPUActivity{0: {User: 30, Idle: 90}, 2: {User: 2, Idle: 2}}) {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := ParseCPUTicks([]byte("cpu0 1 2 3\n")); err == nil {
		t.Errorf("a line cut short: %v", got)
	}
}

func FuzzParseInterrupts(f *testing.F) { fuzzParser(f, ParseInterrupts, nil, interrupts618) }
func FuzzParseCPUTicks(f *testing.F)   { fuzzParser(f, ParseCPUTicks, nil, statCPUs) }
