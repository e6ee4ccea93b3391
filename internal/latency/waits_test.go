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

// A thread that rests in one of the files is not stuck, and the most idle threads of a file count; only
// those that were asked for do.
func TestRestsInOneFile(t *testing.T) {
	var w Waits
	for at := range 3 {
		s := sample{1 + uint64(at), map[waitKey]uint64{{7, 7, 1, "client", "one"}: 5, {8, 8, 1, "other", "one"}: 5}}.snapshot("a")
		s.Symbols, s.FilesTaken = kcdata.NewSymbolTable([]kcdata.LinuxSymbol{{Addr: 16, Name: 1}}, "\x00vsock_stream_recvmsg\x00"), new(kcdata.LinuxFilesTaken)
		only := map[*kcdata.Thread]bool{}
		for _, task := range s.Tasks {
			th := task.Threads[0]
			if th.Kernel, only[th] = []uint64{16}, task.ID == 7; at != 1 { // else it is not known at which socket
				th.Files = []kcdata.LinuxFile{{Kind: kcdata.FileSocket, Op: kcdata.FileOpRead, Flags: kcdata.FileToRead | kcdata.FileStill, Object: 9}}
				th.Sockets = []kcdata.LinuxSocket{{Family: 40}}
			}
		}
		for n := range []int{0, 2, 1}[at] {
			th := &kcdata.Thread{ID: uint64(100 + n), HasLinux: true, Linux: kcdata.LinuxThread{State: kcdata.StateInterruptible, Flags: kcdata.PFKthread}}
			s.Tasks = append(s.Tasks, &kcdata.Task{ID: th.ID, Threads: []*kcdata.Thread{th}})
			only[th] = true
		}
		w.Add(s, only)
	}
	series := w.All(10)[0]
	if len(series.Places) != 1 || series.Places[0].Stuck != 0 || series.Places[0].Files != 3 || series.Places[0].Command != "client" || series.Idle != 2 {
		t.Errorf("%+v", series)
	}
}

// Of those that have not run since the first file only who is not at rest is stuck. Idle kernel threads
// have no place, and are counted.
func TestWhatRestsIsNotStuck(t *testing.T) {
	type file = kcdata.LinuxFile
	abroad := func(th *kcdata.Thread) {
		th.Files = []file{{Kind: kcdata.FileSocket, Op: kcdata.FileOpRead, Flags: kcdata.FileToRead | kcdata.FileStill, Object: 9}}
		th.Sockets = []kcdata.LinuxSocket{{Family: 40}} // vsock
	}
	for _, c := range []struct {
		place, command string
		state          uint32
		change         func(th *kcdata.Thread)
		stuck, idle    int
	}{
		{"flock_lock_inode_wait", "cron", kcdata.StateInterruptible, nil, 1, 0},
		{"rpc_wait_bit_killable", "dd", kcdata.StateUninterruptible, nil, 1, 0},
		{"vsock_stream_recvmsg", "client", kcdata.StateInterruptible, abroad, 1, 0},
		{"pipe_write", "tar", kcdata.StateInterruptible, func(th *kcdata.Thread) {
			th.Files = []file{{Kind: kcdata.FilePipe, Op: kcdata.FileOpWrite, Flags: kcdata.FileToWrite}}
		}, 1, 0},
		{"pipe_read", "cat", kcdata.StateInterruptible, nil, 0, 0},
		{"inet_csk_accept", "sshd", kcdata.StateInterruptible, nil, 0, 0},
		{"ep_poll", "nginx", kcdata.StateInterruptible, nil, 0, 0},
		{"hrtimer_nanosleep", "sleep", kcdata.StateInterruptible, nil, 0, 0},
		{"do_wait", "sh", kcdata.StateInterruptible, nil, 0, 0},
		{"wait_for_vfork_done", "make", kcdata.StateUninterruptible, nil, 0, 0},
		{"", "hidden", kcdata.StateInterruptible, nil, 0, 0},
		{"worker_thread", "kworker/0:1", kcdata.StateUninterruptible | kcdata.StateNoload, func(th *kcdata.Thread) { th.Linux.Flags |= kcdata.PFKthread }, 0, 1},
	} {
		var w Waits
		key := waitKey{7, 7, 1, c.command, c.place}
		for at := range uint64(3) {
			s := sample{1 + at, map[waitKey]uint64{key: 5}}.snapshot("a")
			th := s.Tasks[0].Threads[0]
			th.Linux.State = c.state
			if c.place != "" {
				s.Symbols, th.Kernel = kcdata.NewSymbolTable([]kcdata.LinuxSymbol{{Addr: 16, Name: 1}}, "\x00"+c.place+"\x00"), []uint64{16}
			}
			if c.change != nil {
				c.change(th)
			}
			s.FilesTaken = new(kcdata.LinuxFilesTaken)
			w.Add(s, nil)
		}
		series := w.All(10)[0]
		stuck := 0
		for _, p := range series.Places {
			stuck += p.Stuck
		}
		if stuck != c.stuck || series.Idle != c.idle || len(series.Places) != 1-c.idle {
			t.Errorf("%s in %s: stuck %d, want %d; %+v", c.command, c.place, stuck, c.stuck, series)
		}
	}
}
