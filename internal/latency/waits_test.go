package latency

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"stackshot/kcdata"
)

// sample is a file of a series, as its maker knows it: who waits where.
type sample struct {
	at      uint64
	threads map[waitKey]uint64 // switches
}

func (m sample) snapshot(boot string) *kcdata.Snapshot {
	s := &kcdata.Snapshot{BootID: boot, Hostname: "vm", HasMachine: true, Symbols: new(kcdata.SymbolTable)}
	s.Machine.MonotonicNs = m.at
	for key, switches := range m.threads {
		th := &kcdata.Thread{ID: key.tid, HasLinux: true, Wchan: key.place}
		th.Linux = kcdata.LinuxThread{
			Present: kcdata.ThreadHasSwitches | kcdata.ThreadHasStart, State: 1, StartBoottime: key.start, Nvcsw: switches,
		}
		s.Tasks = append(s.Tasks, &kcdata.Task{ID: key.tgid, Name: key.command, Threads: []*kcdata.Thread{th}})
	}
	return s
}

// randomSeries has few threads, so that some stay where they are; numbers are used again.
func randomSeries(r *rand.Rand) []sample {
	out := make([]sample, 2+r.IntN(5))
	for i := range out {
		out[i] = sample{uint64(1000 * (i + 1)), map[waitKey]uint64{}}
		for tid := range uint64(6) {
			key := waitKey{tid + 10, tid + 10, uint64(r.IntN(8) / 7), fmt.Sprint("cmd", tid%2), fmt.Sprint("place", r.IntN(9)/7)}
			if r.IntN(8) > 0 {
				out[i].threads[key] = uint64(r.IntN(9) / 8)
			}
		}
	}
	return out
}

// recount is what the figures are, plainly.
func recount(all []sample) map[[2]string]Place {
	out := map[[2]string]Place{}
	seen := map[waitKey]bool{}
	for _, m := range all {
		visited := map[[2]string]bool{}
		for key := range m.threads {
			where := [2]string{key.command, key.place}
			p := out[where]
			if !visited[where] {
				visited[where] = true
				p.Files++
			}
			if !seen[key] {
				seen[key] = true
				p.count(all, key)
			}
			out[where] = p
		}
	}
	return out
}

func (p *Place) count(all []sample, key waitKey) {
	p.Threads++
	had, in := all[0].threads[key]
	if !in {
		p.Appeared++
	}
	if _, in := all[len(all)-1].threads[key]; !in {
		p.Gone++
	}
	for _, m := range all {
		if now, here := m.threads[key]; !here || now != had {
			return
		}
	}
	p.Stuck++
}

// In any order of the files the figures are those of a plain recount, and files of another
// boot, or the same file twice, change nothing.
func TestWaitsAreARecount(t *testing.T) {
	stuck := 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 15))
		all := randomSeries(r)
		w := new(Waits)
		for _, i := range r.Perm(len(all)) {
			w.Add(all[i].snapshot("a"), nil)
		}
		w.Add(all[0].snapshot("another"), nil)
		w.Add(all[0].snapshot("a"), nil)
		w.Add(all[0].snapshot(""), nil)
		series := w.All(1000)
		if len(series) != 1 || series[0].Files != len(all) || w.Twice != 1 || w.NoBoot != 1 || w.lone() != 1 {
			t.Fatalf("seed %d: %+v of %+v", seed, series, w)
		}
		want := recount(all)
		for i, p := range series[0].Places {
			x := want[[2]string{p.Command, p.Place}]
			got := Place{Files: p.Files, Threads: p.Threads, Appeared: p.Appeared, Gone: p.Gone, Stuck: p.Stuck}
			if !reflect.DeepEqual(got, x) || p.Share != float64(x.Files)/float64(len(all)) {
				t.Errorf("seed %d: %s in %s: %+v, want %+v", seed, p.Command, p.Place, got, x)
			}
			if i > 0 && series[0].Places[i-1].Stuck < p.Stuck || (p.Stuck > 0) != (p.Example != nil) {
				t.Errorf("seed %d: place %d: %+v", seed, i, p)
			}
			stuck += p.Stuck
		}
		if len(series[0].Places) != len(want) {
			t.Errorf("seed %d: %d places, want %d", seed, len(series[0].Places), len(want))
		}
	}
	if stuck == 0 {
		t.Error("no series has a stuck thread")
	}
}

// What has no switch count is not called stuck; what is not in a series is counted.
func TestWaitsText(t *testing.T) {
	key := waitKey{7, 7, 1, "flo\x1bck", "flock_lock_inode_wait"}
	a, b := sample{1, map[waitKey]uint64{key: 5}}, sample{2e9, map[waitKey]uint64{key: 5}}
	var w Waits
	w.Add(a.snapshot("a"), nil)
	second := b.snapshot("a")
	w.Add(second, nil)
	w.Add(b.snapshot("b"), nil)
	var text bytes.Buffer
	p := newPage(&text, 80)
	p.waits(&w, 10)
	p.w.Flush()
	for _, want := range []string{"2 files of vm", "100%", "in flock_lock_inode_wait, e.g. tid 7", "not in a series: 1 file alone"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, text.String())
		}
	}
	if strings.Contains(text.String(), "\x1b") {
		t.Errorf("raw: %q", text.String())
	}
	var unknown Waits
	unknown.Add(a.snapshot("a"), nil)
	second.Tasks[0].Threads[0].Linux.Present &^= kcdata.ThreadHasSwitches
	unknown.Add(second, nil)
	if got := unknown.All(10)[0].Places[0]; got.Stuck != 0 || got.Threads != 1 {
		t.Errorf("without switch counts: %+v", got)
	}
}
