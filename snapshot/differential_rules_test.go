package snapshot

import (
	"fmt"
	"os"
	"reflect"
	"slices"

	"stackshot/internal/engine/proc"
	"stackshot/kcdata"
)

// nested records are compared by their own rows; present in one file only is a
// difference where the task stood still.
var nested = row{moves: true, why: "rows of its own", how: func(_ *pair, p, q reflect.Value) string {
	if p.Kind() == reflect.Pointer && p.IsNil() != q.IsNil() {
		return fmt.Sprintf("in the file of pull %v, of procfs %v", !p.IsNil(), !q.IsNil())
	}
	return ""
}}

func equal(_ *pair, p, q reflect.Value) string {
	if !reflect.DeepEqual(p.Interface(), q.Interface()) {
		return fmt.Sprintf("pull %v, procfs %v", p, q)
	}
	return ""
}

func apart(p, q reflect.Value) uint64 {
	return max(p.Uint(), q.Uint()) - min(p.Uint(), q.Uint())
}

func within(most uint64) func(*pair, reflect.Value, reflect.Value) string {
	return func(_ *pair, p, q reflect.Value) string {
		if apart(p, q) > most {
			return fmt.Sprintf("pull %v, procfs %v, more than %d apart", p, q, most)
		}
		return ""
	}
}

// cpuTimes allows two ticks of 10 ms for user and system time together. Of either /proc
// may show what was true some ticks ago, and of a thread that the tick meets seldom each
// tick stands for much.
func cpuTimes(c *pair, p, q reflect.Value) string {
	const ticks = 20_000
	a, b := c.x.Times, c.y.Times
	if sum := a.UserUsec + a.SystemUsec; sum-b.UserUsec-b.SystemUsec > ticks {
		return fmt.Sprintf("pull %d and %d, procfs %d and %d: the sums are more than %d apart", a.UserUsec, a.SystemUsec, b.UserUsec, b.SystemUsec, ticks)
	}
	l := &c.x.Linux
	return within(ticks+2*l.SumExecRuntime/1000/max(1, (l.Utime+l.Stime)/proc.TickNs))(c, p, q)
}

// pages allows for n percpu_counters read without summing. A counter's batch is
// max(32, 2 × CPUs) (percpu_counter_batch, lib/percpu_counter.c).
func pages(n int) func(*pair, reflect.Value, reflect.Value) string {
	return func(c *pair, p, q reflect.Value) string {
		cpus := len(c.pull.CPUs)
		batch := max(32, 2*cpus)
		return within(uint64(n*batch*cpus*os.Getpagesize()))(c, p, q)
	}
}

func bits(mask uint64) func(*pair, reflect.Value, reflect.Value) string {
	return func(_ *pair, p, q reflect.Value) string {
		if (p.Uint()^q.Uint())&mask != 0 {
			return fmt.Sprintf("pull %#x, procfs %#x: bits %#x", p.Uint(), q.Uint(), (p.Uint()^q.Uint())&mask)
		}
		return ""
	}
}

func tick(_ *pair, p, q reflect.Value) string {
	if p.Uint()/proc.TickNs*proc.TickNs != q.Uint() {
		return fmt.Sprintf("pull %d ns, procfs %d ns", p.Uint(), q.Uint())
	}
	return ""
}

// letter is what /proc shows for a state (fs/proc/array.c, get_task_state).
func letter(l *kcdata.LinuxThread) byte {
	const idle, rtlockWait, frozen, report = 0x402, 0x1000, 0x8000, 0x7f
	switch {
	case l.State&idle == idle:
		return 'I'
	case l.State&(rtlockWait|frozen) != 0:
		return 'D'
	}
	for s, i := (l.State|l.ExitState)&report, 7; i > 0; i-- {
		if s&(1<<(i-1)) != 0 {
			return "RSDTtXZP"[i]
		}
	}
	return 'R'
}

func stateLetter(c *pair, _, _ reflect.Value) string {
	if p, q := letter(&c.x.Linux), letter(&c.y.Linux); p != q {
		return fmt.Sprintf("pull %c (%#x, %#x), procfs %c", p, c.x.Linux.State, c.x.Linux.ExitState, q)
	}
	return ""
}

func threadIDs(c *pair, _, _ reflect.Value) string {
	p, q := idsOf(c.a), idsOf(c.b)
	if !slices.Equal(p, q) {
		return fmt.Sprintf("pull %v, procfs %v", p, q)
	}
	return ""
}

func idsOf(t *kcdata.Task) []uint64 {
	var out []uint64
	for _, th := range t.Threads {
		out = append(out, th.ID)
	}
	return out
}

func functions(s *kcdata.Snapshot, stack []uint64) []string {
	var out []string
	for _, addr := range stack {
		sym, ok := s.Symbols.Name(addr)
		if !ok {
			sym.Name = fmt.Sprintf("%#x", addr)
		}
		out = append(out, fmt.Sprintf("%s+%#x [%s]", sym.Name, sym.Offset, sym.Module))
	}
	return out
}

func kernelStacks(c *pair, _, _ reflect.Value) string {
	p, q := functions(c.pull, c.x.Kernel), functions(c.proc, c.y.Kernel)
	if !slices.Equal(p, q) {
		return fmt.Sprintf("\n\tpull   %v\n\tprocfs %v", p, q)
	}
	if !slices.Equal(c.x.Kernel, c.y.Kernel) {
		return fmt.Sprintf("the same functions %v at other addresses: pull %#x, procfs %#x", p, c.x.Kernel, c.y.Kernel)
	}
	return ""
}

func pidChain(c *pair, _, _ reflect.Value) string {
	if len(c.x.NS) != len(c.y.NS) {
		return fmt.Sprintf("pull %v, procfs %v", c.x.NS, c.y.NS)
	}
	for i := range c.x.NS {
		if c.x.NS[i].Tid != c.y.NS[i].Tid {
			return fmt.Sprintf("pull %v, procfs %v", c.x.NS, c.y.NS)
		}
	}
	if n := len(c.x.NS); n > 0 && (c.a.NS == nil || c.x.NS[n-1].Inode != c.a.NS.Pid) {
		return fmt.Sprintf("innermost namespace %v, the task's is %+v", c.x.NS[n-1], c.a.NS)
	}
	return ""
}

func wchan(c *pair, _, _ reflect.Value) string {
	if c.x.Wchan != "" {
		return fmt.Sprintf("pull has %q", c.x.Wchan)
	}
	if c.y.Wchan == "" {
		return ""
	}
	if len(c.x.Kernel) == 0 {
		return fmt.Sprintf("waits in %s, pull has no stack", c.y.Wchan)
	}
	if sym, ok := c.pull.Symbols.Name(c.x.Kernel[0]); !ok || sym.Name != c.y.Wchan {
		return fmt.Sprintf("waits in %s, pull's leaf is %s", c.y.Wchan, sym.Name)
	}
	return ""
}

const exitingFlag = 0x4 // PF_EXITING

func liveThreads(c *pair, p, _ reflect.Value) string {
	live := int64(0)
	for _, th := range c.b.Threads {
		if th.Linux.Flags&exitingFlag == 0 {
			live++
		}
	}
	if p.Int() != live {
		return fmt.Sprintf("pull %d, procfs shows %d threads without PF_EXITING", p.Int(), live)
	}
	return ""
}

func leaderExitCode(c *pair, p, _ reflect.Value) string {
	if q := c.b.Threads[0].Linux.ExitCode; p.Int() != int64(q) {
		return fmt.Sprintf("pull %d, procfs' leader %d", p.Int(), q)
	}
	return ""
}

func nicePrio(c *pair, p, _ reflect.Value) string {
	if p.Int() != int64(120+c.y.Linux.Nice) {
		return fmt.Sprintf("pull %d, procfs' nice %d", p.Int(), c.y.Linux.Nice)
	}
	return ""
}

func normalPrio(c *pair, p, _ reflect.Value) string {
	if p.Int() != int64(c.y.Linux.Prio) {
		return fmt.Sprintf("pull %d, procfs' prio %d", p.Int(), c.y.Linux.Prio)
	}
	return ""
}

func args(c *pair, p, q reflect.Value) string {
	if c.y.Syscall.Nr < 0 {
		return ""
	}
	return equal(c, p, q)
}
