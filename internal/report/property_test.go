package report

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"stackshot/internal/golden"
	"stackshot/internal/show"
	"stackshot/kcdata"
)

// randomSnapshot makes a machine of any states, flags and lacks.
func randomSnapshot(r *rand.Rand) *kcdata.Snapshot {
	w := newWorld(1 + r.IntN(4))
	frames := []string{"__schedule", "schedule", "a", "b [m]", "irqentry_exit", "asm_sysvec_x", "?"}
	for pid := range uint32(r.IntN(12)) {
		t := w.task(pid, []string{"", "sh", "kworker/1:2", "\x1b]0;x\a"}[r.IntN(4)])
		t.Linux.Present = r.Uint64() & 0xfff
		t.Transitioning = r.IntN(5) == 0
		t.HasLinux = r.IntN(8) > 0
		for range r.IntN(9) {
			states := []uint32{0, 1, 2, 4, 8, 0x40, 0x80, 0x102, 0x402, 0x800, 0x1000, 0x8000, r.Uint32()}
			stack := make([]string, r.IntN(5))
			for i := range stack {
				stack[i] = frames[r.IntN(len(frames))]
			}
			th := w.thread(t, "t", states[r.IntN(len(states))], r.Uint64N(2*now), stack...)
			th.Linux.Present = r.Uint64() & 0xffff
			th.Linux.CPU, th.Linux.OnCPU = uint32(r.IntN(5)), uint32(r.IntN(2))
			th.Linux.ExitState = []uint32{0, 0, 0, kcdata.ExitZombie, kcdata.ExitDead}[r.IntN(5)]
			th.Linux.Flags = []uint32{0, kcdata.PFKthread}[r.IntN(2)]
			th.HasLinux, th.HasSnapshot = r.IntN(8) > 0, r.IntN(8) > 0
			th.Snapshot.State = r.Uint32() & 0xff
			if r.IntN(2) == 0 {
				in(th, r.Int64N(500)-2)
			}
			if r.IntN(2) == 0 {
				w.randomUser(r, t, th)
			}
		}
	}
	return w.done()
}

// randomUser gives a thread a user stack of names that nobody would choose.
func (w *world) randomUser(r *rand.Rand, t *kcdata.Task, th *kcdata.Thread) {
	const hostile = "\x1b[2Jf;\u202e\n g_[k]"
	if len(t.Mappings) == 0 {
		w.maps(t, "/usr/lib/libc.so.6", 0)
		w.maps(t, "/tmp/\x1b[1m;\u2066 b/..", 0)
		w.maps(t, "", r.Uint32()&31)
	}
	frames := make([]string, r.IntN(9))
	for i := range frames {
		name := []string{"main", "?", "a<-b@x.c:3", hostile, hostile + "<-" + hostile + "@" + hostile}[r.IntN(5)]
		frames[i] = name + " in " + []string{"/usr/lib/libc.so.6", "[jit]", "", "/tmp/\x1b[1m;\u2066 b/.."}[r.IntN(4)]
	}
	w.calls(t, th, r.Uint32()&0x3fff, frames...)
	if r.IntN(4) == 0 {
		th.UserWalk, th.UserHow = nil, th.UserHow[:r.IntN(len(th.UserHow)+1)]
	}
}

// randomSelection is a snapshot, and options of which every other one chooses some threads.
func randomSelection(r *rand.Rand) (*kcdata.Snapshot, Options) {
	s := randomSnapshot(r)

	o := Options{ShowSelf: r.IntN(2) == 0, ShowIdle: r.IntN(3) == 0, Width: []int{0, 1, 3, 40, 80}[r.IntN(5)]}
	if r.IntN(2) == 0 {
		o.Only = map[*kcdata.Thread]bool{}
		for _, t := range s.Tasks {
			for _, th := range t.Threads {
				if r.IntN(3) == 0 {
					o.Only[th] = true
				}
			}
		}
	}
	o.GroupBy = append([]Grouping{""}, groupings()...)[r.IntN(6)]
	o.SortBy = []Order{"", ByAge, ByName, ByThreads, ByCPU}[r.IntN(5)]
	return s, o
}

var groupLine = regexp.MustCompile(`^    (?:(\d+) (?:threads, e\.g\. |idle threads of CPUs: )|tid \d+|idle thread of CPU [^,]*: )|^(\d+) threads? of \d+ tasks?: `)
var accountLine = regexp.MustCompile(`^(\d+) threads?: (\d+) shown, (\d+) idle kernel threads folded, (\d+) idle threads of CPUs folded, (\d+) of our own hidden, (\d+) not asked for$`)

// checkForms holds every form of a report against its promises: each thread is accounted for (R1), as
// the text itself counts them; nothing raw is shown (R2); no line is wider than the terminal; folded
// stacks and profile have the threads of the JSON.
func checkForms(t *testing.T, s *kcdata.Snapshot, o Options) {
	t.Helper()
	text := textOf(t, s, o)
	golden.Showable(t, []byte(text))
	for line := range strings.Lines(text) {
		if n := show.Cells(strings.TrimSuffix(line, "\n")); o.Width >= 40 && n > o.Width {
			t.Fatalf("line of %d cells at width %d: %q", n, o.Width, line)
		}
	}
	if o.Width == 0 {
		accounted(t, s, text)
	}
	golden.Showable(t, jsonOf(t, s, o))
	checkFolded(t, s, o)
	checkProfile(t, s, o)
}

// accounted counts the threads in the text itself, not in the numbers the code kept.
func accounted(t *testing.T, s *kcdata.Snapshot, text string) {
	t.Helper()
	shown := 0
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for _, line := range lines {
		if m := groupLine.FindStringSubmatch(line); m != nil {
			n := 1
			fmt.Sscan(m[1]+m[2], &n)
			shown += n
		}
	}
	m := accountLine.FindStringSubmatch(lines[len(lines)-1])
	if m == nil {
		t.Fatalf("last line %q", lines[len(lines)-1])
	}
	n := make([]int, len(m))
	for i := range m[1:] {
		fmt.Sscan(m[i+1], &n[i+1])
	}
	if n[1] != s.ThreadCount() || n[2] != shown || n[2]+n[3]+n[4]+n[5]+n[6] != n[1] {
		t.Fatalf("%d threads, %d shown in the text, last line %q\n%s", s.ThreadCount(), shown, m[0], text)
	}
}

// Every story at several widths, and random machines.
func TestEveryForm(t *testing.T) {
	for _, st := range stories {
		for _, width := range []int{0, 40, 80} {
			o := st.o
			o.Width = width
			checkForms(t, st.build(), o)
		}
	}
	seed := uint64(0)
	t.Cleanup(func() { t.Logf("ended at seed %d", seed) })
	for ; seed < 500; seed++ {
		s, o := randomSelection(rand.New(rand.NewPCG(seed, 1)))
		checkForms(t, s, o)
	}
}

// TestR1JSONHoldsEveryThread: nothing is folded there.
func TestR1JSONHoldsEveryThread(t *testing.T) {
	for seed := range uint64(100) {
		s := randomSnapshot(rand.New(rand.NewPCG(seed, 2)))
		var d struct {
			Tasks []struct {
				ID      string
				Threads []struct{ ID string }
			}
		}
		if err := json.Unmarshal(jsonOf(t, s, Options{ShowSelf: true}), &d); err != nil {
			t.Fatal(err)
		}
		got, want := map[string]int{}, map[string]int{}
		for _, task := range d.Tasks {
			got["task "+task.ID]++
			for _, th := range task.Threads {
				got["thread "+task.ID+" "+th.ID]++
			}
		}
		for _, task := range s.Tasks {
			want[fmt.Sprintf("task %#x", task.ID)]++
			for _, th := range task.Threads {
				want[fmt.Sprintf("thread %#x %#x", task.ID, th.ID)]++
			}
		}
		if !maps.Equal(got, want) {
			t.Fatalf("seed %d: %v, want %v", seed, got, want)
		}
	}
}

func TestWriteErrorsComeBack(t *testing.T) {
	for i, write := range []func(io.Writer, *kcdata.Snapshot, Options) error{Text, JSON, Folded, Pprof} {
		golden.ErrorsComeBack(t, fmt.Sprint("form ", i), func(w io.Writer) error { return write(w, deadNFSServer(), Options{}) })
	}
}
