package snapshot

import (
	"errors"
	"strings"
	"testing"

	"stackshot/internal/engine"
	"stackshot/internal/limits"
	"stackshot/internal/testneed"
)

// The fewer process ids are left, the less is done, in the order of the steps, and
// nothing takes more than there is.
func TestThriftOfPids(t *testing.T) {
	for _, cpus := range []int{1, 2, 64, 1000} {
		before := 3
		for free := int64(wholePids(cpus)) + 5; free >= 0; free-- {
			got, err := thriftOf(cpus, limits.Room{Free: free, Max: 100, By: "a bound"})
			step := 3
			switch {
			case err != nil:
				step = 0
			case got.engine != nil:
				step = 1
			case got.files != nil:
				step = 2
			}
			if step > before || int64(got.threads) > free || step == 3 && got.threads != 0 {
				t.Fatalf("%d CPUs, %d left: step %d after %d, %d threads", cpus, free, step, before, got.threads)
			}
			if step == 0 && (!errors.Is(err, ErrNoRoom) || !strings.Contains(err.Error(), "a bound is 100")) {
				t.Fatalf("%d left: %v", free, err)
			}
			before = step
		}
		if before != 0 {
			t.Errorf("%d CPUs: none left is enough", cpus)
		}
	}
}

// The less memory is left, the less is recorded; a step takes less than those before
// it; and no more than what was asked for is.
func TestMemorySteps(t *testing.T) {
	for _, engine := range []string{EngineAuto, EngineTrap, EnginePull, EngineProcfs} {
		for _, user := range []UserStacks{UserStacksAuto, UserStacksFP, UserStacksOff} {
			o := Options{Engine: engine, UserStacks: user, StackBytes: defaultStackBytes}
			last := -1
			for free := int64(4 << 30); free >= 0; free -= 1 << 20 {
				m, why, err := memoryStepOf(o, 200, 10000, limits.Room{Free: free, Max: 1, By: "a bound"})
				if err != nil {
					if !errors.Is(err, ErrNoRoom) || !strings.Contains(err.Error(), "a bound is 1") {
						t.Fatal(err)
					}
					last = len(memorySteps)
					continue
				}
				at := 0
				for memorySteps[at] != m {
					at++
				}
				if at < last || (at > 0) != (why != nil) || m.takes(o, 200, 10000) > free {
					t.Fatalf("%s, %s, %d MiB: step %d after %d, %v", engine, user, free>>20, at, last, why)
				}
				if !m.engine && engine != EngineAuto && engine != EngineProcfs {
					t.Fatalf("engine %s was asked for", engine)
				}
				last = at
			}
			if last != len(memorySteps) {
				t.Errorf("%s, %s: no memory is enough", engine, user)
			}
		}
	}
}

// Each step of a session: what it records, and that it says so. An engine that was
// asked for by name is never another one.
func TestScarceSessions(t *testing.T) {
	testneed.Lab(t, testneed.Time)
	testneed.Slow(t)
	requireBPF(t)
	room := func(free int64) *limits.Room { return &limits.Room{Free: free, Max: free, By: "a bound"} }
	step := func(i int) *limits.Room { // just what a step takes
		o, err := Options{}.withDefaults()
		if err != nil {
			t.Fatal(err)
		}
		sc, err := new(Session).wholeMachine()
		if err != nil {
			t.Fatal(err)
		}
		return room(memorySteps[i].takes(o, sc.tasks, sc.threads) + 4<<20)
	}
	for name, c := range map[string]struct {
		h       engine.Hooks
		engine  string
		user    bool
		warning string
	}{
		"enough":            {engine.Hooks{}, "", true, ""},
		"few pids":          {engine.Hooks{FewPids: room(int64(wholePids(2) - 1))}, "", true, "few_pids"},
		"too few to stop":   {engine.Hooks{FewPids: room(13)}, EngineProcfs, true, "engine_procfs"},
		"chains alone":      {engine.Hooks{LittleMemory: step(1)}, "", true, "little_memory"},
		"no user stacks":    {engine.Hooks{LittleMemory: step(2)}, "", false, "little_memory"},
		"nothing is loaded": {engine.Hooks{LittleMemory: step(3)}, EngineProcfs, false, "little_memory"},
	} {
		s := openTest(t, Options{Engine: EngineAuto}, c.h)
		r, snap := s.mustTake(t)
		if c.engine != "" && r.Engine != c.engine || c.engine == "" && r.Engine == EngineProcfs {
			t.Errorf("%s: engine %s, %v", name, r.Engine, r.Warnings)
		}
		if c.warning != "" && !hasWarning(r, c.warning) || c.warning == "" && (hasWarning(r, "few_pids") || hasWarning(r, "little_memory")) {
			t.Errorf("%s: warnings %v", name, r.Warnings)
		}
		if got := snap.UserTaken != nil && snap.UserTaken.Threads > 0; got != c.user {
			t.Errorf("%s: user stacks %v", name, got)
		}
		s.Close()
	}
	for _, h := range []engine.Hooks{{FewPids: room(13)}, {LittleMemory: step(3)}, {FewPids: room(3)}} {
		if _, err := open(Options{Engine: EngineTrap}, h); !errors.Is(err, ErrNoRoom) {
			t.Errorf("engine trap: %v", err)
		}
	}
}
