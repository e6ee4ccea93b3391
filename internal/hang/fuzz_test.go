package hang

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"

	"stackshot/internal/golden"
	"stackshot/internal/model"
	"stackshot/internal/report"
	"stackshot/internal/show"
	"stackshot/internal/testneed"
	"stackshot/internal/waitgraph"
	"stackshot/internal/waits"
	"stackshot/kcdata"
)

// hostile makes a machine and a verdict that agree in nothing: any graph, any names, lists of
// findings that may be empty.
func hostile(r *rand.Rand, name string) *world {
	w := newWorld()
	w.v.Waits.Unrecorded = r.IntN(4) == 0
	w.v.Waits.OneInstant = r.IntN(2) == 0
	w.s.Hostname, w.s.Machine.Redacted = name, uint32(r.IntN(2))
	for i := range uint64(1 + r.IntN(4)) {
		t := w.task(i*50+r.Uint64N(3), name)
		for n := range uint64(r.IntN(20)) {
			thread(t, t.ID+n+r.Uint64N(2)<<32, []string{name, "", "t"}[r.IntN(3)])
		}
	}
	anyOwner := func() waits.Owner {
		t := w.s.Tasks[r.IntN(len(w.s.Tasks))]
		o := waits.Owner{Tid: r.Uint32(), Pid: r.Uint32N(200), Relation: waits.Relation([]string{"holds", "last", "child", "joined", "runs", "other_end", "listens", "serves", "pager", name, ""}[r.IntN(11)])}
		if len(t.Threads) > 0 && r.IntN(4) > 0 {
			o = owner(t, t.Threads[r.IntN(len(t.Threads))], o.Relation)
		}
		o.Dead, o.Whole, o.Owes = r.IntN(6) == 0, r.IntN(3) == 0, r.IntN(2) == 0
		return o
	}
	for _, t := range w.s.Tasks {
		for _, th := range t.Threads {
			var owners []waits.Owner
			for range r.IntN(4) {
				owners = append(owners, anyOwner())
			}
			kind := waits.Kind([]string{"mutex", "user_mutex", "stopped", "child", "at_rest", "pipe", "socket", "poll", "fuse", "file_lock", "nfs", name, ""}[r.IntN(13)])
			x := w.wait(t, th, kind, r.Uint64N(3), r.Uint64N(3), owners...)
			x.Age = model.Age{Ns: r.Uint64(), Known: r.IntN(3) > 0, About: r.IntN(3) == 0}
			x.Evidence, x.Confidence = waits.Evidence([]string{"field", "stack", name}[r.IntN(3)]), waits.Confidence([]string{"sure", "likely", ""}[r.IntN(3)])
			if r.IntN(2) == 0 {
				x.File = hostileFile(r, name)
			}
			x.Notes, x.AnyOwner, x.Timed = []string{name, "", name, name}[:r.IntN(5)], r.IntN(2) == 0, r.IntN(2) == 0
		}
	}
	some := func() (out []*waits.Wait) {
		for range r.IntN(30) {
			if all := w.v.Waits.All; len(all) > 0 {
				out = append(out, all[r.IntN(len(all))])
			}
		}
		return out
	}
	anyTree := func() []waitgraph.Branch {
		if len(w.v.Waits.All) == 0 {
			return nil
		}
		return randomTree(r, w.v.Waits.All)
	}
	w.v.Starved = some()
	w.v.Pools = []*waitgraph.Convoy{{Waiters: some(), Owners: []waits.Owner{anyOwner()}}}
	for range r.IntN(8) {
		w.v.Deadlocks = append(w.v.Deadlocks, &waitgraph.Deadlock{Confidence: waits.Likely, Cycle: some(), Part: some(), Behind: some(), Tree: anyTree()})
		w.v.Convoys = append(w.v.Convoys, &waitgraph.Convoy{Resource: waits.Resource{ID: r.Uint64N(3)}, Waiters: some(), Owners: []waits.Owner{anyOwner()}[:r.IntN(2)]})
		c := &waitgraph.Culprit{Owner: anyOwner(), Reason: waitgraph.Reason([]string{"running", "blocked", "outside", name}[r.IntN(4)]), Victims: some(), Shared: some(), Tree: anyTree()}
		if list := some(); len(list) > 0 {
			c.Wait = list[0]
		}
		w.v.Culprits = append(w.v.Culprits, c)
	}
	w.v.Waits.Limits = []string{name}
	w.v.Unaged = r.IntN(3)
	return w
}

// hostileFile is a file of which no two fields agree; nil in it what may be nil.
func hostileFile(r *rand.Rand, name string) *waits.OpenFile {
	x := &waits.OpenFile{Of: r.IntN(50) - 1, Others: r.IntN(3), Says: waits.FileSays([]string{"", "no_end", "own_end", "serves", "elsewhere", "not_looked", name}[r.IntN(7)]), Remote: name, Device: name, Unread: r.Uint64()}
	if r.IntN(8) > 0 {
		x.File = &kcdata.LinuxFile{Flags: r.Uint32(), Op: r.Uint32N(16), Kind: r.Uint32N(22), Fd: r.Int32N(9) - 2, Inode: r.Uint64(), Dev: r.Uint64()}
	}
	if r.IntN(2) == 0 {
		x.Socket = &kcdata.LinuxSocket{Flags: r.Uint32(), Family: uint16(r.IntN(45)), Kind: uint16(r.IntN(4)), LocalPort: uint16(r.Uint32()), PeerPort: uint16(r.Uint32())}
	}
	if r.IntN(2) == 0 {
		x.Mount = &kcdata.LinuxMount{}
		copy(x.Mount.Point[:], name)
		copy(x.Mount.Source[:], name)
		copy(x.Mount.FSType[:], name)
	}
	return x
}

// FuzzHang: whatever the verdict, no panic; text and JSON may be sent to any terminal (H2) and
// keep to their bounds (H3); JSON and graph are well formed.
func FuzzHang(f *testing.F) {
	f.Add(uint64(1), "\x1b[2J\"];\\\n", 80)
	f.Add(uint64(2), `\`, 0)
	f.Add(uint64(3), strings.Repeat("界\xff", 300), 33)
	f.Fuzz(func(t *testing.T, seed uint64, name string, width int) {
		r := rand.New(rand.NewPCG(seed, 1))
		name = name[:min(len(name), 500)] // JSON repeats it thousands of times
		w := hostile(r, name)
		o := Options{Width: width % 500, File: name, Color: false}
		if r.IntN(3) == 0 {
			o.Only, o.Absent = w.of(int(w.s.Tasks[0].ID)), []uint64{r.Uint64()}
		}
		if r.IntN(3) == 0 {
			o.MaxBytes = r.Int64N(20_000) + 1
		}
		checkForms(t, w, o)
	})
}

func checkForms(t *testing.T, w *world, o Options) {
	t.Helper()
	var text, js, dot bytes.Buffer
	var cut *report.CutError
	for _, err := range []error{Text(&text, w.s, w.v, o), JSON(&js, w.s, w.v, o), Dot(&dot, w.s, w.v, o)} {
		if err != nil && (o.MaxBytes == 0 || !errors.As(err, &cut)) {
			t.Fatal(err)
		}
	}
	for _, b := range [][]byte{text.Bytes(), js.Bytes(), dot.Bytes()} {
		golden.Showable(t, b)
	}
	if !json.Valid(js.Bytes()) {
		t.Fatalf("not JSON: %s", js.Bytes())
	}
	wantDot(t, dot.String())
	for line := range strings.Lines(text.String()) {
		if n := show.Cells(strings.TrimSuffix(line, "\n")); o.Width >= 60 && n > o.Width && !strings.Contains(line, "`") {
			t.Fatalf("line of %d cells at width %d: %q", n, o.Width, line)
		}
	}
}

// wantDot checks that each line is one statement, whose strings end where they should.
func wantDot(t *testing.T, graph string) {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(graph, "\n"), "\n")
	if lines[0] != "digraph hang {" || lines[len(lines)-1] != "}" {
		t.Fatalf("%q ... %q", lines[0], lines[len(lines)-1])
	}
	for _, line := range lines[1 : len(lines)-1] {
		outside, inside := "", false
		for i := 0; i < len(line); i++ {
			switch {
			case line[i] == '"':
				inside = !inside
			case inside && line[i] == '\\':
				i++
			case !inside:
				outside += line[i : i+1]
			}
		}
		if inside || !strings.HasSuffix(line, ";") || strings.Count(outside, "[") != strings.Count(outside, "]") || strings.ContainsAny(outside, `\{}`) {
			t.Fatalf("not a statement: %s", line)
		}
	}
}

// TestHostile runs what the fuzzer starts from, and all stories at every width.
func TestHostile(t *testing.T) {
	for _, width := range []int{0, 1, 20, 60, 80, 200} {
		for _, st := range stories {
			st.o.Width = width
			checkForms(t, st.build(), st.o)
		}
		for seed := range uint64(20) {
			checkForms(t, hostile(rand.New(rand.NewPCG(seed, uint64(width))), "\x1b[2J\"];\\\n\u202e"), Options{Width: width})
		}
	}
}

// Graphviz reads the graphs.
func TestGraphviz(t *testing.T) {
	testneed.Live(t)
	testneed.Program(t, "dot")
	for _, st := range stories {
		cmd := exec.Command("dot", "-Tplain")
		cmd.Stdin = strings.NewReader(written(t, "dot", st.build(), st.o))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %.300s", st.name, err, out)
		}
	}
}

// Without its colours the coloured text is the plain one.
func TestColorOnlyAddsColor(t *testing.T) {
	for _, st := range stories {
		plain := written(t, "txt", st.build(), st.o)
		st.o.Color = true
		colored := written(t, "txt", st.build(), st.o)
		if got := strings.NewReplacer(show.Red, "", show.Bold, "", show.Plain, "").Replace(colored); got != plain || !strings.Contains(colored, show.Bold) {
			t.Errorf("%s: %s", st.name, got)
		}
	}
}
