package report

import (
	"fmt"

	"stackshot/kcdata"
)

const (
	whole = kcdata.UserWalked | kcdata.UserUnwound | kcdata.UserComplete
	short = kcdata.UserWalked | kcdata.UserUnwound
)

const (
	libc   = "/usr/lib/x86_64-linux-gnu/libc.so.6"
	server = "/opt/app/server"
)

var (
	futex   = []string{"__schedule", "schedule", "futex_wait_queue", "futex_wait", "do_futex", "do_syscall_64"}
	popping = []string{"__futex_abstimed_wait in " + libc, "pthread_cond_wait in " + libc, "Queue::pop(std::chrono::duration<long>) in " + server, "start_thread in " + libc}
)

func (w *world) server(pid uint32) *kcdata.Task {
	t := w.task(pid, "server")
	w.maps(t, server, 0)
	w.maps(t, libc, 0)
	return t
}

// threadPool: 300 workers of a server wait for the same queue, at two places of
// the same kernel function; so do three of another server.
func threadPool() *kcdata.Snapshot {
	w := newWorld(2)
	big, small := w.server(900), w.server(901)
	for i := range uint64(300) {
		th := in(w.thread(big, fmt.Sprintf("worker-%d", i), kcdata.StateInterruptible, minute+i*second, futex...), 202)
		if w.calls(big, th, whole, popping...); i%2 == 1 {
			th.Kernel[2] = w.again(th.Kernel[2])
		}
	}
	for range 3 {
		w.calls(small, in(w.thread(small, "server", kcdata.StateInterruptible, 5*second, futex...), 202), whole, popping...)
	}
	return w.done()
}

// again is another place in the function at a.
func (w *world) again(a uint64) uint64 {
	for _, s := range w.syms {
		if s.Addr == a {
			s.Addr, s.Offset = a+8, s.Offset+8
			w.syms = append(w.syms, s)
			break
		}
	}
	return a + 8
}

// slowDisk: two servers of which the C library was not read in time, and six
// other files; one stack came to its end by other tables, one did not, one is whole.
func slowDisk() *kcdata.Snapshot {
	w := newWorld(2)
	for i := range uint32(2) {
		t := w.task(900+i, "server")
		w.maps(t, server, 0)
		w.maps(t, libc, kcdata.MappingTableMissed)
		t.EnrichFailed = []string{"unwind table: " + libc + ": read hangs: no answer in 500ms"}
		for _, flags := range []uint32{whole | kcdata.UserTablesMissed, short | kcdata.UserTablesMissed, whole} {
			th := w.calls(t, in(w.thread(t, "worker", kcdata.StateInterruptible, minute, futex...), 202), flags, popping[0], popping[2])
			if flags&kcdata.UserTablesMissed != 0 {
				th.UserWalk.Flags |= kcdata.UserKeptToMend
				th.UserBytes = []kcdata.UserBytes{{Addr: 0x7ffc0000, Data: []byte("secret")}}
			}
		}
		for n := range 3 {
			w.maps(t, fmt.Sprintf("/opt/app/plugin\x1b%d-%d.so", i, n), kcdata.MappingTableMissed)
		}
	}
	return w.done()
}

// userStacks: one of each kind of frame, and of each way to fall short.
func userStacks() *kcdata.Snapshot {
	w := newWorld(2)
	w.background()
	odd := w.server(901)
	w.calls(odd, in(w.thread(odd, "server", kcdata.StateInterruptible, 5*second, futex...), 202), whole, popping...)
	w.maps(odd, "", kcdata.MappingAnon)
	w.maps(odd, "[vdso]", kcdata.MappingVDSO)
	burn := w.onCPU(w.thread(odd, "burn", 0, 9*second, "asm_sysvec_reschedule_ipi"), 0)
	burn.Linux.Present |= kcdata.ThreadUserMode
	w.calls(odd, burn, whole, "add@src/math.h:12<-mix@src/mix.c:99 in "+server, "LazyCompile:*run /srv/a b.js:1 in [jit]", "? in "+server, "?", "main in "+server)
	w.userCut(odd, "deep", short|kcdata.UserTruncated, 200)
	for _, c := range []struct {
		name  string
		flags uint32
	}{
		{"paged", short | kcdata.UserPagedOut}, {"refused", short | kcdata.UserRefused}, {"bytes", short | kcdata.UserNoMoreBytes},
		{"table", short | kcdata.UserNoUnwindTable}, {"alt", short | kcdata.UserAltStack}, {"nomaps", whole | kcdata.UserNoLoadInfo},
		{"unsure", whole | kcdata.UserCallersUnsure}, {"nowhere", short | kcdata.UserNoMapping}, {"nopage", short | kcdata.UserNoPage},
		{"chain", kcdata.UserWalked}, {"noise", whole | kcdata.UserPagedOut},
	} {
		w.calls(odd, w.thread(odd, c.name, kcdata.StateInterruptible, second, futex...), c.flags, "poll in "+libc, "serve in "+server)
	}
	w.calls(odd, w.thread(odd, "compat", kcdata.StateInterruptible, second, futex...), kcdata.UserCompat)
	w.calls(odd, w.thread(odd, "exiting", kcdata.StateInterruptible, second, futex...), kcdata.UserNoMemory)
	return w.done()
}

// userCut gives a new thread a recursion of n frames.
func (w *world) userCut(t *kcdata.Task, name string, flags uint32, n int) {
	frames := make([]string, n)
	for i := range frames {
		frames[i] = fmt.Sprintf("recurse_%c in /opt/app/server", 'a'+rune(i%2))
	}
	w.calls(t, w.thread(t, name, kcdata.StateInterruptible, second, "__schedule", "schedule"), flags, frames...)
}

// framePointers: taken with frame pointers alone; said once, not for each stack.
func framePointers() *kcdata.Snapshot {
	w := newWorld(1)
	t := w.task(70, "web")
	w.maps(t, "/usr/bin/web", 0)
	for i := range 3 {
		w.calls(t, w.thread(t, "web", kcdata.StateInterruptible, minute, "__schedule", "schedule", "ep_poll"), kcdata.UserWalked, fmt.Sprintf("handler_%d in /usr/bin/web", i), "main in /usr/bin/web")
	}
	return w.done()
}
