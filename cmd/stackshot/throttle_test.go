package main

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"stackshot/internal/testneed"
	"stackshot/kcdata"
)

// Idle time is injected on CPU 1, as far as /sys says: the command holds that CPU
// still, lets the others record, and says so in the report, in the file and in
// doctor.
func TestThrottledCPU(t *testing.T) {
	testneed.Lab(t, testneed.Time)
	testneed.Slow(t)
	t.Parallel()
	if runtime.NumCPU() < 2 {
		t.Skip("needs two CPUs")
	}
	withMounts(t, func(t *testing.T) {
		mount(t, "none", "/sys/class", "tmpfs", 0, "")
		dir := "/sys/class/thermal/cooling_device0"
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{"type": "idle-cpu1\n", "cur_state": "30\n"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		const why = "forced to idle (cooling device idle-cpu1, state 30)"
		file := filepath.Join(t.TempDir(), "file")
		o := stackshot(t, "take", "-o", file)
		taken(t, o)
		if want := "CPU 1 is throttled and did not record: " + why; !strings.Contains(strings.Join(strings.Fields(o.stdout), " "), want) {
			t.Errorf("the report does not say %q:\n%s", want, o.stdout)
		}
		for _, c := range snapshotOf(t, file).CPUs {
			if (c.Flags&kcdata.CPUThrottled != 0) != (c.CPU == 1) || c.Flags&kcdata.CPUWorked != 0 && c.CPU == 1 {
				t.Errorf("%+v", c)
			}
		}
		if d := stackshot(t, "doctor"); !strings.Contains(d.stdout, "1: "+why+": they stop but do not record") {
			t.Errorf("doctor:\n%s", d.stdout)
		}
	})
}
