package report

import (
	"strings"
	"testing"

	"stackshot/kcdata"
)

// Refusals of many tasks are one line with their count; other reasons stay with their task. JSON
// has all of them.
func TestRefusalsAreOneLine(t *testing.T) {
	s := &kcdata.Snapshot{Engine: "procfs"}
	for id := range 40 {
		s.Tasks = append(s.Tasks, &kcdata.Task{
			ID: uint64(id + 2), Name: "other",
			EnrichFailed: []string{"exe: permission denied", "maps: permission denied"},
		})
	}
	s.Tasks[7].EnrichFailed = append(s.Tasks[7].EnrichFailed, "io: it hangs\x1b[31m")
	var text, js strings.Builder
	if err := Text(&text, s, Options{}); err != nil {
		t.Fatal(err)
	}
	if err := JSON(&js, s, Options{}); err != nil {
		t.Fatal(err)
	}
	got := text.String()
	if strings.Count(got, "permission denied") != 1 || !strings.Contains(got, "not read of 40 tasks: permission denied (exe, maps)") {
		t.Errorf("%s", got)
	}
	if !strings.Contains(got, "not read: io: it hangs") || strings.Contains(got, "\x1b[31m") {
		t.Errorf("another reason: %s", got)
	}
	if n := strings.Count(js.String(), "permission denied"); n != 80 {
		t.Errorf("JSON has %d of 80 refusals", n)
	}
}
