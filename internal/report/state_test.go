package report

import (
	"bytes"
	"strings"
	"testing"

	"stackshot/kcdata"
)

func TestStateOf(t *testing.T) {
	const known = kcdata.ThreadHasOnCPU
	for _, c := range []struct {
		name  string
		l     kcdata.LinuxThread
		class class
		words string
	}{
		{"on a CPU", kcdata.LinuxThread{Present: known, OnCPU: 1}, classRunning, "running"},
		{"on a CPU, about to block", kcdata.LinuxThread{Present: known, OnCPU: 1, State: 2}, classRunning, "running (about to sleep in D)"},
		{"on a CPU, about to idle", kcdata.LinuxThread{Present: known, OnCPU: 1, State: 0x402}, classRunning, "running"},
		{"on a CPU, dead", kcdata.LinuxThread{Present: known, OnCPU: 1, State: 0x80}, classRunning, "running (exiting)"},
		{"runnable", kcdata.LinuxThread{Present: known}, classRunnable, "runnable, waiting for a CPU"},
		{"R, not known which", kcdata.LinuxThread{}, classRunnable, "running or waiting for a CPU (R)"},
		{"waking", kcdata.LinuxThread{Present: known, State: 0x200}, classRunnable, "runnable, waiting for a CPU"},
		{"new", kcdata.LinuxThread{Present: known, State: 0x800}, classRunnable, "being forked"},
		{"sleeping, freezable", kcdata.LinuxThread{Present: known, State: 0x2001}, classSleeping, "sleeping"},
		{"D", kcdata.LinuxThread{Present: known, State: 2}, classBlocked, "uninterruptible sleep (D)"},
		{"D, freezable", kcdata.LinuxThread{Present: known, State: 0x2002}, classBlocked, "uninterruptible sleep (D)"},
		{"killable", kcdata.LinuxThread{Present: known, State: 0x102}, classBlocked, "uninterruptible sleep (D, killable)"},
		{"TASK_IDLE", kcdata.LinuxThread{Present: known, State: 0x402}, classIdle, "idle"},
		{"stopped", kcdata.LinuxThread{Present: known, State: 0x104}, classHeld, "stopped by a signal"},
		{"traced", kcdata.LinuxThread{Present: known, State: 0x108}, classHeld, "stopped by its tracer"},
		{"parked", kcdata.LinuxThread{Present: known, State: 0x40}, classParked, "parked"},
		{"zombie", kcdata.LinuxThread{Present: known, State: 0x80, ExitState: 0x20}, classZombie, "zombie"},
		{"reaped", kcdata.LinuxThread{Present: known, State: 0x80, ExitState: 0x10}, classZombie, "dead"},
		{"idle thread", kcdata.LinuxThread{Present: known | kcdata.ThreadIsIdle, OnCPU: 1}, classCPUIdle, "idle thread"},
	} {
		got := stateOf(&kcdata.Thread{HasLinux: true, Linux: c.l})
		if got.class != c.class || got.words != c.words {
			t.Errorf("%s: class %d %q, want %d %q", c.name, got.class, got.words, c.class, c.words)
		}
	}
}

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

// TestFirstScreenNamesWhatIsStuck (R5): within 20 lines of 80 cells stand the
// stuck process, the age, the place and, with a CPU missing, that CPU.
func TestFirstScreenNamesWhatIsStuck(t *testing.T) {
	for _, c := range []struct {
		build func() *kcdata.Snapshot
		want  []string
	}{
		{deadNFSServer, []string{"postgres [812]", "3m 12s", "rpc_wait_bit_killable", "40 threads of bash"}},
		{spinningDriver, []string{"CPU 2", "irq/55-mlx5 [640]", "1m 35s", "the stop was broken", "burn [900]", "web [901]"}},
	} {
		var b bytes.Buffer
		if err := Text(&b, c.build(), Options{Width: 80, FirstScreen: 20}); err != nil {
			t.Fatal(err)
		}
		for _, s := range c.want {
			if !strings.Contains(b.String(), s) {
				t.Errorf("first screen lacks %q:\n%s", s, b.String())
			}
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
		if got := strings.NewReplacer(red, "", bold, "", plain, "").Replace(colored.String()); got != plainText.String() {
			t.Errorf("%s: coloured report differs", st.name)
		}
		if !strings.Contains(colored.String(), bold) {
			t.Errorf("%s: no colour", st.name)
		}
	}
}
