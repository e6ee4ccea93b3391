package snapshot

import (
	"slices"
	"strings"
	"testing"

	"stackshot/internal/bpf"
	"stackshot/internal/bpf/bpftest"
	"stackshot/internal/engine"
	"stackshot/internal/testneed"
	"stackshot/kcdata"
)

// Where nothing that a process's memory leads to is ordinary memory, nothing of it is
// followed, and every task and thread says so: no silence, and no guess.
func TestRefusedMemoryIsSaid(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	requireBPF(t)
	for _, engineName := range []string{EngineTrap, EnginePull} {
		t.Run(engineName, func(t *testing.T) {
			h := engine.Hooks{Specs: bpftest.Knobs{AllMaps: true}, DirectMap: func() (*bpf.DirectMap, error) {
				m, err := bpf.FindDirectMap()
				if err != nil {
					return nil, err
				}
				none := *m
				none.RAM = []bpf.RAMRange{{Start: 0x1000, End: 0x2000}}
				return &none, nil
			}}
			s := hooked(t, Options{Engine: engineName}, h)
			_, snap, _ := captureWhole(t, s, Request{})
			tasks, threads := 0, 0
			for _, task := range snap.Tasks {
				if task.Memory == nil || task.MapWalk == nil {
					continue
				}
				tasks++
				w := task.MapWalk
				if w.Refused != 1 || w.Flags&kcdata.MapWalkWhole != 0 || w.Entries != 0 {
					t.Errorf("task %d (%s): walk %+v", task.ID, task.Name, w)
				}
				if task.Exe == nil || task.Exe.Refused == 0 || task.Exe.Ino != 0 || task.Exe.FileName() != "" {
					t.Errorf("task %d (%s): executable %+v", task.ID, task.Name, task.Exe)
				}
				if !slices.ContainsFunc(task.EnrichFailed, func(s string) bool { return strings.HasPrefix(s, "executable, in the stop: ") }) {
					t.Errorf("task %d (%s): not read: %q", task.ID, task.Name, task.EnrichFailed)
				}
				for _, th := range task.Threads {
					u := th.UserWalk
					if u == nil || u.Flags&kcdata.UserWalked == 0 {
						continue
					}
					threads++
					if u.Flags&kcdata.UserRefused == 0 || u.Refused < 2 || u.Bytes != 0 || u.Links != 0 || u.StackEnd != 0 {
						t.Errorf("thread %d of %s: %+v", th.ID, task.Name, u)
					}
				}
			}
			if tasks == 0 || threads == 0 {
				t.Errorf("%d tasks and %d threads had memory", tasks, threads)
			}
		})
	}
}
