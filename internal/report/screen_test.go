package report

import (
	"bytes"
	"strings"
	"testing"

	"stackshot/internal/show"
	"stackshot/kcdata"
)

// The command for the rest is whole on a terminal of any width, and the screen
// takes no more rows for it than it may.
func TestCommandForTheRestIsWhole(t *testing.T) {
	const rest = "stackshot report /var/tmp/stackshot-db7-20261120T200613.219Z-%d.kcdata.zst"
	for _, width := range []int{30, 47, 79, 80, 81, 108, 109, 110, 160} {
		for limit := 1; limit < 30; limit++ {
			var b bytes.Buffer
			if err := Text(&b, deadNFSServer(), Options{Width: width, FirstScreen: limit, RestCommand: rest}); err != nil {
				t.Fatal(err)
			}
			if !strings.HasSuffix(b.String(), rest+"\n") {
				t.Fatalf("width %d, limit %d: ends in %q", width, limit, b.String()[max(b.Len()-100, 0):])
			}
			rows := 0
			for line := range strings.Lines(b.String()) {
				rows += 1 + max(show.Cells(line)-2, 0)/width
			}
			if most := max(limit, 2+(len(rest)-1)/width); rows > most {
				t.Errorf("width %d: %d rows, want at most %d", width, rows, most)
			}
		}
	}
}

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
