package arm

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"stackshot/internal/account"
	"stackshot/internal/extract"
	"stackshot/internal/model"
	"stackshot/internal/testtask"
	"stackshot/internal/vmcore"
	"stackshot/kcdata"
)

// foundIn is what the one region of a core becomes: a search, then the file. Both are timed.
func foundIn(t *testing.T, core *vmcore.Core) []byte {
	t.Helper()
	began := time.Now()
	found, err := extract.Find(core)
	if err != nil {
		t.Fatal(err)
	}
	searched := time.Since(began)
	file := fileOf(t, found)
	t.Logf("searched in %v, in all %v", searched, time.Since(began))
	return file
}

// fileOf is the file of the one region that was found. What a file lacks is judged by who reads it.
func fileOf(t *testing.T, found *extract.Found) []byte {
	t.Helper()
	if len(found.Regions) != 1 {
		t.Fatalf("%d regions", len(found.Regions))
	}
	t.Log(found.Regions[0].Line())
	var out bytes.Buffer
	if _, err := extract.Collate(&out, found.Regions[0], extract.Options{Version: "test"}); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func openCore(t *testing.T, name string) *vmcore.Core {
	t.Helper()
	core, err := vmcore.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { core.Close() })
	return core
}

// judge holds a file against what was announced before the kernel died, and against how it died.
func judge(t *testing.T, file []byte, d *death, actors []testtask.Actor) {
	t.Helper()
	s, err := kcdata.ParseSnapshot(file)
	if err != nil || len(s.Problems) > 0 || s.Panic == nil {
		t.Fatal(err, s.Problems, s.Panic)
	}
	p := s.Panic
	took := max(p.EndedNs, p.BeganNs) - p.BeganNs // of a walk that did not end 0
	t.Logf("%s; hook %s, outcome %d, nested %d, %d tasks with %d threads in %v, %d ns a thread, %d of %d bytes, %d a thread", account.PanicTitle(s), name(p.Hook[:]), p.Outcome, p.Nested,
		p.Tasks, p.Threads, time.Duration(took), took/uint64(max(p.Threads, 1)), p.Bytes, p.Room, p.Bytes/uint64(max(p.Threads, 1)))
	if message := name(p.Message[:]); p.Cause != d.cause || !regexp.MustCompile(d.message).MatchString(message) || s.Engine != "panic" {
		t.Errorf("engine %s, cause %d, message %q", s.Engine, p.Cause, message)
	}
	outcomes := d.outcomes
	if outcomes == nil {
		outcomes = []uint32{kcdata.PanicWhole}
	}
	if !slices.Contains(outcomes, p.Outcome) || p.Nested != d.nested || p.Generation != 2 {
		t.Errorf("outcome %d, nested %d: %+v", p.Outcome, p.Nested, p)
	}
	if p.Outcome == kcdata.PanicWhole {
		for _, w := range s.Warnings {
			t.Errorf("%+v", w)
		}
	}
	wantActors(t, s, actors, p.Outcome == kcdata.PanicWhole || d.all)
	wantNames(t, s, d)
	if d.also != nil {
		d.also(t, s)
	}
}

func name(b []byte) string {
	text, _, _ := bytes.Cut(b, []byte{0})
	return string(text)
}

// wantActors: every thread that was announced is in the file once, in its state and with its kernel stack. If
// not all of them are demanded, some may be missing.
func wantActors(t *testing.T, s *kcdata.Snapshot, actors []testtask.Actor, all bool) {
	t.Helper()
	threads := map[uint64]*kcdata.Thread{}
	for _, task := range s.Tasks {
		for _, th := range task.Threads {
			if threads[th.ID] != nil {
				t.Errorf("thread %d is there twice", th.ID)
			}
			threads[th.ID] = th
		}
	}
	wrong, missing := 0, 0
	for i := range actors {
		a := &actors[i]
		th := threads[uint64(a.Tid)]
		if th == nil {
			if missing++; all && missing < 5 {
				t.Errorf("actor %+v is not in the file", a)
			}
			continue
		}
		var stack []string
		for _, addr := range th.Kernel {
			if n, ok := s.Symbols.Name(addr); ok {
				stack = append(stack, n.Name)
			}
		}
		if err := a.Check(model.StateOf(th).Letter()[0], stack); err != nil {
			if wrong++; wrong < 5 {
				t.Errorf("%+v: %v", a, err)
			}
		}
	}
	t.Logf("%d actors, %d missing, %d wrong", len(actors), missing, wrong)
	if wrong > 0 || all && missing > 0 || missing == len(actors) {
		t.Errorf("of %d actors %d are missing and %d wrong", len(actors), missing, wrong)
	}
}

// wantNames: kernel frames have names, and one thread is marked as the one that panicked. Its stack begins in
// the function that was hooked.
func wantNames(t *testing.T, s *kcdata.Snapshot, d *death) {
	t.Helper()
	frames, named := 0, 0
	var here []*kcdata.Thread
	for _, task := range s.Tasks {
		for _, th := range task.Threads {
			for _, addr := range th.Kernel {
				frames++
				if _, ok := s.Symbols.Name(addr); ok {
					named++
				}
			}
			if account.PanickedHere(s, th) {
				here = append(here, th)
			}
		}
	}
	t.Logf("%d of %d kernel frames are named", named, frames)
	if frames == 0 || named*100 < frames*99 {
		t.Errorf("%d of %d kernel frames are named", named, frames)
	}
	if d.unmarked && s.Panic.Outcome != kcdata.PanicWhole {
		return
	}
	if len(here) != 1 || !regexp.MustCompile(d.by).MatchString(name(s.Panic.Comm[:])) {
		t.Fatalf("%d threads panicked, by %q", len(here), name(s.Panic.Comm[:]))
	}
	var stack []string
	for _, addr := range here[0].Kernel {
		n, _ := s.Symbols.Name(addr)
		stack = append(stack, n.Name)
	}
	t.Logf("the panicking thread: %v", stack)
	if len(stack) == 0 || stack[0] != name(s.Panic.Hook[:]) || !strings.Contains(strings.Join(stack, " "), d.through) {
		t.Errorf("the stack of the panicking thread: %v, want %s and then %s", stack, name(s.Panic.Hook[:]), d.through)
	}
}
