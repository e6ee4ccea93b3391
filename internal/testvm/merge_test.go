package testvm

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const doctorSaid = `{"format":"stackshot-doctor","version":1,"host":"testvm","release":"6.1.192","arch":"x86_64",` +
	`"engines":[{"name":"trap","ok":false,"why":"no kfunc"}],"isolation":[],"auto":{"engine":"pull","isolation":"fifo","max_pause_ns":1,"why":"w"},` +
	`"probes":[{"name":"a_kfunc","ok":false,"why":"kfunc a | not supported","since":"6.4"},{"name":"b","ok":true,"why":"","since":"6.1"}],"facts":[]}`

func TestDoctorIsHeard(t *testing.T) {
	var r Result
	for _, line := range []string{"    doctor_test.go:30: doctor: {broken", "    doctor_test.go:30: doctor: " + doctorSaid} {
		r.line(line)
	}
	if d := r.Doctor; d == nil || d.Release != "6.1.192" || d.Auto.Engine != "pull" || len(d.Probes) != 2 {
		t.Fatalf("%+v", r.Doctor)
	}
}

func tableOf(column string, cells map[string]string) *Table {
	t := newTable()
	t.Columns = []string{column}
	for test, outcome := range cells {
		t.row("p", test).Cells[0] = Cell{Outcome: outcome, Took: time.Second, Why: map[bool]string{true: "it is so"}[outcome != "PASS"]}
	}
	return t
}

// Tables of several runs become one: a column is found by its name, the later
// verdict counts, and what only one of them knows stays.
func TestTablesMerge(t *testing.T) {
	one := tableOf("6.1 ×2", map[string]string{"TestA": "FAIL", "TestB": "PASS", "TestC": "SKIP"})
	one.Verified["trap"] = map[int]int{0: 7}
	one.Absent[0] = "not yet"
	var r Result
	r.doctor("doctor: " + doctorSaid)
	two := tableOf("6.1 ×2", map[string]string{"TestA": "PASS"})
	two.Doctors[0] = r.Doctor
	three := tableOf("7.3 ×2", map[string]string{"TestA": "HUNG"})
	var paths []string
	for _, table := range []*Table{one, three, two} {
		path := filepath.Join(t.TempDir(), "sub", "t.json")
		if err := table.save(path); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	all, err := LoadTables(paths)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(all.Columns, ","); got != "6.1 ×2,7.3 ×2" || len(all.Rows) != 3 || all.Bad() != 1 || len(all.Absent) != 0 {
		t.Errorf("columns %s, %d rows, %d bad, absent %v", got, len(all.Rows), all.Bad(), all.Absent)
	}
	if c := all.row("p", "TestA").Cells; c[0].Outcome != "PASS" || c[1].Outcome != "HUNG" {
		t.Errorf("%+v", c)
	}
	support := all.Support()
	for _, want := range []string{
		"| 6.1.192 | x86_64 | `pull`, `fifo` | 2 | 1 | 0 | `a_kfunc` (1) |", "| `trap` | 7 |", `1. kfunc a \| not supported`, all.Date,
	} {
		if !strings.Contains(support, want) {
			t.Errorf("no %q in\n%s", want, support)
		}
	}
	if summary := all.Summary(); !strings.Contains(summary, "**HUNG** 1.0 (") || !strings.Contains(summary, "it is so") {
		t.Error(summary)
	}
	four := tableOf("7.3 isolcpus", map[string]string{"TestA": "PASS", "TestC": "SKIP"})
	all.merge(four)
	summary := all.Summary()
	for want, is := range map[string]bool{
		"Passed on every machine of 2 CPUs: 1 of `p`.": true, "| 6.1 ×2 | 2 | 1 | 0 |": true, "`p` TestB": false,
		"| by shape | 7.3 isolcpus |\n|---|---|\n| `p` TestA | 1.0 |\n": true, "`p` TestC | - |": false, "`p` TestC | skip (": true,
	} {
		if strings.Contains(summary, want) != is {
			t.Errorf("%q: want %v in\n%s", want, is, summary)
		}
	}
	if _, err := LoadTables([]string{filepath.Join(t.TempDir(), "none")}); err == nil {
		t.Error("a file that is not there was read")
	}
}

func TestReplacePart(t *testing.T) {
	doc := filepath.Join(t.TempDir(), "d.md")
	if err := os.WriteFile(doc, []byte("a\n<!-- generated: m -->\nold\n<!-- end of m -->\nb\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := ReplacePart(doc, "m", "new"); err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(doc); string(got) != "a\n<!-- generated: m -->\n\nnew\n<!-- end of m -->\nb\n" {
		t.Errorf("%q", got)
	}
	if err := ReplacePart(doc, "x", "new"); err == nil {
		t.Error("a part that is not there was replaced")
	}
}
