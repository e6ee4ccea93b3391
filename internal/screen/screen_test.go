package screen

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"stackshot/internal/show"
	"stackshot/internal/verdict"
	"stackshot/internal/waitgraph"
	"stackshot/internal/waits"
	"stackshot/kcdata"
)

var stories = []struct {
	name string
	of   func() *scene
}{
	{"quiet", quiet}, {"dead_server", deadServer}, {"stopped_holder", stoppedHolder}, {"missed", missed}, {"all", all},
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

// The culprit's number and the word that says why stand in the first 80 cells of a line, on the 21
// rows that 24 leave; the golden files of hangscenes have deadlocks and servers. A machine on which nothing is wrong names no thread that sleeps (F3).
func TestCulpritsAreSeen(t *testing.T) {
	says := map[string][]string{
		"quiet":       {"\nnothing is stuck\n", "\n1 in D for less than 1 s; at rest: ", " asleep, 1 stopped, 2 of 2 CPUs idle\n", "picture exact: 2 of 2 CPUs stopped"},
		"dead_server": {" 3m 02s  postgres [812] D, 1 behind: holds a kernel rwsem (to write); waits for\n         /srv/data (nfs4, store:/data), in rpc_wait_bit_killable [sunrpc]", " 1m 39s  40 x bash [2039] [2038] [2037] D: /srv/data (nfs4, store:/data), in\n         folio_wait_bit_common", "report --pid 2039 "},
		"stopped_holder": {"STOPPED, and others wait for it\n 1m 10s  backup.sh [300] STOPPED, 50 behind: holds a file lock (flock) on inode\n         4711 of /var; longest job [3000]",
			"\nat rest: 3 asleep, 2 of 2 CPUs idle\n", "report --pid 300 "},
		"missed": {"!! CPU 2 did not stop in time. It ran irq/55-mlx5 [640]", "!! the stop was broken 1 time: stacks may be of different moments\n", "!! left out, the pause budget was spent: 1 task with 9 threads (pid 77)\n",
			"!! warning: one CPU of four did not arrive within 10 ms (arrival)\n", "\nnothing else is seen to be stuck\n", "picture not exact: 3 of 4 CPUs"},
	}
	for _, st := range stories {
		c := st.of()
		text := textOf(t, c.done(), Options{Verdict: c.v, Width: 80, Height: 21, File: file})
		for _, s := range says[st.name] {
			if strings.Count(text, s) != 1 {
				t.Errorf("%s: %q is there %d times in\n%s", st.name, s, strings.Count(text, s), text)
			}
		}
		brief := Brief(c.s, c.v)
		switch {
		case st.name == "quiet" && (named(text) != nil || brief != "nothing is stuck"), strings.Contains(brief, "\n"):
			t.Errorf("%s: brief %q\n%s", st.name, brief, text)
		case st.name != "quiet" && named(brief) == nil:
			t.Errorf("%s: brief %q", st.name, brief)
		}
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
	fits(t, what, o, text)
	ids := map[uint64]bool{}
	for _, task := range s.Tasks {
		ids[task.ID] = true
		for _, th := range task.Threads {
			ids[th.ID] = true
		}
	}
	if o.Width >= 60 { // a number that is broken is another one
		for _, id := range named(text) {
			if !ids[id] && !strings.Contains(text, "not in") {
				t.Fatalf("%s: %d is not in the file:\n%s", what, id, text)
			}
		}
	}
	whole := 0
	for l := range strings.Lines(text) {
		if l = strings.TrimSuffix(l, "\n"); strings.HasPrefix(strings.TrimSpace(l), "stackshot ") {
			words, _, _ := strings.Cut(l, "   # ")
			if whole++; !strings.HasSuffix(words, Word(o.File)) {
				t.Fatalf("%s: cut: %q", what, l)
			}
		}
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
		s := randomMachine(r, []string{"", "sh", "kworker/1:2", "\x1b]0;x\a", "日本語の長い名前"}).done()
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
	if got := named(text); len(got) != 1 || got[0] != c.v.Waits.All[5].Task.ID || !strings.Contains(text, fmt.Sprintf("%d threads not asked for", s.ThreadCount()-1)) {
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

// Idle are the CPUs that the stop found idle, not their idle threads, of which each CPU has one.
func TestIdleCPUs(t *testing.T) {
	for n, want := range []string{"", ", 1 of 2 CPUs idle", ", 2 of 2 CPUs idle"} {
		c := quiet()
		s := c.done()
		for i := range s.CPUs {
			s.CPUs[i].Flags &^= kcdata.CPUIdle
			if i < n {
				s.CPUs[i].Flags |= kcdata.CPUIdle
			}
		}
		text := textOf(t, s, Options{Verdict: c.v})
		if strings.Count(text, "CPUs idle") != min(n, 1) || !strings.Contains(text, want) {
			t.Errorf("%d idle:\n%s", n, text)
		}
	}
}

// What a CPU ran that did not stop is named once, and is what to look at first.
func TestSuspectIsNamedOnce(t *testing.T) {
	c := missed()
	s := c.done()
	text := textOf(t, s, Options{Verdict: c.v, File: file})
	if strings.Count(text, "[640]") != 1 || strings.Count(text, "--pid 640 ") != 1 {
		t.Errorf("%s", text)
	}
	if b := Brief(s, c.v); !strings.Contains(b, "irq/55-mlx5 [640]") {
		t.Errorf("brief %q", b)
	}
}

// A stopped holder whose child has the lock too, by a descriptor that it inherited, is told once,
// and that it is not the only one. A convoy of which others wait for somebody else stays.
func TestHolderOfAConvoyIsToldOnce(t *testing.T) {
	for _, stranger := range []bool{false, true} {
		c := stoppedHolder()
		k := c.v.Culprits[0]
		child, th := c.process(301, "sleep", kcdata.StateInterruptible, 80, "schedule", "hrtimer_nanosleep")
		o := has(child, th, waits.Holds)
		o.Whole = true
		for _, w := range k.Victims {
			w.Owners = append(w.Owners, o)
		}
		convoy := &waitgraph.Convoy{Resource: k.Victims[0].Resource, Waiters: k.Victims, Owners: k.Victims[0].Owners}
		if stranger {
			job, other := c.process(4000, "job", kcdata.StateInterruptible, 5, "schedule", "locks_lock_inode_wait")
			convoy.Waiters = append(convoy.Waiters[:50:50], c.waits(job, other, waits.FileLock, 5, o))
		}
		c.v.Convoys = append(c.v.Convoys, convoy)
		text := textOf(t, c.done(), Options{Verdict: c.v, Width: 200, Height: 50, File: file})
		if !strings.Contains(text, "backup.sh [300] STOPPED, 50 behind: holds a file lock (flock) on inode 4711 of /var, as does 1 more") {
			t.Errorf("stranger %v: not told:\n%s", stranger, text)
		}
		if n := strings.Count(text, "backup.sh [300]"); (n > 1) != stranger {
			t.Errorf("stranger %v: named %d times:\n%s", stranger, n, text)
		}
	}
}
