package report

import (
	"strings"
	"testing"

	"stackshot/internal/show"
	"stackshot/kcdata"
)

// TestIdleKernelFolding: a kernel thread is folded in its ordinary sleep and
// never when it is in D, runs, or is asked for; a user thread never is.
func TestIdleKernelFolding(t *testing.T) {
	for _, c := range []struct {
		name   string
		build  func(w *world)
		o      Options
		folded int
	}{
		{"interruptible", func(w *world) { w.kthread(9, "kswapd0", 1) }, Options{}, 1},
		{"TASK_IDLE", func(w *world) { w.kthread(9, "kworker/0:0", 0x402) }, Options{}, 1},
		{"D", func(w *world) { w.kthread(9, "jbd2/vda1-8", 2) }, Options{}, 0},
		{"running", func(w *world) { w.onCPU(w.kthread(9, "kswapd0", 1), 0) }, Options{}, 0},
		{"all wanted", func(w *world) { w.kthread(9, "kswapd0", 1) }, Options{ShowIdle: true}, 0},
		{"user", func(w *world) { w.thread(w.task(9, "sh"), "sh", 1, 0) }, Options{}, 0},
	} {
		w := newWorld(1)
		c.build(w)
		s := w.done()
		if v := newView(s, Options{Only: ofTasks(s, 9)}); v.counts.Shown != 1 {
			t.Errorf("%s, asked for: %+v", c.name, v.counts)
		}
		if v := newView(s, c.o); v.counts.FoldedKernel != c.folded || v.counts.Shown != 1-c.folded {
			t.Errorf("%s: %+v", c.name, v.counts)
		}
	}
}

// TestColorOnlyAddsColor: without its colours the coloured report is the plain
// one, so colour carries no information of its own.
func TestColorOnlyAddsColor(t *testing.T) {
	for _, st := range stories {
		plain := textOf(t, st.build(), st.o)
		st.o.Color = true
		colored := textOf(t, st.build(), st.o)
		if got := strings.NewReplacer(show.Red, "", show.Bold, "", show.Plain, "").Replace(colored); got != plain {
			t.Errorf("%s: coloured report differs", st.name)
		}
		if !strings.Contains(colored, show.Bold) {
			t.Errorf("%s: no colour", st.name)
		}
	}
}

// TestThreadThatRan: whom the recorder found running has no stack, and the report
// says so; on a CPU that was not stopped it says that.
func TestThreadThatRan(t *testing.T) {
	w := newWorld(2)
	w.s.CPUs[1].Flags = kcdata.CPULeft
	w.thread(w.task(700, "comes"), "comes", kcdata.StateInterruptible, 0).Linux.KstackErr = ranMeanwhile
	w.onCPU(w.thread(w.task(701, "stays"), "stays", 0, 0), 1).Linux.KstackErr = ranMeanwhile
	text := textOf(t, w.done(), Options{})
	for _, want := range []string{"no stack: it was running\n", "no stack: its CPU was not stopped\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}
