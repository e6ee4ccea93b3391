package report

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/google/pprof/profile"

	"stackshot/internal/golden"
	"stackshot/kcdata"
)

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
