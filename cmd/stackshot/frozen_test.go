package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"stackshot/internal/hangscenes"
	"stackshot/internal/testneed"
)

// Twenty programs in D at one frozen file system are one finding, which names it.
func TestFrozenFileSystem(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	needRoot(t)
	dir, pids := hangscenes.Frozen(t, 20)
	file := t.TempDir() + "/file"
	stackshot(t, "take", "-q", "-o", file)
	of := []string{"hang", "--min-wait", "1us", "--pid", strings.Trim(strings.ReplaceAll(fmt.Sprint(pids), " ", ","), "[]"), file}
	o := stackshot(t, append(of, "--format", "json")...)
	var doc struct {
		Verdict  []string
		Culprits []struct {
			Pid      int
			ToldWith int `json:"told_with"`
		}
	}
	if err := json.Unmarshal([]byte(o.stdout), &doc); err != nil || o.code != exitHang {
		t.Fatalf("%v: %+v", err, o)
	}
	together := 0
	for _, c := range doc.Culprits {
		if c.ToldWith != 0 {
			together++
		}
	}
	if len(doc.Verdict) != 1 || !strings.Contains(doc.Verdict[0], "frozen") || !strings.Contains(doc.Verdict[0], dir+" (ext4, ") || together != 19 || len(doc.Culprits) != 20 {
		t.Errorf("%d of %d culprits together: %q", together, len(doc.Culprits), doc.Verdict)
	}
	if o := stackshot(t, of...); o.code != exitHang || strings.Count(o.stdout, "== 1. 20 threads wait in D for ") != 1 || strings.Contains(o.stdout, "== 2.") {
		t.Errorf("%s", o.stdout)
	}
}
