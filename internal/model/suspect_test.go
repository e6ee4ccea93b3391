package model

import (
	"testing"

	"stackshot/kcdata"
)

// Whom to suspect where a CPU did not stop: what a sample found there, unless a runnable thread of
// that CPU outranks it. Then that one, if it is sure; of two nobody.
func TestMissedCPU(t *testing.T) {
	const ran, hog, other = 10, 20, 30
	type thread struct {
		cpu, policy, priority uint32
		state                 uint32
		life                  uint64 // ns on a CPU, of 10 s
		user, self, kernel    bool
	}
	sh, driver := thread{cpu: 1, user: true}, thread{cpu: 1}
	fifo := thread{cpu: 1, policy: policyFIFO, priority: 99, life: 9e9}
	stopper := thread{cpu: 1, policy: policyFIFO, priority: 99, life: 1e6, kernel: true}
	with := func(x thread, f func(*thread)) thread { f(&x); return x }
	for _, c := range []struct {
		what    string
		flags   uint32
		tid     uint32
		threads map[uint64]thread
		above   int
		want    uint64 // 0: nobody
	}{
		{"alone", kcdata.CPURanKnown, ran, map[uint64]thread{ran: driver}, 0, ran},
		{"a hog", kcdata.CPURanKnown, ran, map[uint64]thread{ran: sh, hog: fifo}, 1, hog},
		{"a hog, the other in the kernel", kcdata.CPURanKnown, ran, map[uint64]thread{ran: driver, hog: fifo}, 1, hog},
		{"the hog itself", kcdata.CPURanKnown, hog, map[uint64]thread{ran: sh, hog: fifo}, 0, hog},
		{"its equal", kcdata.CPURanKnown, ran, map[uint64]thread{ran: fifo, hog: fifo}, 0, ran},
		{"one of lower priority", kcdata.CPURanKnown, ran, map[uint64]thread{ran: fifo, hog: with(fifo, func(x *thread) { x.priority = 98 })}, 0, ran},
		{"deadline", kcdata.CPURanKnown, ran, map[uint64]thread{ran: fifo, hog: with(fifo, func(x *thread) { x.policy = policyDeadline })}, 1, hog},
		{"two", kcdata.CPURanKnown, ran, map[uint64]thread{ran: sh, hog: fifo, other: fifo}, 2, 0},
		{"two, one above", kcdata.CPURanKnown, ran, map[uint64]thread{ran: sh, hog: fifo, other: with(fifo, func(x *thread) { x.priority = 50 })}, 1, hog},
		{"of another CPU", kcdata.CPURanKnown, ran, map[uint64]thread{ran: sh, hog: with(fifo, func(x *thread) { x.cpu = 0 })}, 0, ran},
		{"asleep", kcdata.CPURanKnown, ran, map[uint64]thread{ran: sh, hog: with(fifo, func(x *thread) { x.state = kcdata.StateInterruptible })}, 0, ran},
		{"our own", kcdata.CPURanKnown, ran, map[uint64]thread{ran: sh, hog: with(fifo, func(x *thread) { x.self = true })}, 0, ran},
		{"one that hardly runs, behind a driver", kcdata.CPURanKnown, ran, map[uint64]thread{ran: driver, hog: with(fifo, func(x *thread) { x.life = 1e6 })}, 1, 0},
		{"one that hardly runs, behind user mode", kcdata.CPURanKnown, ran, map[uint64]thread{ran: sh, hog: with(fifo, func(x *thread) { x.life = 1e6 })}, 1, hog},
		{"the stopper behind a driver", kcdata.CPURanKnown, ran, map[uint64]thread{ran: driver, hog: stopper}, 0, ran},
		{"the stopper behind user mode that the host did not run", kcdata.CPURanKnown, ran, map[uint64]thread{ran: sh, hog: stopper}, 0, ran},
		{"a hog, and the stopper", kcdata.CPURanKnown, ran, map[uint64]thread{ran: sh, hog: fifo, other: stopper}, 1, hog},
		{"a kernel thread that takes all", kcdata.CPURanKnown, ran, map[uint64]thread{ran: sh, hog: with(stopper, func(x *thread) { x.life = 9e9 })}, 1, hog},
		{"idle", kcdata.CPURanKnown | kcdata.CPUIdle, 0, map[uint64]thread{hog: fifo}, 1, hog},
		{"idle alone", kcdata.CPURanKnown | kcdata.CPUIdle, 0, map[uint64]thread{ran: sh}, 0, 0},
		{"unknown", 0, 0, map[uint64]thread{ran: sh, hog: fifo}, 1, hog},
		{"not in the file", kcdata.CPURanKnown, 77, map[uint64]thread{ran: sh}, 0, 0},
	} {
		s := &kcdata.Snapshot{}
		s.Machine.BoottimeNs = 20e9
		for id, x := range c.threads {
			th := &kcdata.Thread{ID: id, HasLinux: true}
			th.Linux = kcdata.LinuxThread{
				Present: kcdata.ThreadHasRuntime | kcdata.ThreadHasStart, CPU: x.cpu, Policy: x.policy, RtPriority: x.priority, State: x.state,
				StartBoottime: 10e9, SumExecRuntime: x.life,
			}
			if x.self {
				th.Linux.Present |= kcdata.ThreadIsSelf
			}
			if x.kernel {
				th.Linux.Flags |= kcdata.PFKthread
			}
			if id == uint64(c.tid) {
				th.Sample = &kcdata.LinuxSample{}
				if x.user {
					th.Sample.User = 1
				}
			}
			s.Tasks = append(s.Tasks, &kcdata.Task{ID: id, Threads: []*kcdata.Thread{th}})
		}
		m := Missed(s, &kcdata.LinuxCPU{CPU: 1, Flags: kcdata.CPUMissed | c.flags, RanTid: c.tid, RanTgid: c.tid})
		got := uint64(0)
		if m.Suspect != nil {
			got = m.Suspect.ID
		}
		if got != c.want || len(m.Above) != c.above {
			t.Errorf("%s: %d with %d above, want %d with %d", c.what, got, len(m.Above), c.want, c.above)
		}
	}
}
