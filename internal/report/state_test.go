package report

import (
	"bytes"
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
		{"asked for", func(w *world) { w.kthread(9, "kswapd0", 1) }, Options{Pids: []int{9}}, 0},
		{"all wanted", func(w *world) { w.kthread(9, "kswapd0", 1) }, Options{ShowIdle: true}, 0},
		{"user", func(w *world) { w.thread(w.task(9, "sh"), "sh", 1, 0) }, Options{}, 0},
	} {
		w := newWorld(1)
		c.build(w)
		if v := newView(w.done(), c.o); v.counts.FoldedKernel != c.folded || v.counts.Shown != 1-c.folded {
			t.Errorf("%s: %+v", c.name, v.counts)
		}
	}
}

// TestColorOnlyAddsColor: without its colours the coloured report is the plain
// one, so colour carries no information of its own.
func TestColorOnlyAddsColor(t *testing.T) {
	for _, st := range stories {
		var plainText, colored bytes.Buffer
		o := st.o
		if err := Text(&plainText, st.build(), o); err != nil {
			t.Fatal(err)
		}
		o.Color = true
		if err := Text(&colored, st.build(), o); err != nil {
			t.Fatal(err)
		}
		if got := strings.NewReplacer(show.Red, "", show.Bold, "", show.Plain, "").Replace(colored.String()); got != plainText.String() {
			t.Errorf("%s: coloured report differs", st.name)
		}
		if !strings.Contains(colored.String(), show.Bold) {
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
	var b bytes.Buffer
	if err := Text(&b, w.done(), Options{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"no stack: it was running\n", "no stack: its CPU was not stopped\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}
