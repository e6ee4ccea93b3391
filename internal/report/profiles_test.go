package report

import (
	"bytes"
	"encoding/json"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/pprof/profile"

	"stackshot/internal/golden"
	"stackshot/kcdata"
)

// The form as the flame-graph tools read it: stackcollapse scripts write, and
// flamegraph.pl splits at the last white space and then at semicolons.
var foldedLine = regexp.MustCompile(`^([^\s;]+(?:;[^\s;]+)+) ([1-9][0-9]*)$`)

// parseFolded reads the lines back: frames to count. It fails on anything that
// a flame-graph tool would read otherwise.
func parseFolded(t testing.TB, b []byte) map[string]int {
	t.Helper()
	out := map[string]int{}
	for line := range strings.Lines(string(b)) {
		m := foldedLine.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if m == nil {
			t.Fatalf("not of the form: %q", line)
		}
		if _, twice := out[m[1]]; twice {
			t.Fatalf("stack twice: %q", line)
		}
		n, err := strconv.Atoi(m[2])
		if err != nil {
			t.Fatal(err)
		}
		out[m[1]] = n
	}
	return out
}

func folded(t testing.TB, s *kcdata.Snapshot, o Options) map[string]int {
	t.Helper()
	var b bytes.Buffer
	if err := Folded(&b, s, o); err != nil {
		t.Fatal(err)
	}
	golden.Showable(t, b.Bytes())
	return parseFolded(t, b.Bytes())
}

// checkFolded: the counts add up to the threads shown, and each stack has the
// frames of its threads, in order, each with its mark.
func checkFolded(t testing.TB, s *kcdata.Snapshot, o Options) {
	t.Helper()
	got := folded(t, s, o)
	v := newView(s, o)
	sum := 0
	for _, n := range got {
		sum += n
	}
	if sum != v.counts.Shown {
		t.Fatalf("%d threads in the lines, %d shown", sum, v.counts.Shown)
	}
	f := newFolding(v)
	for _, th := range v.threads() {
		frames := len(th.user)
		kernel := 0
		if th.frames {
			kernel = len(th.Kernel)
		}
		var names []string
		for _, id := range f.frames(th) {
			names = append(names, f.names[id])
		}
		stack := strings.Join(names, ";")
		if got[stack] == 0 {
			t.Fatalf("thread %d: no line %q", th.ID, stack)
		}
		parts := strings.Split(stack, ";")[1:]
		if frames+kernel == 0 {
			frames = 1 // noStack
		}
		if len(parts) != frames+kernel {
			t.Fatalf("thread %d: %d user and %d kernel frames in %q", th.ID, frames, kernel, stack)
		}
		for i, p := range parts {
			if strings.HasSuffix(p, markKernel) != (i >= frames) {
				t.Fatalf("thread %d: frame %d of %q, of which %d are the kernel's", th.ID, i, stack, kernel)
			}
		}
	}
}

// TestFoldedMergesThreads: 300 workers at one stack are one line, whatever they
// are called and wherever in the same functions they are.
func TestFoldedMergesThreads(t *testing.T) {
	got := folded(t, threadPool(), Options{})
	if len(got) != 1 {
		t.Fatalf("%d lines: %v", len(got), got)
	}
	for stack, n := range got {
		want := "server;start_thread;Queue::pop(std::chrono::duration<long>);pthread_cond_wait;__futex_abstimed_wait;" +
			"do_syscall_64_[k];do_futex_[k];futex_wait_[k];futex_wait_queue_[k];schedule_[k];__schedule_[k]"
		if stack != want || n != 303 {
			t.Errorf("%q %d, want %q 303", stack, n, want)
		}
	}
}

// TestFoldedName: no name can end a frame, a line or a stack, nor pass for what
// it is not.
func TestFoldedName(t *testing.T) {
	for in, want := range map[string]string{
		"": "?", "a;b": "a:b", "operator new(unsigned long)": "operator_new(unsigned_long)", "a\nb 3": `a\x0ab_3`,
		"evil_[k]": "evil_(k)", "evil_[j]": "evil_(j)", "_[k]": "_(k)", "x[k]": "x[k]", "a\u2028b": `a\xe2\x80\xa8b`, "a\u00a0b": `a\xc2\xa0b`,
	} {
		if got := foldedName(in); got != want {
			t.Errorf("foldedName(%q) = %q, want %q", in, got, want)
		}
	}
}

// readProfile writes a profile and parses it back, valid, by the package that `go tool pprof` is made of.
func readProfile(t testing.TB, s *kcdata.Snapshot, o Options) *profile.Profile {
	t.Helper()
	var b bytes.Buffer
	if err := Pprof(&b, s, o); err != nil {
		t.Fatal(err)
	}
	if !bytes.HasPrefix(b.Bytes(), []byte{0x1f, 0x8b}) {
		t.Fatal("not gzip")
	}
	p, err := profile.Parse(&b)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.CheckValid(); err != nil {
		t.Fatal(err)
	}
	for _, f := range p.Function {
		golden.Showable(t, []byte(f.Name+f.SystemName+f.Filename))
	}
	for _, m := range p.Mapping {
		golden.Showable(t, []byte(m.File+m.BuildID))
	}
	for _, c := range p.Comments {
		golden.Showable(t, []byte(c))
	}
	return p
}

// checkProfile holds a profile against the JSON report of the same snapshot:
// the same threads, as many frames each, off for as long.
func checkProfile(t *testing.T, s *kcdata.Snapshot, o Options) {
	t.Helper()
	o.ShowIdle = true // as JSON
	p := readProfile(t, s, o)
	type thread struct {
		Tid    *int64
		Class  string
		AtMost *uint64           `json:"age_at_most_ns"`
		About  *uint64           `json:"age_about_ns"`
		Kernel []json.RawMessage `json:"kernel_stack"`
		User   []struct {
			Inlined bool
		} `json:"user_stack"`
	}
	var doc struct{ Tasks []struct{ Threads []thread } }
	if err := json.Unmarshal(jsonOf(t, s, o), &doc); err != nil {
		t.Fatal(err)
	}
	var want []thread
	for _, task := range doc.Tasks {
		want = append(want, task.Threads...)
	}
	if len(p.Sample) != len(want) {
		t.Fatalf("%d samples, %d threads", len(p.Sample), len(want))
	}
	for i, th := range want { // both in the order of the report
		sample := p.Sample[i]
		for _, l := range sample.Label {
			golden.Showable(t, []byte(strings.Join(l, "")))
		}
		if th.Tid != nil && sample.NumLabel["tid"][0] != *th.Tid {
			t.Fatalf("sample %d: tid %v, want %d", i, sample.NumLabel["tid"], *th.Tid)
		}
		wantNs, label := int64(0), ""
		switch {
		case th.Class == "running":
		case th.AtMost != nil:
			wantNs = int64(min(*th.AtMost, math.MaxInt64))
		case th.About != nil:
			wantNs, label = int64(min(*th.About, math.MaxInt64)), "about"
		default:
			label = "unknown"
		}
		if sample.Value[0] != 1 || sample.Value[1] != wantNs || strings.Join(sample.Label["age"], " ") != label {
			t.Fatalf("sample %d: values %v, labels %v; want %d ns, %q", i, sample.Value, sample.Label, wantNs, label)
		}
		frames := 0
		for _, f := range th.User {
			if !f.Inlined {
				frames++
			}
		}
		if n := len(sample.Location); n != frames && n != frames+len(th.Kernel) {
			t.Fatalf("sample %d: %d locations, %d user and %d kernel frames", i, n, frames, len(th.Kernel))
		}
	}
}

// TestPprofMappings: user mappings with their build-ids, the kernel's first, and
// inlined functions of one location, the innermost first.
func TestPprofMappings(t *testing.T) {
	s := userStacks()
	s.KernelBuild = []byte{0x12, 0x34}
	s.Modules = []kcdata.Module{{Name: "nfs", Addr: s.Tasks[0].Threads[0].Kernel[0], Size: 0x100, BuildID: []byte{0x56}}}
	p := readProfile(t, s, Options{ShowIdle: true})
	if m := p.Mapping[0]; m.File != kernelFile || m.BuildID != "1234" {
		t.Errorf("first mapping %+v", m)
	}
	found := map[string]string{}
	for _, m := range p.Mapping {
		found[m.File] = m.BuildID
	}
	if found[server] != "ab0f" || found[libc] == "" || found["[nfs]"] != "56" {
		t.Errorf("mappings %v", found)
	}
	inlined := false
	for _, loc := range p.Location {
		if len(loc.Line) == 2 {
			a, b := loc.Line[0], loc.Line[1]
			inlined = a.Function.Name == "add" && a.Function.Filename == "src/math.h" && a.Line == 12 && b.Function.Name == "mix" && b.Line == 99
		}
	}
	if !inlined {
		t.Error("add, inlined into mix, is not one location of two lines")
	}
}
