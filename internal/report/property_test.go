package report

import (
	"bytes"
	"encoding/json"
	"fmt"
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

func randomOptions(r *rand.Rand) Options {
	o := Options{ShowSelf: r.IntN(2) == 0, ShowIdle: r.IntN(3) == 0, Width: []int{0, 1, 3, 40, 80}[r.IntN(5)]}
	for range r.IntN(3) {
		o.Pids = append(o.Pids, r.IntN(14))
	}
	return o
}

var groupLine = regexp.MustCompile(`^    (?:(\d+) (?:threads, e\.g\. |idle threads of CPUs: )|tid \d+|idle thread of CPU)`)
var accountLine = regexp.MustCompile(`^(\d+) threads?: (\d+) shown, (\d+) idle kernel threads folded, (\d+) idle threads of CPUs folded, (\d+) of our own hidden, (\d+) not asked for$`)

// TestR1EveryThreadIsAccountedFor counts the threads in the text itself, not
// in the numbers the code kept, and holds them against the snapshot.
func TestR1EveryThreadIsAccountedFor(t *testing.T) {
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 1))
		s, o := randomSnapshot(r), randomOptions(r)
		o.Width = 0
		var b bytes.Buffer
		if err := Text(&b, s, o); err != nil {
			t.Fatal(err)
		}
		shown := 0
		lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
		for _, line := range lines {
			if m := groupLine.FindStringSubmatch(line); m != nil {
				n := 1
				fmt.Sscan(m[1], &n)
				shown += n
			}
		}
		m := accountLine.FindStringSubmatch(lines[len(lines)-1])
		if m == nil {
			t.Fatalf("seed %d: last line %q", seed, lines[len(lines)-1])
		}
		n := make([]int, len(m))
		for i := range m[1:] {
			fmt.Sscan(m[i+1], &n[i+1])
		}
		if n[1] != s.ThreadCount() || n[2] != shown || n[2]+n[3]+n[4]+n[5]+n[6] != n[1] {
			t.Fatalf("seed %d: %d threads, %d shown in the text, last line %q\n%s", seed, s.ThreadCount(), shown, m[0], b.String())
		}
	}
}

// TestR1JSONHoldsEveryThread: nothing is folded there.
func TestR1JSONHoldsEveryThread(t *testing.T) {
	for seed := range uint64(100) {
		s := randomSnapshot(rand.New(rand.NewPCG(seed, 2)))
		var b bytes.Buffer
		if err := JSON(&b, s, Options{ShowSelf: true}); err != nil {
			t.Fatal(err)
		}
		var d struct {
			Tasks []struct {
				ID      string
				Threads []struct{ ID string }
			}
		}
		if err := json.Unmarshal(b.Bytes(), &d); err != nil {
			t.Fatal(err)
		}
		got, want := map[string]bool{}, 0
		for _, task := range d.Tasks {
			got["task "+task.ID] = true
			for _, th := range task.Threads {
				got["thread "+task.ID+" "+th.ID] = true
			}
		}
		for _, task := range s.Tasks {
			id := fmt.Sprintf("%#x", task.ID)
			if want++; !got["task "+id] {
				t.Fatalf("seed %d: task %s missing", seed, id)
			}
			for _, th := range task.Threads {
				if want++; !got[fmt.Sprintf("thread %s %#x", id, th.ID)] {
					t.Fatalf("seed %d: thread %#x of task %s missing", seed, th.ID, id)
				}
			}
		}
		if len(got) != want {
			t.Fatalf("seed %d: %d entries, want %d", seed, len(got), want)
		}
	}
}

// TestR2NothingRawIsShown runs every story and many random machines, and asks
// the width limit on the way.
func TestR2NothingRawIsShown(t *testing.T) {
	check := func(s *kcdata.Snapshot, o Options) {
		var b bytes.Buffer
		if err := Text(&b, s, o); err != nil {
			t.Fatal(err)
		}
		golden.Showable(t, b.Bytes())
		if o.Width >= 40 {
			for line := range strings.Lines(b.String()) {
				if n := show.Cells(strings.TrimSuffix(line, "\n")); n > o.Width {
					t.Fatalf("line of %d cells at width %d: %q", n, o.Width, line)
				}
			}
		}
		b.Reset()
		if err := JSON(&b, s, o); err != nil {
			t.Fatal(err)
		}
		golden.Showable(t, b.Bytes())
		b.Reset()
		if err := Folded(&b, s, o); err != nil {
			t.Fatal(err)
		}
		golden.Showable(t, b.Bytes())
	}
	for _, st := range stories {
		for _, width := range []int{0, 40, 80} {
			o := st.o
			o.Width = width
			check(st.build(), o)
		}
	}
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 3))
		check(randomSnapshot(r), randomOptions(r))
	}
}

// failing writes n bytes and then fails.
type failing struct{ n int }

func (f *failing) Write(p []byte) (int, error) {
	if f.n -= len(p); f.n < 0 {
		return 0, errFull
	}
	return len(p), nil
}

var errFull = fmt.Errorf("disk full")

func TestWriteErrorsComeBack(t *testing.T) {
	s := deadNFSServer()
	for _, n := range []int{0, 100, 5000} {
		if err := Text(&failing{n}, s, Options{}); err != errFull {
			t.Errorf("Text after %d bytes: %v", n, err)
		}
		if err := JSON(&failing{n}, s, Options{}); err != errFull {
			t.Errorf("JSON after %d bytes: %v", n, err)
		}
		if err := Folded(&failing{n / 10}, s, Options{}); err != errFull {
			t.Errorf("Folded after %d bytes: %v", n/10, err)
		}
		if err := Pprof(&failing{n / 10}, s, Options{}); err != errFull {
			t.Errorf("Pprof after %d bytes: %v", n/10, err)
		}
	}
}
