//go:build linux && (amd64 || arm64)

package testtask

import (
	"fmt"
	"testing"

	"stackshot/internal/testneed"
)

func TestCheck(t *testing.T) {
	w := ThreadWant{States: "SD", Stack: [][]string{{"a", "b"}, {"c"}}}
	for _, tt := range []struct {
		name  string
		want  ThreadWant
		state byte
		stack []string
		ok    bool
	}{
		{"whole", w, 'S', []string{"x", "b", "y", "c", "z"}, true},
		{"suffix", w, 'D', []string{"a.constprop.0", "c.isra.1"}, true},
		{"wrong order", w, 'S', []string{"c", "a"}, false},
		{"one missing", w, 'S', []string{"a"}, false},
		{"prefix is not the name", w, 'S', []string{"a2", "c"}, false},
		{"wrong state", w, 'R', []string{"a", "c"}, false},
		{"nothing wanted", ThreadWant{States: "R"}, 'R', []string{"a"}, true},
		{"no stack, none", ThreadWant{States: "Z", NoStack: true}, 'Z', nil, true},
		{"no stack, some", ThreadWant{States: "Z", NoStack: true}, 'Z', []string{"a"}, false},
		{"no state", w, 0, []string{"a", "c"}, false},
	} {
		if err := tt.want.Check(tt.state, tt.stack); (err == nil) != tt.ok {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

func TestKindsDoNotShareNames(t *testing.T) {
	testneed.Live(t)
	seen := map[string]bool{}
	for _, k := range append(All(), fifoHog, fifoCallHog, cpuHogs, exitStorm) {
		if seen[k.Name] {
			t.Errorf("two kinds named %q", k.Name)
		}
		seen[k.Name] = true
	}
}

// Whatever a process is called, its state is read from behind the name.
func FuzzParseStat(f *testing.F) {
	f.Add(nastyComm, byte('S'), 1)
	f.Add(") R 7 (", byte('Z'), 20)
	f.Fuzz(func(t *testing.T, comm string, state byte, ppid int) {
		if state <= ' ' || state >= 0x7f || state == ')' {
			return
		}
		line := fmt.Sprintf("12 (%s) %c %d 3 4 5 6 4194304 8 9 10 11 12 13 14 15 20 -5 1 0 99\n", comm, state, ppid)
		got, err := parseStat([]byte(line))
		want := stat{comm: comm, state: state, ppid: ppid, flags: 4194304, nice: -5}
		if err != nil || got != want {
			t.Errorf("%q: %+v, %v, want %+v", line, got, err, want)
		}
	})
}

func TestParseStatRefuses(t *testing.T) {
	for _, line := range []string{"", "1 (a", "1 a) S", "1 (a) S 1 2", ")(", "1 (a) SS 0 3 4 5 6 1 8 9 10 11 12 13 14 15 20 -5 1"} {
		if st, err := parseStat([]byte(line)); err == nil {
			t.Errorf("%q gave %+v", line, st)
		}
	}
}
