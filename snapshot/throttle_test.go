package snapshot

import (
	"fmt"
	"maps"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"stackshot/internal/clock"
	"stackshot/internal/engine"
	"stackshot/internal/testneed"
	"stackshot/internal/testtask"
	"stackshot/internal/topology"
	"stackshot/kcdata"
)

// hotCPUs opens a session on a machine whose CPUs are as hot as the test says.
func hotCPUs(t *testing.T, o Options, h engine.Hooks) (*Session, map[int]string) {
	t.Helper()
	requireBPF(t)
	requireTwoCPUs(t)
	hot := map[int]string{}
	h.Throttles = func([]int) map[int]string { return maps.Clone(hot) }
	s := hooked(t, o, h)
	needCPUs(t, s, 2)
	return s, hot
}

// roles gives the CPUs of a file by what their flags say.
func roles(snap *kcdata.Snapshot) (throttled, worked, main []int) {
	for _, c := range snap.CPUs {
		for _, is := range []struct {
			flag uint32
			list *[]int
		}{{kcdata.CPUThrottled, &throttled}, {kcdata.CPUWorked, &worked}, {kcdata.CPUMain, &main}} {
			if c.Flags&is.flag != 0 {
				*is.list = append(*is.list, int(c.CPU))
			}
		}
	}
	return throttled, worked, main
}

func throttleText(r *Result) string {
	var out []string
	for _, w := range r.Warnings {
		if w.Code == "cpu_throttled" {
			out = append(out, w.Text)
		}
	}
	return strings.Join(out, "\n")
}

// A throttled CPU stands still and records nothing, from one capture of a session
// to the next: heat comes and goes. Where all are throttled, all record.
func TestThrottledCPUHoldsStill(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	for _, engineName := range []string{EngineTrap, EnginePull} {
		s, hot := hotCPUs(t, Options{Engine: engineName}, engine.Hooks{})
		a, b := s.plan.Stop[0], s.plan.Stop[1]
		for _, c := range []struct {
			hot  []int
			idle int // the CPU that is not to work; -1: all work
			say  string
		}{
			{nil, -1, ""},
			{[]int{b}, b, fmt.Sprintf("CPU %d is throttled and did not record: heat", b)},
			{[]int{a}, a, fmt.Sprintf("CPU %d is throttled and did not record: heat", a)},
			{s.plan.Stop, -1, "CPUs " + topology.FormatCPUList(s.plan.Stop) + " are throttled, and recorded all the same: heat"},
			{nil, -1, ""},
		} {
			clear(hot)
			for _, cpu := range c.hot {
				hot[cpu] = "heat"
			}
			res, snap := s.mustTake(t)
			throttled, worked, main := roles(snap)
			if len(res.CPUs.Stopped) != len(s.plan.Stop) || len(snap.Tasks) < 10 || len(main) != 1 || main[0] == c.idle {
				t.Errorf("%s, hot %v: stopped %v, main %v, %d tasks", engineName, c.hot, res.CPUs.Stopped, main, len(snap.Tasks))
			}
			want := len(s.plan.Stop)
			if c.idle >= 0 {
				want--
			}
			if len(throttled) != len(c.hot) || len(worked) != want || len(res.CPUs.Working) != want {
				t.Errorf("%s, hot %v: the file has throttled %v, worked %v", engineName, c.hot, throttled, worked)
			}
			for _, r := range snap.CPUs {
				if int(r.CPU) == c.idle && (r.Tasks != 0 || r.Bytes != 0 || r.Flags&kcdata.CPUStopped == 0) {
					t.Errorf("%s: CPU %d is throttled: %+v", engineName, c.idle, r)
				}
			}
			if got := throttleText(res); (got == "") != (c.say == "") || !strings.Contains(got, c.say) {
				t.Errorf("%s, hot %v: said %q, want %q", engineName, c.hot, got, c.say)
			}
		}
	}
}

// Where nobody but a throttled CPU comes to the stop, that one records: a file
// without threads helps nobody.
func TestThrottledCPUWorksWhereTheOthersDoNotCome(t *testing.T) {
	testneed.Lab(t, testneed.Time)
	testneed.Slow(t)
	budget := slow(20 * time.Millisecond)
	for _, engineName := range []string{EngineTrap, EnginePull} {
		cool := -1
		s, hot := hotCPUs(t, Options{Engine: engineName, ArrivalBudget: budget, MaxPause: 10 * budget},
			engine.Hooks{BeforeArrival: func(cpu int) {
				for by := clock.Nanotime() + int64(2*budget); cpu == cool && clock.Nanotime() < by; {
				}
			}})
		if len(s.plan.Stop) != 2 {
			t.Skip("needs a machine of two CPUs")
		}
		cool = s.plan.Stop[0]
		hot[s.plan.Stop[1]] = "heat"
		res, snap := s.mustTake(t)
		throttled, worked, main := roles(snap)
		want := fmt.Sprint([]int{s.plan.Stop[1]})
		if fmt.Sprint(res.CPUs.Missing) != fmt.Sprint([]int{cool}) || fmt.Sprint(worked) != want || fmt.Sprint(main) != want || fmt.Sprint(throttled) != want {
			t.Errorf("%s: missing %v, worked %v, main %v, throttled %v", engineName, res.CPUs.Missing, worked, main, throttled)
		}
		if len(snap.Tasks) < 10 || len(res.LeftOut) != 0 {
			t.Errorf("%s: %d tasks, left out %v", engineName, len(snap.Tasks), res.LeftOut)
		}
	}
}

// Where nothing is stopped nobody is spared, and nobody did not record.
func TestThrottledCPUWhereNothingStops(t *testing.T) {
	testneed.Live(t)
	s, hot := hotCPUs(t, Options{Engine: EngineProcfs}, engine.Hooks{})
	hot[s.plan.Stop[0]] = "heat"
	res, _ := s.mustTake(t)
	if want := fmt.Sprintf("CPU %d is throttled: heat", s.plan.Stop[0]); throttleText(res) != want {
		t.Errorf("%q, want %q", throttleText(res), want)
	}
}

// A cooling device that does not answer holds up no Take for longer than its
// limit, is not asked again while it hangs, and what it said last counts.
func TestThrottlesThatHang(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	requireTwoCPUs(t)
	var asked atomic.Int32
	hang := make(chan struct{}) // the second question hangs
	s := hooked(t, Options{Engine: EngineProcfs}, engine.Hooks{Throttles: func(cpus []int) map[int]string {
		switch asked.Add(1) {
		case 1:
			return map[int]string{cpus[0]: "heat"}
		case 2:
			<-hang
		}
		return nil
	}})
	heat := fmt.Sprintf("CPU %d is throttled: heat", s.plan.Stop[0])
	for i, want := range []string{"", "no answer in 200ms", "an earlier read"} {
		res, _ := s.mustTake(t)
		var unknown string
		for _, w := range res.Warnings {
			if w.Code == "throttle_unknown" {
				unknown = w.Text
			}
		}
		if throttleText(res) != heat || (unknown == "") != (want == "") || !strings.Contains(unknown, want) {
			t.Errorf("Take %d: %q, %q, want %q", i, throttleText(res), unknown, want)
		}
	}
	if asked.Load() != 2 {
		t.Errorf("asked %d times", asked.Load())
	}
	close(hang)
	cooled := func() (bool, error) {
		res, _ := s.mustTake(t)
		return throttleText(res) == "", nil
	}
	if err := testtask.WaitFor(10*time.Second, cooled); err != nil {
		t.Fatal(err)
	}
}
