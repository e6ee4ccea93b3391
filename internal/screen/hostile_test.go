package screen

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"stackshot/internal/golden"
	"stackshot/internal/show"
	"stackshot/internal/verdict"
)

// nasty are names as anybody can give them.
var nasty = []string{
	"", " ", "\n", "a\nb", "\x1b[2J\x1b]0;x\a", "\u202egnp.exe", "\u200b\u200b", "e\u0301\u0302\u0303", "日本語の長い名前", "`reboot`", "...",
	"!! all is well", "\xff\xfe", "$(reboot)", "a b", "'", "-", "--help", "\u0338\u0338", "👩‍👩‍👧", "%s%d%n", "\x00x", "stackshot doctor",
	strings.Repeat("\u0301", 300), strings.Repeat("長", 300),
}

// numbers are those at the ends of what a field holds.
var numbers = []uint64{0, 1, 9, 1e9, 1 << 31, 1<<32 - 1, 1 << 32, 1 << 63, 1<<64 - 1, now, now + 1, now - 1}

func any64(r *rand.Rand) uint64 { return numbers[r.IntN(len(numbers))] }

// F1, F2: no name, number, age or group makes a screen that is raw or larger than the terminal.
func TestNobodySpoilsTheScreen(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1515))
		m := randomMachine(r, nasty)
		spoil(r, m)
		m.done()
		o := Options{Verdict: verdict.Judge(m.s, 0), Width: 1 + r.IntN(120), Height: 1 + r.IntN(40), File: nasty[r.IntN(len(nasty))] + ".kcdata", Color: r.IntN(2) == 0}
		what := fmt.Sprintf("seed %d, %dx%d", seed, o.Width, o.Height)
		fits(t, what, o, textOf(t, m.s, o))
		brief := Brief(m.s, o.Verdict)
		if golden.Showable(t, []byte(brief)); brief == "" || strings.Contains(brief, "\n") {
			t.Fatalf("%s: brief %q", what, brief)
		}
	}
}

// spoil writes over a machine what makes no sense.
func spoil(r *rand.Rand, m *machine) {
	name := func() string { return nasty[r.IntN(len(nasty))] }
	m.s.Hostname, m.s.Release, m.s.Loadavg, m.s.Pressure = name(), name(), name(), m.s.Pressure+name()
	m.s.Meminfo += "MemTotal: 99999999999999999999 kB\n" + name()
	m.s.Machine.RealtimeNs, m.s.Machine.BoottimeNs, m.s.Capture.StoppedNs = any64(r), any64(r), any64(r)
	m.s.HasMachine, m.s.HasCapture = r.IntN(4) > 0, r.IntN(4) > 0
	for i := range m.s.CPUs {
		m.s.CPUs[i].Flags = r.Uint32()
		m.s.CPUs[i].RqClock, m.s.CPUs[i].RqClockAt = any64(r), any64(r)
	}
	for _, g := range m.s.Cgroups {
		g.Current, g.Max, g.High, g.MaxEvents, g.OOMKill = any64(r), any64(r), any64(r), any64(r), any64(r)
		g.SomeAvg10, g.FullAvg10, g.Threads, g.Tasks = r.Uint32(), r.Uint32(), r.Uint32(), r.Uint32()
	}
	for _, t := range m.s.Tasks {
		if r.IntN(4) > 0 {
			continue
		}
		t.ID, t.Cgroup, t.ExePath = any64(r), "/"+name()+".service/"+name(), name()
		t.Linux.NrThreads, t.Linux.Present = r.Uint32(), r.Uint64()
		t.Linux.StartBoottime = any64(r)
		for _, th := range t.Threads {
			th.ID, th.Name, th.Wchan = any64(r), name(), name()
			th.Linux.LastArrival, th.Linux.State, th.Linux.Present = any64(r), r.Uint32(), r.Uint64()
			th.Linux.CPU, th.HasLinux = r.Uint32(), r.IntN(4) > 0
		}
	}
	if r.IntN(10) == 0 {
		m.s.Tasks = nil
	}
}

// fits holds a text against the terminal: a command alone may be wider than it.
func fits(t *testing.T, what string, o Options, text string) {
	t.Helper()
	if o.Color {
		text = strings.NewReplacer(show.Red, "", show.Bold, "", show.Plain, "").Replace(text)
	}
	golden.Showable(t, []byte(text))
	rows := 0
	for l := range strings.Lines(text) {
		l = strings.TrimSuffix(l, "\n")
		cells := show.Cells(l)
		if rows++; o.Width == 0 {
			continue
		}
		rows += max(0, cells-1) / o.Width
		if cells > o.Width && !strings.HasPrefix(strings.TrimSpace(l), "stackshot ") {
			t.Fatalf("%s: %d cells: %q", what, cells, l)
		}
	}
	if o.Height > 0 && rows > o.Height {
		t.Fatalf("%s: %d rows:\n%s", what, rows, text)
	}
}
