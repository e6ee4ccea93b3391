package account

import (
	"encoding/json"
	"strings"
	"testing"

	"stackshot/kcdata"
)

// What is said of open files, in words and as JSON: each thing that was not done, too.
func TestFiles(t *testing.T) {
	s := &kcdata.Snapshot{}
	if BriefFiles(s) != "" || FilesJSON(nil) != nil {
		t.Error("open files that were not recorded")
	}
	s.FilesTaken = &kcdata.LinuxFilesTaken{Sources: kcdata.FilesHasTable | kcdata.FilesHasPass, Threads: 212, Files: 1340, Ends: 96, Looked: 18211, PassNs: 12_000_000, Moved: 1}
	if got, want := BriefFiles(s), "open files: 212 threads at 1,340 files; other ends: 18,211 descriptors looked at in 12 ms, 96 found, 1 thread had gone on by then"; got != want {
		t.Errorf("%s\n%s", got, want)
	}
	s.FilesTaken = &kcdata.LinuxFilesTaken{Sources: kcdata.FilesHasProc, Threads: 1, Files: 1, Looked: 1, Processes: 2, Unsettled: 1}
	if got, want := BriefFiles(s), "open files: 1 thread at 1 file; other ends: 1 descriptor of 2 processes looked at in /proc in 0 us, 0 found, 1 process could not be looked at"; got != want {
		t.Errorf("%s\n%s", got, want)
	}
	for i := range 7 {
		s.FilesTaken = &kcdata.LinuxFilesTaken{Flags: 1 << i}
		text := BriefFiles(s)
		b, err := json.Marshal(FilesJSON(s.FilesTaken))
		if err != nil || !strings.HasPrefix(text, "open files: 0 threads at 0 files; ") || strings.Contains(string(b), `"not_done":[]`) {
			t.Errorf("flag %d: %q, %s, %v", i, text, b, err)
		}
	}
}
