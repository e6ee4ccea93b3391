package report

import (
	"bytes"
	"strings"
	"testing"

	"stackshot/kcdata"
)

// What an alarm says no warning says again; what it does not say stays.
func TestSaidOnce(t *testing.T) {
	missed := spinningDriver()
	missed.Warnings = []kcdata.Warning{
		{Code: "cpu_missed", Text: "CPU 2 did not come to the stop within 10ms"},
		{Code: "stop_aborted", Text: "try 1"},
	}
	procfs := containerWithoutStop()
	procfs.Warnings = []kcdata.Warning{
		{Code: "engine_procfs", Text: "nothing was stopped: no BPF here"},
		{Code: "no_symbols", Text: "kernel addresses stay numbers"},
	}
	unknown := quiet()
	unknown.Warnings = []kcdata.Warning{{Code: "cpu_missed", Text: "CPU 9 did not come to the stop"}}
	for _, c := range []struct {
		name string
		s    *kcdata.Snapshot
		want []string // each once
	}{
		{"missed", missed, []string{"CPU 2 did not", "irq/55-mlx5 [640] tid 640: suspect it first", "try 1 (stop_aborted)"}},
		{"procfs", procfs, []string{"nothing was stopped", "because no BPF here (engine_procfs)", "kernel addresses stay numbers (no_symbols)"}},
		{"a CPU that the file does not have", unknown, []string{"CPU 9 did not come to the stop (cpu_missed)"}},
	} {
		var b bytes.Buffer
		if err := Text(&b, c.s, Options{}); err != nil {
			t.Fatal(err)
		}
		alarms := ""
		for line := range strings.Lines(b.String()) {
			if strings.HasPrefix(line, "!! ") {
				alarms += line
			}
		}
		for _, s := range c.want {
			if n := strings.Count(alarms, s); n != 1 {
				t.Errorf("%s: %q %d times in\n%s", c.name, s, n, alarms)
			}
		}
	}
}
