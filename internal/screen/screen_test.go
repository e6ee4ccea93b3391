package screen

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"stackshot/internal/golden"
	"stackshot/internal/show"
	"stackshot/internal/verdict"
	"stackshot/kcdata"
)

var stories = []struct {
	name string
	of   func() *scene
}{
	{"quiet", quiet}, {"dead_server", deadServer}, {"abba", abba}, {"stopped_holder", stoppedHolder}, {"stalled_server", stalledServer},
	{"missed", missed}, {"all", all},
}

const file = "stackshot-db7-20261118T110640.000Z.kcdata.zst"

func textOf(t testing.TB, s *kcdata.Snapshot, o Options) string {
	t.Helper()
	var b bytes.Buffer
	if err := Text(&b, s, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestGolden: what a newcomer reads in 80x21 (24 rows without those behind the screen).
func TestGolden(t *testing.T) {
	for _, st := range stories {
		c := st.of()
		golden.Want(t, "testdata/"+st.name+".txt", []byte(textOf(t, c.done(), Options{Verdict: c.v, Width: 80, Height: 21, File: file})))
	}
}

// The culprit's number and the word that says why stand in the first 80 cells of a line.
func TestCulpritsAreSeen(t *testing.T) {
	for name, want := range map[string][]string{
		"dead_server": {"postgres [812] D, 1 behind", "40 x bash", "D: /srv/data"}, "abba": {"deadlock of 2: orders [8100] tid", "20 behind"},
		"stopped_holder": {"backup.sh [300] STOPPED, 50 behind", "tar [400] asleep: room in a pipe"}, "stalled_server": {"sshfs [911] asleep, 3 behind", "/mnt/backup"},
		"missed": {"!! CPU 2 did not stop in time. It ran irq/55-mlx5 [640]"},
	} {
		for _, st := range stories {
			if st.name != name {
				continue
			}
			c := st.of()
			text := textOf(t, c.done(), Options{Verdict: c.v, Width: 80, Height: 21, File: file})
			for _, s := range want {
				if strings.Count(text, s) != 1 {
					t.Errorf("%s: %q is there %d times in\n%s", name, s, strings.Count(text, s), text)
				}
			}
			if b := Brief(c.s, c.v); name != "missed" && (strings.Contains(b, "\n") || !strings.Contains(b, strings.Fields(want[0])[0])) {
				t.Errorf("%s: brief %q", name, b)
			}
		}
	}
}

// F3: a machine on which nothing is wrong names no thread that sleeps.
func TestHealthyMachineNamesNobody(t *testing.T) {
	c := quiet()
	text := textOf(t, c.done(), Options{Verdict: c.v, Width: 80, Height: 21, File: file})
	if named(text) != nil || !strings.Contains(text, "\nnothing is stuck\n") || Brief(c.s, c.v) != "nothing is stuck" {
		t.Errorf("%s\n%s", text, Brief(c.s, c.v))
	}
}

var (
	bracketed = regexp.MustCompile(`\[(\d+)\]|tid (\d+)`)
	proposed  = regexp.MustCompile(`(?m)^ *(stackshot .*)$`)
)

// named are the pids and tids that a text names.
func named(text string) (out []uint64) {
	for _, m := range bracketed.FindAllStringSubmatch(proposed.ReplaceAllString(text, ""), -1) {
		n, _ := strconv.ParseUint(m[1]+m[2], 10, 64)
		out = append(out, n)
	}
	return out
}

// check holds a screen against F1, F2, F4 and F5.
func check(t *testing.T, what string, s *kcdata.Snapshot, o Options) {
	t.Helper()
	text := textOf(t, s, o)
	golden.Showable(t, []byte(text))
	ids := map[uint64]bool{}
	for _, task := range s.Tasks {
		ids[task.ID] = true
		for _, th := range task.Threads {
			ids[th.ID] = true
		}
	}
	if o.Width >= 60 { // a number that is cut or broken is another one
		for _, id := range named(text) {
			if !ids[id] && !strings.Contains(text, "not in") {
				t.Fatalf("%s: %d is not in the file:\n%s", what, id, text)
			}
		}
	}
	rows, whole := 0, 0
	for l := range strings.Lines(text) {
		l = strings.TrimSuffix(l, "\n")
		cells := show.Cells(l)
		if rows++; o.Width > 0 && cells > o.Width {
			if !strings.HasPrefix(strings.TrimSpace(l), "stackshot ") {
				t.Fatalf("%s: %d cells: %q", what, cells, l)
			}
			rows += (cells - 1) / o.Width
		}
		if strings.HasPrefix(strings.TrimSpace(l), "stackshot ") {
			words, _, _ := strings.Cut(l, "   # ")
			if whole++; !strings.HasSuffix(words, Word(o.File)) {
				t.Fatalf("%s: cut: %q", what, l)
			}
		}
	}
	if o.Height > 0 && rows > o.Height {
		t.Fatalf("%s: %d rows:\n%s", what, rows, text)
	}
	if o.Height >= 12 && o.Width >= 60 && whole == 0 {
		t.Fatalf("%s: no command:\n%s", what, text)
	}
	if lines := strings.Split(text, "\n"); len(s.LeftOut) > 0 && (o.Height == 0 || o.Height > 1) && !strings.HasPrefix(lines[1], "!!"[:min(2, max(o.Width, 1))]) && o.Width > 4 {
		t.Fatalf("%s: no alarm:\n%s", what, text)
	}
}

// F1, F2, F4: every size of terminal, every story and any machine.
func TestEverySize(t *testing.T) {
	for _, st := range stories {
		c := st.of()
		s := c.done()
		for width := 1; width <= 200; width += 1 + width/16 {
			for height := 1; height <= 60; height += 1 + height/8 {
				check(t, fmt.Sprintf("%s %dx%d", st.name, width, height), s, Options{Verdict: c.v, Width: width, Height: height, File: file})
			}
		}
		check(t, st.name+", no limit", s, Options{Verdict: c.v, File: file})
	}
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 15))
		s := randomSnapshot(r)
		o := Options{Verdict: verdict.Judge(s, 0), Width: 1 + r.IntN(200), Height: 1 + r.IntN(60), File: file}
		check(t, fmt.Sprintf("seed %d, %dx%d", seed, o.Width, o.Height), s, o)
	}
}

// F2: what is shown and what is counted are all findings.
func TestWhatHasNoRoomIsCounted(t *testing.T) {
	hidden := regexp.MustCompile(`(?m)^and (\d+) more: `)
	c := all()
	s := c.done()
	total := 0
	for _, sec := range newView(s, Options{Verdict: c.v}).sections() {
		total += len(sec.entries)
	}
	for height := 8; height <= 60; height++ {
		text := textOf(t, s, Options{Verdict: c.v, Width: 200, Height: height, File: file})
		shown, left := 0, 0
		for l := range strings.Lines(text) {
			if len(l) > 9 && l[7:9] == "  " && strings.TrimSpace(l[:7]) != "" {
				shown++
			}
		}
		if m := hidden.FindStringSubmatch(text); m != nil {
			left, _ = strconv.Atoi(m[1])
		}
		if shown+left != total {
			t.Errorf("height %d: %d shown, %d counted, of %d:\n%s", height, shown, left, total, text)
		}
	}
}

// Only those who are asked for are looked at; the others are counted.
func TestOnly(t *testing.T) {
	c := deadServer()
	s := c.done()
	text := textOf(t, s, Options{Verdict: c.v, Width: 100, Only: map[*kcdata.Thread]bool{c.v.Waits.All[5].Thread: true}})
	if got := named(text); len(got) != 1 || got[0] != c.v.Waits.All[5].Task.ID || !strings.Contains(text, fmt.Sprintf("%d threads not asked for", s.ThreadCount()-4)) {
		t.Errorf("%v\n%s", got, text)
	}
}

// The colours say nothing of their own.
func TestColorOnlyAddsColor(t *testing.T) {
	for _, st := range stories {
		c := st.of()
		s := c.done()
		o := Options{Verdict: c.v, Width: 80, Height: 24, File: file}
		plain := textOf(t, s, o)
		o.Color = true
		colored := textOf(t, s, o)
		if got := strings.NewReplacer(show.Red, "", show.Bold, "", show.Plain, "").Replace(colored); got != plain || colored == plain {
			t.Errorf("%s: %q", st.name, colored)
		}
		if strings.Contains(colored, show.Red) != (len(s.LeftOut) > 0) {
			t.Errorf("%s: red, or not", st.name)
		}
	}
}

// randomSnapshot makes a machine of any states, flags and lacks.
func randomSnapshot(r *rand.Rand) *kcdata.Snapshot {
	w := newWorld(1 + r.IntN(4))
	frames := []string{"schedule", "a", "b [m]", "pipe_write", "folio_wait_bit_common", "?"}
	for pid := range uint32(r.IntN(12)) {
		t := w.task(pid+100, []string{"", "sh", "kworker/1:2", "\x1b]0;x\a", "日本語の長い名前"}[r.IntN(5)])
		t.Linux.Present = r.Uint64() & 0xfff
		for range r.IntN(9) {
			states := []uint32{0, 1, 2, 2, 4, 8, 0x40, 0x80, 0x102, 0x402, 0x8000, r.Uint32()}
			stack := make([]string, r.IntN(5))
			for i := range stack {
				stack[i] = frames[r.IntN(len(frames))]
			}
			th := w.thread(t, "t", states[r.IntN(len(states))], r.Uint64N(2*now), stack...)
			th.Linux.Present = r.Uint64() & 0xffff
			th.Linux.CPU, th.Linux.OnCPU = uint32(r.IntN(5)), uint32(r.IntN(2))
			th.HasLinux, th.HasSnapshot = r.IntN(8) > 0, r.IntN(8) > 0
		}
	}
	return w.done()
}

// BenchmarkScreen20000 is the first screen of 20,000 threads, with the verdict.
func BenchmarkScreen20000(b *testing.B) {
	c := newScene(4)
	for i := range uint32(400) {
		t := c.task(10000+50*i, fmt.Sprintf("service%d", i%40))
		for k := range uint64(50) {
			state := []uint32{kcdata.StateInterruptible, kcdata.StateUninterruptible}[k/49]
			c.thread(t, "t", state, (1+k)*second, "schedule", "folio_wait_bit_common", fmt.Sprintf("f%d [m]", i%16), "do_syscall_64").ID = uint64(10000+50*i) + k
		}
	}
	s := c.done()
	for b.Loop() {
		textOf(b, s, Options{Verdict: verdict.Judge(s, 0), Width: 80, Height: 21, File: file})
	}
}
