package report

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"stackshot/internal/model"
	"stackshot/internal/screen"
	"stackshot/internal/waitgraph"
	"stackshot/internal/waits"
	"stackshot/kcdata"
)

// judged gives a story a verdict made by hand: the first thread of pid waits for a lock that
// the second holds, and that one for the first's.
func judged(s *kcdata.Snapshot, pid uint64) *waitgraph.Verdict {
	w := &waits.Waits{Of: map[*kcdata.Thread]*waits.Wait{}, OneInstant: true}
	v := &waitgraph.Verdict{Waits: w}
	for _, t := range s.Tasks {
		if t.ID != pid {
			continue
		}
		for i := range 2 {
			owner := t.Threads[1-i]
			x := &waits.Wait{
				Task: t, Thread: t.Threads[i], Kind: waits.RWSemWrite, Resource: waits.Resource{Kind: waits.RWSemWrite, ID: 0xffff888100 + uint64(i)},
				Owners: []waits.Owner{{Task: t, Thread: owner, Tid: uint32(owner.ID), Pid: uint32(pid), Relation: waits.Holds}},
				Age:    model.Age{Ns: 5 * second, Known: true}, Evidence: waits.Field, Confidence: waits.Sure, When: waits.Window,
			}
			w.All = append(w.All, x)
			w.Of[x.Thread] = x
		}
		v.Deadlocks = []*waitgraph.Deadlock{{Confidence: waits.Sure, Cycle: w.All, Part: w.All}}
	}
	return v
}

func textOf(t *testing.T, s *kcdata.Snapshot, o Options) string {
	t.Helper()
	var b bytes.Buffer
	if err := Text(&b, s, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func jsonOf(t *testing.T, s *kcdata.Snapshot, o Options) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := JSON(&b, s, o); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// The report begins with the whole first screen, and a thread's line says what it waits for.
func TestReportBeginsWithTheFirstScreen(t *testing.T) {
	s := deadNFSServer()
	v := judged(s, 812)
	var first bytes.Buffer
	if err := screen.Text(&first, s, screen.Options{Verdict: v, Width: 80}); err != nil {
		t.Fatal(err)
	}
	if text := textOf(t, s, Options{Verdict: v, Width: 80}); !strings.HasPrefix(text, first.String()) || !strings.Contains(first.String(), "deadlock of 2: postgres [812], tid 5006") {
		t.Errorf("%.1500s", text)
	}
	text := textOf(t, s, Options{Verdict: v})
	for _, want := range []string{
		"in fsync, waits for the kernel rwsem 0xffff888100 (to write) that postgres [812] tid 5006 \"checkpointer\" holds\n",
		"in write, waits for the kernel rwsem 0xffff888101 (to write) that postgres [812] holds\n",
	} {
		if strings.Count(text, want) != 1 {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// A group whose threads wait for several things says what one of them waits for.
func TestGroupWaits(t *testing.T) {
	w := newWorld(1)
	app := w.task(70, "app")
	for range 4 {
		in(w.thread(app, "worker", kcdata.StateInterruptible, second, futex...), 202)
	}
	s := w.done()
	all := &waits.Waits{Of: map[*kcdata.Thread]*waits.Wait{}}
	for i, want := range []string{
		"", "tid 70 waits for the mutex 0x1", "tid 70 waits for the mutex 0x1, and so do 1 more",
		"tid 70 waits for the mutex 0x1, and so do 2 more", "in futex, waits for the mutex 0x1",
	} {
		if i > 0 {
			th := app.Threads[i-1]
			all.Of[th] = &waits.Wait{Task: app, Thread: th, Kind: waits.UserMutex, Resource: waits.Resource{Kind: waits.UserMutex, Task: 70, ID: 1}}
		}
		text := textOf(t, s, Options{Verdict: &waitgraph.Verdict{Waits: all}})
		if !strings.Contains(text, want+"\n") || want == "" && strings.Contains(text, "waits for") {
			t.Errorf("%d threads: no %q in\n%s", i, want, text)
		}
	}
	// A wait that says no more than the state does is not said.
	all.Of = map[*kcdata.Thread]*waits.Wait{app.Threads[0]: {Task: app, Thread: app.Threads[0], Kind: waits.Timer}}
	if text := textOf(t, s, Options{Verdict: &waitgraph.Verdict{Waits: all}}); strings.Contains(text, "waits for") {
		t.Errorf("%s", text)
	}
}

// Threads that wait for several things are counted by what that is: by the peer, the program, the kind.
func TestGroupWaitsForSeveralThings(t *testing.T) {
	w := newWorld(1)
	app := w.task(70, "app")
	for range 20 {
		in(w.thread(app, "worker", kcdata.StateInterruptible, second, futex...), 202)
	}
	postgres := w.task(812, "postgres")
	backend := w.thread(postgres, "postgres", kcdata.StateInterruptible, second, "schedule", "do_sys_poll")
	s := w.done()
	all := &waits.Waits{Of: map[*kcdata.Thread]*waits.Wait{}}
	at := func(i int, r waits.Resource, remote string) *waits.Wait {
		r.ID = uint64(i)
		x := &waits.Wait{Task: app, Thread: app.Threads[i], Kind: r.Kind, Resource: r}
		if r.Kind == waits.Socket {
			x.File = &waits.OpenFile{File: &kcdata.LinuxFile{Kind: kcdata.FileSocket, Op: kcdata.FileOpRead}, Socket: &kcdata.LinuxSocket{Family: 2, Kind: 1}, Of: 1, Remote: remote}
		}
		all.Of[x.Thread] = x
		return x
	}
	socket := waits.Resource{Kind: waits.Socket}
	for i := range 20 {
		at(i, socket, "10.99.0.2:8080")
	}
	line := func(want string) {
		t.Helper()
		if text := textOf(t, s, Options{Verdict: &waitgraph.Verdict{Waits: all}}); !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	line("in futex, waits for data from the TCP connection to 10.99.0.2:8080\n")
	for i := 8; i < 13; i++ {
		at(i, waits.Resource{Kind: waits.JavaMonitor}, "")
	}
	for i := 13; i < 17; i++ {
		x := at(i, socket, "")
		x.File.Socket = &kcdata.LinuxSocket{Family: 1, Kind: 1}
		x.Owners = []waits.Owner{{Task: postgres, Thread: backend, Tid: 812, Pid: 812, Relation: waits.OtherEnd, Whole: true}}
	}
	at(17, waits.Resource{Kind: waits.UserMutex}, "")
	at(18, waits.Resource{Kind: waits.UserMutex}, "")
	at(19, waits.Resource{Kind: waits.RustLock}, "")
	line("8 wait for data from the TCP connection to 10.99.0.2:8080, 5 more for a Java monitor, 4 more for data from a unix socket, other end postgres, 2 more for a mutex, 1 more for something else\n")
}

// Waits at several descriptors have no number, and are not the same for that.
func TestGroupWaitsAtSeveralDescriptors(t *testing.T) {
	w := newWorld(1)
	app := w.task(70, "app")
	all := &waits.Waits{Of: map[*kcdata.Thread]*waits.Wait{}}
	for i := range 4 {
		th := w.thread(app, "worker", kcdata.StateInterruptible, second, futex...)
		in(th, 202)
		all.Of[th] = &waits.Wait{Task: app, Thread: th, Kind: waits.Poll, File: &waits.OpenFile{
			File: &kcdata.LinuxFile{Kind: kcdata.FileSocket, Op: kcdata.FileOpRead, Flags: kcdata.FilePolled}, Socket: &kcdata.LinuxSocket{Family: 2, Kind: 1, LocalPort: uint16(100 + i), PeerPort: 80}, Of: 2}}
	}
	text := textOf(t, w.done(), Options{Verdict: &waitgraph.Verdict{Waits: all}})
	if strings.Contains(text, "-") && strings.Contains(text, ", -") || strings.Contains(text, "so do") || !strings.Contains(text, "port 100 to port 80, 1 more for ") {
		t.Errorf("\n%s", text)
	}
}

// JSON has the wait of each thread that waits, without naming the thread again.
func TestJSONHasWaits(t *testing.T) {
	s := deadNFSServer()
	var doc struct {
		Tasks []struct {
			Threads []struct {
				Tid  int
				Wait map[string]any
			}
		}
	}
	if err := json.Unmarshal(jsonOf(t, s, Options{Verdict: judged(s, 812), Only: ofTasks(s, 812)}), &doc); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, th := range doc.Tasks[0].Threads {
		if th.Wait == nil {
			continue
		}
		n++
		owner := th.Wait["owners"].([]any)[0].(map[string]any)
		if th.Wait["kind"] != "rwsem_write" || th.Wait["tid"] != nil || owner["relation"] != "holds" || owner["tid"] == th.Tid {
			t.Errorf("tid %d: %v", th.Tid, th.Wait)
		}
	}
	if n != 2 {
		t.Errorf("%d threads wait", n)
	}
}

// Stacks are those of the threads asked for, as the report has them, and nothing else.
func TestStacks(t *testing.T) {
	s := deadNFSServer()
	v := judged(s, 812)
	only := map[*kcdata.Thread]bool{v.Waits.All[0].Thread: true, v.Waits.All[1].Thread: true}
	var b bytes.Buffer
	if err := Stacks(&b, s, only, Options{}); err != nil {
		t.Fatal(err)
	}
	text := textOf(t, deadNFSServer(), Options{})
	for group := range strings.SplitSeq(strings.TrimSpace(b.String()), "    tid ") {
		if !strings.Contains(text, strings.TrimSpace(group)) {
			t.Errorf("not in the report: %s", group)
		}
	}
	if n := strings.Count(b.String(), "    tid "); n != 2 || strings.Contains(b.String(), "not listed") || strings.Contains(b.String(), "bash") {
		t.Errorf("%s", b.String())
	}
}
