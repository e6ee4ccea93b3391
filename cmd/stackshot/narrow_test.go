package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/spf13/cobra"

	"stackshot/internal/hang"
	"stackshot/internal/latency"
	"stackshot/internal/report"
	"stackshot/internal/testneed"
	"stackshot/internal/verdict"
	"stackshot/kcdata"
)

// narrowed are the flags of a command line, made ready.
func narrowed(t *testing.T, args ...string) *narrowing {
	t.Helper()
	n, cmd := &narrowing{}, &cobra.Command{}
	n.flags(cmd)
	if err := errors.Join(cmd.ParseFlags(args), n.check(cmd)); err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	return n
}

// crowd is a snapshot of processes and idle kernel threads in many states. Each thread has a
// number of its own. No two threads of a task have the same stack, so text names each.
func crowd(r *rand.Rand) *kcdata.Snapshot {
	s := &kcdata.Snapshot{HasMachine: true, Arch: "x86_64"}
	strs := []byte{0}
	var syms []kcdata.LinuxSymbol
	for i := range 6 {
		syms = append(syms, kcdata.LinuxSymbol{Addr: 1<<63 + uint64(i), Name: uint32(len(strs)), Size: 1})
		strs = append(strs, fmt.Sprintf("function_%d\x00", i)...)
	}
	s.Symbols = kcdata.NewSymbolTable(syms, strs)
	states := []uint32{0, kcdata.StateInterruptible, kcdata.StateUninterruptible, kcdata.StateUninterruptible | kcdata.StateNoload, kcdata.StateStopped}
	id := uint64(1)
	for range 25 {
		task := &kcdata.Task{ID: id, Name: []string{"app", "db", "kworker/0:1"}[r.IntN(3)], HasLinux: true, Cgroup: "/system.slice"}
		if task.Name == "kworker/0:1" {
			task.Linux.Present |= kcdata.TaskIsKernel
		}
		for i := range 1 + r.IntN(3) {
			th := &kcdata.Thread{ID: id, HasLinux: true, Kernel: []uint64{1<<63 + uint64(i), 1<<63 + uint64(3+r.IntN(3))}}
			th.Linux = kcdata.LinuxThread{Present: kcdata.ThreadHasOnCPU, State: states[r.IntN(len(states))]}
			task.Threads = append(task.Threads, th)
			id++
		}
		s.Tasks = append(s.Tasks, task)
	}
	return s
}

// The same flags show the same threads in every form of the report, and of hang and latency.
func TestEachFormShowsTheSameThreads(t *testing.T) {
	testneed.Live(t)
	t.Parallel()
	for seed := range uint64(20) {
		s := crowd(rand.New(rand.NewPCG(seed, 15)))
		v := verdict.Judge(s, defaultMinWait)
		for _, args := range [][]string{
			{"--where", "state=D or name=kworker*"}, {"--where", "not func=function_4"}, {"--state", "D", "--state", "S", "--func", "function_1"},
			{"--pid", "1", "--pid", "20"}, {"--where", "threads>2", "--name", "a*"}, {"--cgroup", "slice"}, {"--waits-for", "stopped"},
		} {
			n := narrowed(t, args...)
			only, _ := n.choose(s, v)
			var want []uint64
			for _, task := range s.Tasks {
				for _, th := range task.Threads {
					if only[th] {
						want = append(want, th.ID)
					}
				}
			}
			forms := shownBy(t, s, report.Options{Only: only, Verdict: v})
			forms["hang"] = hangShows(t, s, hang.Options{Only: only})
			waiting := slices.Clone(want)
			waiting = slices.DeleteFunc(waiting, func(tid uint64) bool { return !slices.ContainsFunc(s.Tasks, hasWaiter(v.Waits.Of, tid)) })
			for form, got := range forms {
				want := want
				if form == "hang" {
					want = waiting
				}
				if slices.Sort(got); !slices.Equal(got, want) {
					t.Fatalf("seed %d, %q: %s shows %v, want %v", seed, args, form, got, want)
				}
			}
			var folded bytes.Buffer
			if err := report.Folded(&folded, s, report.Options{Only: only}); err != nil || foldedThreads(folded.String()) != len(want) {
				t.Fatalf("seed %d, %q: %d threads, %v in\n%s", seed, args, len(want), err, folded.String())
			}
			if f := latency.Measure("", s, 9, only); f.Sched.Threads != len(want) || f.Sched.NotAsked != s.ThreadCount()-len(want) {
				t.Fatalf("seed %d, %q: latency has %+v", seed, args, f.Sched)
			}
		}
	}
}

// hasWaiter reports whether a task has the thread, and it waits.
func hasWaiter[W any](of map[*kcdata.Thread]*W, tid uint64) func(*kcdata.Task) bool {
	return func(task *kcdata.Task) bool {
		return slices.ContainsFunc(task.Threads, func(th *kcdata.Thread) bool { return th.ID == tid && of[th] != nil })
	}
}

var tidOfGroup = regexp.MustCompile(`(?m)^    tid (\d+):`)

// shownBy has the numbers of the threads in text, JSON and profile.
func shownBy(t *testing.T, s *kcdata.Snapshot, o report.Options) map[string][]uint64 {
	t.Helper()
	write := func(form func(io.Writer, *kcdata.Snapshot, report.Options) error) []byte {
		var b bytes.Buffer
		if err := form(&b, s, o); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	out := map[string][]uint64{}
	o.GroupBy = report.ByTask // the other ways write some numbers as ranges; the forms for programs ignore it
	for _, m := range tidOfGroup.FindAllStringSubmatch(string(write(report.Text)), -1) {
		n, _ := strconv.ParseUint(m[1], 10, 64)
		out["text"] = append(out["text"], n)
	}
	var doc struct {
		Tasks []struct{ Threads []struct{ Tid uint64 } }
	}
	if err := json.Unmarshal(write(report.JSON), &doc); err != nil {
		t.Fatal(err)
	}
	for _, task := range doc.Tasks {
		for _, th := range task.Threads {
			out["json"] = append(out["json"], th.Tid)
		}
	}
	p, err := profile.ParseData(write(report.Pprof))
	if err != nil {
		t.Fatal(err)
	}
	for _, sample := range p.Sample {
		out["pprof"] = append(out["pprof"], uint64(sample.NumLabel["tid"][0]))
	}
	for _, form := range []string{"text", "json", "pprof"} {
		out[form] = append([]uint64{}, out[form]...)
	}
	return out
}

func hangShows(t *testing.T, s *kcdata.Snapshot, o hang.Options) (tids []uint64) {
	t.Helper()
	var b bytes.Buffer
	var doc struct{ Waits []struct{ Tid uint64 } }
	if err := errors.Join(hang.JSON(&b, s, verdict.Judge(s, defaultMinWait), o), json.Unmarshal(b.Bytes(), &doc)); err != nil {
		t.Fatal(err)
	}
	for _, w := range doc.Waits {
		tids = append(tids, w.Tid)
	}
	return tids
}

func foldedThreads(text string) (sum int) {
	for line := range strings.Lines(text) {
		n, _ := strconv.Atoi(strings.TrimSpace(line[strings.LastIndex(line, " "):]))
		sum += n
	}
	return sum
}

// Flags of one kind are either, of different kinds both; --pid takes threads too.
func TestShortForms(t *testing.T) {
	testneed.Live(t)
	t.Parallel()
	for want, args := range map[string][]string{
		`state=D or state=R`:                                  {"--state", "D", "--state", "R"},
		`pid=7 or tid=7 or pid=8 or tid=8`:                    {"--pid", "7,8"},
		`(pid=1 or uid=0) and name=k* and cgroup~docker`:      {"--cgroup", "docker", "--name", "k*", "--where", "pid=1 or uid=0"},
		`func="f(int, char)" and module=ext4 and wait=/mnt/a`: {"--func", "f(int, char)", "--module", "ext4", "--waits-for", "/mnt/a"},
	} {
		if got := narrowed(t, args...).expr.String(); got != want {
			t.Errorf("%q: %s, want %s", args, got, want)
		}
	}
	if n := narrowed(t); n.expr != nil {
		t.Errorf("no flags: %v", n.expr)
	}
}

// Nothing is left: exit code 3 and one line. Programs still get a whole document; a form that
// has no place for it has the number of what is not shown on standard error.
func TestNothingMatches(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	t.Parallel()
	hung := hungFile(t, false, true)
	for _, args := range [][]string{{"report"}, {"hang"}, {"latency"}} {
		o := stackshot(t, append(args, hung, "--where", "name=nobody", "--pid", "4")...)
		if want := "hung: none of 2 threads matches name=nobody and (pid=4 or tid=4)"; o.code != exitIncomplete || o.stdout != "" || strings.Count(o.stderr, "\n") != 1 || !strings.Contains(o.stderr, want) {
			t.Errorf("%q: %d, %q, %q", args, o.code, o.stdout, o.stderr)
		}
		o = stackshot(t, append(args, hung, "--format", "json", "--pid", "4")...)
		if o.code != exitIncomplete || !json.Valid([]byte(o.stdout)) || !strings.Contains(o.stdout, `"threads_not_asked": 2`) || !strings.Contains(o.stderr, "none of 2 threads") {
			t.Errorf("%q: %d, %q, %q", args, o.code, o.stdout, o.stderr)
		}
	}
	if o := stackshot(t, "report", hung, "--pid", "71", "--format", "folded"); o.code != exitWhole || o.stderr != "stackshot: 1 of 2 threads not shown\n" || foldedThreads(o.stdout) != 1 {
		t.Errorf("%d, %q, %q", o.code, o.stdout, o.stderr)
	}
	if o := stackshot(t, "hang", hung, "--pid", "71"); o.code != exitHang || !strings.HasSuffix(o.stdout, "1 of 2 threads not asked for: what concerns only them is not shown\n") {
		t.Errorf("%d, %q, %q", o.code, o.stdout, o.stderr)
	}
}
