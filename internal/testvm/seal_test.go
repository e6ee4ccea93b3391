package testvm

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func sealsOf(t *testing.T, text string) (*Seals, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "seals")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return ReadSeals(file)
}

// What is written is read back, and a line of no kind is refused with its place.
func TestSealsRoundTrip(t *testing.T) {
	want := &Seals{
		Objects: []Object{{"internal/bpf/a.o", "00"}, {"internal/bpf/b.o", "01"}},
		Kernels: []Kernel{{Arch: "amd64", Track: "6.12", Release: "6.12.1-x", Package: "linux-image-6.12.1-x", Version: "6.12.1-1", SHA256: "ff"}},
		Red:     []Red{{"amd64", "6.12", "snapshot", "TestX", "a reason of three words"}, {"-", "-", "internal/arm", "(all)", ""}},
	}
	if got, err := sealsOf(t, want.String()); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	if got, err := ReadSeals(filepath.Join(t.TempDir(), "none")); err != nil || !reflect.DeepEqual(got, &Seals{}) {
		t.Errorf("no file: %+v, %v", got, err)
	}
	for _, line := range []string{"object 00", "kernel amd64 6.12 r p v", "red amd64 6.12 snapshot", "sealed 1", "object 00 a b"} {
		if _, err := sealsOf(t, "# head\n"+line+"\n"); err == nil || !strings.Contains(err.Error(), "seals:2: ") {
			t.Errorf("%q: %v", line, err)
		}
	}
}

// A failure has no reason of its own, but where the kernel is another, or a person wrote one.
func TestSealsNext(t *testing.T) {
	was, err := sealsOf(t, `
object 00 internal/bpf/a.o
kernel amd64 6.12   r p 6.12.1 aa
kernel amd64 newest r p 7.1    bb
red amd64 6.12 snapshot TestOld  known since May
red amd64 6.12 snapshot TestGone mended meanwhile
red amd64 newest snapshot TestUnexplained
`)
	if err != nil {
		t.Fatal(err)
	}
	kernels := []Kernel{
		{Arch: "amd64", Track: "6.1", Version: "6.1.1", SHA256: "cc", Image: "x"},
		{Arch: "amd64", Track: "6.12", Version: "6.12.1", SHA256: "aa", Image: "x"},
		{Arch: "amd64", Track: "newest", Version: "7.2", SHA256: "dd", Image: "x"},
		{Arch: "amd64", Track: "6.18", Version: "6.18.1", SHA256: "ee", Image: "x"},            // make vm boots none
		{Arch: "arm64", Track: "6.12", Skipped: "no package of it in any suite", SHA256: "00"}, // was not to be had
	}
	var red []Red
	for _, test := range []struct{ track, test, why string }{
		{"6.12", "TestOld", "known since May"},
		{"6.12", "TestOther", ""},
		{"6.1", "TestOld", ""}, // no kernel of the track was sealed
		{"newest", "TestUnexplained", "new kernel: 7.2, before 7.1"},
	} {
		r := Red{"amd64", test.track, "snapshot", test.test, ""}
		red = append(red, r, r) // two guests of one kernel
	}
	red = append(red, Red{"-", "-", "internal/arm", "TestPanic/newest", ""}, Red{"-", "-", "internal/arm", "TestPanic/half", ""})
	next := was.Next(was.Objects, kernels, red)
	want := sealsHead + `
object 00  internal/bpf/a.o

kernel amd64 6.1   6.1.1 cc
kernel amd64 6.12   6.12.1 aa
kernel amd64 newest   7.2 dd

red amd64 6.12 snapshot TestOld known since May
red amd64 6.12 snapshot TestOther
red amd64 6.1 snapshot TestOld
red amd64 newest snapshot TestUnexplained new kernel: 7.2, before 7.1
red amd64 newest internal/arm TestPanic/newest new kernel: 7.2, before 7.1
red - - internal/arm TestPanic/half
`
	if got := next.String(); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if n := len(next.Unexplained()); n != 3 {
		t.Errorf("%d without a reason, want 3", n)
	}
	// Once more on the same kernels: each keeps its reason.
	if again := next.Next(next.Objects, kernels, red); !reflect.DeepEqual(again, next) {
		t.Errorf("again: %s", again)
	}
	// With other objects a new kernel explains nothing, now or from the last time; a person does.
	for _, from := range []*Seals{was, next} {
		other := from.Next([]Object{{"internal/bpf/a.o", "11"}}, kernels, red)
		if n := len(other.Unexplained()); n != len(other.Red)-1 || other.Red[0].Why != "known since May" {
			t.Errorf("with other objects %d of %d have no reason: %s", n, len(other.Red), other)
		}
	}
}

// Tests that failed in a guest are noted with its kernel, also where the guest ended in one.
func TestRedOfAGuest(t *testing.T) {
	file := filepath.Join(t.TempDir(), "red")
	t.Setenv(redVar, file)
	k := Kernel{Arch: "arm64", Track: "6.12"}
	ended := []TestResult{{Name: "TestA", Outcome: "PASS"}, {Name: "TestB", Outcome: "FAIL"}, {Name: "TestC", Outcome: "SKIP"}}
	for _, r := range []Result{
		{Verdict: Passed, Tests: ended[:1]},
		{Verdict: Failed, Tests: ended},
		{Verdict: Passed},                              // no test matched
		{Verdict: Failed, Tests: ended[:1], Code: 137}, // all passed, and yet
		{Verdict: Panicked, Tests: ended[:1], Running: "TestD"},
		{Verdict: Lost},
	} {
		if err := NoteRed(r.Red(k, "snapshot")...); err != nil {
			t.Error(err)
		}
	}
	table := newTable()
	table.row("kcdata", "TestE").Cells[0] = Cell{Outcome: "PASS"}
	table.row("kcdata", "TestE").Cells[1] = Cell{Outcome: "HUNG"}
	table.Absent[2] = "kernel not in the cache"
	if err := NoteRed(table.Red([]Column{{"amd64", "6.1", "", 2}, {"amd64", "newest", "", 2}, {"arm64", "6.12", "", 2}})...); err != nil {
		t.Error(err)
	}
	if table.verdict(0, "workqueue", &Result{Verdict: Failed, Code: 137, Tests: ended[:1]}); table.Bad() != 2 {
		t.Errorf("%d bad, want TestE and a program that failed though its tests passed", table.Bad())
	}
	text, _ := os.ReadFile(file)
	want := strings.Join([]string{"arm64 6.12 snapshot TestB", "arm64 6.12 snapshot (all)", "arm64 6.12 snapshot (all)",
		"arm64 6.12 snapshot TestD", "arm64 6.12 snapshot (all)", "arm64 6.12 snapshot (all)",
		"arm64 6.12 - (all)", "amd64 newest kcdata TestE"}, "\nred ")
	if string(text) != "red "+want+"\n" {
		t.Errorf("%s\nwant %s", text, want)
	}
	if s, err := ReadSeals(file); err != nil || len(s.Red) != 8 {
		t.Errorf("read back: %+v, %v", s, err)
	}
}
