package account

import (
	"encoding/json"
	"strings"
	"testing"

	"stackshot/kcdata"
)

// What is said of a record in brief, in full and as JSON are the same figures.
func TestOneAccount(t *testing.T) {
	s := &kcdata.Snapshot{
		HasCapture: true, Engine: "trap", Isolation: "irqoff",
		Capture:   kcdata.LinuxCapture{StoppedNs: 25_000_000, WindowNs: 7_000_000, ArrivalNs: 36_000, Tries: 2, StopBroken: 3},
		Atomicity: &kcdata.LinuxAtomicity{Compared: 712, Ran: 5, Gone: 1, Missed: 2, Method: kcdata.AtomicityInWindow, SpanNs: 12_000_000},
		Ran:       []kcdata.LinuxRan{{Tid: 41, Tgid: 40, RuntimeNs: 7}, {Tid: 9, Tgid: 8, RuntimeNs: 900}},
		Tasks:     []*kcdata.Task{{ID: 40, Name: "sh\x1b", Threads: []*kcdata.Thread{{ID: 41, Name: "w"}}}},
		CPUs: []kcdata.LinuxCPU{
			{CPU: 0, Flags: kcdata.CPUStopped, ArriveNs: 1000, Threads: 4}, {CPU: 1, Flags: kcdata.CPUStopped, ArriveNs: 37_000}, {CPU: 2, Flags: kcdata.CPULeft},
		},
	}
	m, p, a := MachineOf(s), PauseOf(s, nil), AtomicityOf(s)
	for _, c := range []struct {
		what       string
		brief      string
		full       string
		json       any
		both       []string
		inJSON     []string
		onlyInFull string
	}{
		{"pause", BriefPause(s), p.Full(&m), CaptureJSON(s), []string{"stopped for 25 ms", "2 of 3 CPUs"}, []string{`"stopped_ns":25000000`, `"tries":2`, `"isolation":"irqoff"`}, "CPU 1 last"},
		{"atomicity", BriefAtomicity(s), a.Full(), AtomicityJSON(s), []string{"5 of 712 threads ran during the window"}, []string{`"ran":5`, `"compared":712`, `"method":"in_window"`, `"tid":41`}, "1 gone"},
	} {
		b, err := json.Marshal(c.json)
		if err != nil {
			t.Fatal(err)
		}
		for _, words := range c.both {
			if brief := strings.Replace(c.brief, " in 2 tries", "", 1); !strings.Contains(brief, strings.TrimSuffix(words, " CPUs")) || !strings.Contains(c.full, words) {
				t.Errorf("%s: %q is missing:\n%s\n%s", c.what, words, c.brief, c.full)
			}
		}
		for _, member := range c.inJSON {
			if !strings.Contains(string(b), member) {
				t.Errorf("%s: no %s in %s", c.what, member, b)
			}
		}
		if !strings.Contains(c.full, c.onlyInFull) {
			t.Errorf("%s: %s", c.what, c.full)
		}
	}
	if got := a.Threads; len(got) != 2 || got[0].String() != "? [8] tid 9" || got[1].String() != `sh\x1b [40] tid 41 "w"` {
		t.Errorf("who ran: %v", got)
	}
	if w := p.CPUs; len(w) != 2 || *w[0].AfterNs != 0 || *w[1].AfterNs != 36_000 || *p.LastCPU != 1 {
		t.Errorf("works %+v, last %v", w, p.LastCPU)
	}
	if Broken(0) != "" || Broken(3) != "the stop was broken 3 times" {
		t.Errorf("%q", Broken(3))
	}
}
