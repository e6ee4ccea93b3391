package waits

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"stackshot/kcdata"
)

// example is a line of testdata/stacks.txt.
type example struct {
	kind   Kind
	where  string
	frames []string
}

func examples(t *testing.T) (out []example) {
	t.Helper()
	text, err := os.ReadFile("testdata/stacks.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		head, stack, ok := strings.Cut(line, ": ")
		f := strings.Fields(head)
		if !ok || len(f) != 2 {
			t.Fatalf("no example: %q", line)
		}
		out = append(out, example{Kind(f[0]), f[1], strings.Fields(stack)})
	}
	return out
}

func marksOfAll(frames []string) (out []*marks) {
	for _, f := range frames {
		if m := marksOf(f); len(out) > 0 || !m.helper {
			out = append(out, m)
		}
	}
	return out
}

// Stacks of real machines are of the kind that they are of, each row of the table has one, and
// no stack of the list gets its kind from a row that has no business with it.
func TestRealStacks(t *testing.T) {
	used := make([]bool, len(table))
	for _, e := range examples(t) {
		kind := Other
		i := rowOf(marksOfAll(e.frames))
		if i >= 0 {
			kind, used[i] = table[i].kind, true
		}
		if kind != e.kind {
			t.Errorf("%s %s: row %d, %s; want %s", e.where, strings.Join(e.frames, " "), i, kind, e.kind)
		}
	}
	for i, u := range used {
		if !u {
			t.Errorf("row %d has no example: %s %.60s", i, table[i].kind, table[i].leaf)
		}
	}
}

// Every kind has words of its own, every row a kind, and the table fits.
func TestKindsHaveWords(t *testing.T) {
	words := map[string]Kind{}
	for k, f := range kinds {
		if f == "" || words[f] != "" {
			t.Errorf("%s: words %q, as %q", k, f, words[f])
		}
		words[f] = k
	}
	for i, r := range table {
		if _, ok := kinds[r.kind]; !ok || r.leaf == "" && r.within == "" {
			t.Errorf("row %d: %+v", i, r)
		}
	}
	for _, r := range userTable {
		if _, ok := kinds[r.kind]; !ok {
			t.Errorf("user row %+v", r)
		}
	}
	if len(table) > maxRows {
		t.Errorf("%d rows, of at most %d", len(table), maxRows)
	}
	if Kind("x").Words() != Other.Words() {
		t.Error("the words of no kind")
	}
}

// What stands in one row's leaf column stands in no earlier row that would always win.
func TestRowsCanWin(t *testing.T) {
	for i, r := range table {
		won := false
		for _, leaf := range strings.Fields(r.leaf) {
			leaf = strings.TrimSuffix(leaf, "*")
			for _, within := range append(strings.Fields(r.within), leaf) {
				won = won || rowOf(marksOfAll([]string{leaf, strings.TrimSuffix(within, "*")})) == i
			}
		}
		if r.leaf != "" && !won {
			t.Errorf("row %d (%s) never counts", i, r.kind)
		}
	}
}

// User stacks name what a futex call waits for, by the first frame that tells.
func TestUserFunctions(t *testing.T) {
	for name, want := range map[string]Kind{
		"pthread_cond_wait@@GLIBC_2.3.2": UserCondvar, "__pthread_cond_wait_common": UserCondvar,
		"std::condition_variable::wait(std::unique_lock<std::mutex>&)":   UserCondvar,
		"std::sys::sync::condvar::futex::Condvar::wait_optional_timeout": UserCondvar,
		"do_futex_wait.constprop.0":                                      UserSemaphore, "__new_sem_wait_slow64.constprop.0": UserSemaphore,
		"pthread_barrier_wait": UserBarrier, "__pthread_clockjoin_ex": UserJoin,
		"__GI___pthread_mutex_lock": Futex, "___pthread_mutex_lock": UserMutex, "__lll_lock_wait": UserMutex,
		"pthread_rwlock_wrlock": UserRWLock, "runtime.futex": GoRuntime, "runtime.futex.abi0": GoRuntime, "runtime.notesleep": GoRuntime,
		"std::sys::sync::mutex::futex::Mutex::lock_contended": RustLock, "std::sys::pal::unix::futex::futex_wait": Futex,
		"<std::sync::poison::condvar::Condvar>::wait_timeout": UserCondvar,
		"<parking_lot::raw_mutex::RawMutex>::lock_slow":       ParkingLot, "<my::Mutex>::lock": Futex, "<": Futex,
		"std::thread::park": UserPark, "std::sys::sync::thread_parking::futex::Parker::park": UserPark,
		"<std::sys::sync::mutex::futex::Mutex>::lock_contended": RustLock, "<std::sys::sync::once::futex::Once>::call": UserOnce,
		"std::thread::functions::park": UserPark, "<std::thread::thread::Thread>::park": UserPark, "<std::thread::thread::Thread>::park_timeout": UserPark,
		"<my::Mutex<std::thread::park>>::lock": Futex, "<std::thread::park": Futex,
		"ObjectMonitor::enter_internal(JavaThread*)": JavaMonitor, "Unsafe_Park": UserPark,
		"ObjectMonitor::wait(long, bool, JavaThread*)": JavaNotify, "ObjectSynchronizer::waitUninterruptibly": JavaNotify, "ObjectMonitor::ReenterI": JavaMonitor,
		"__cxa_guard_acquire": StaticGuard, "__pthread_once_slow.isra.0": UserOnce, "std::call_once<void (&)()>(std::once_flag&, void (&)())": UserOnce,
		"std::sync::lazy_lock::LazyLock<T,F>::force": UserOnce, "parking_lot::condvar::Condvar::wait_until_internal": UserCondvar,
		"main.main": Futex, "my_pthread_cond_wait": Futex, "": Futex,
	} {
		if got, ok := userFunction(name); got != want || ok != (want != Futex) {
			t.Errorf("%q: %s, %v; want %s", name, got, ok, want)
		}
	}
}

// userStack gives the thread a user stack of these functions, leaf first.
func (w *world) userStack(task *kcdata.Task, t *kcdata.Thread, functions ...string) {
	w.userStacks(task, []*kcdata.Thread{t}, [][]string{functions})
}

// userStacks gives each of the threads a user stack; "f+8" is 8 bytes into f, "f#2" another function of the name f, and "g~f" one into which
// g was inlined.
func (w *world) userStacks(task *kcdata.Task, threads []*kcdata.Thread, stacks [][]string) {
	strs, records := []byte{0}, []kcdata.LinuxUserSymbol{}
	begin := map[string]uint64{}
	for n, t := range threads {
		for _, frame := range stacks[n] {
			f, at, _ := strings.Cut(frame, "+")
			offset, _ := strconv.ParseUint(at, 10, 64)
			if begin[f] == 0 {
				begin[f] = 0x1000 * uint64(1+len(begin))
			}
			inlined, outer, both := strings.Cut(f, "~")
			if !both {
				inlined, outer = "", f
			} else if begin[outer] == 0 {
				begin[outer] = 0x1000 * uint64(1+len(begin))
			}
			addr := begin[outer] + offset
			t.User = append(t.User, addr)
			for _, name := range []string{inlined, outer} {
				if name, _, _ := strings.Cut(name, "#"); name != "" {
					records = append(records, kcdata.LinuxUserSymbol{Addr: addr, Offset: offset, Name: uint32(len(strs))})
					strs = append(append(strs, name...), 0)
				}
			}
		}
	}
	task.UserSymbols = kcdata.NewUserSymbolTable(records, strs)
}

// A stack is of the runtime that makes its waits of others' condition variables, and that
// keeps a word of its own; a lock of a C library in between is that lock.
func TestUserStacks(t *testing.T) {
	mutex := kcdata.LinuxFutex{Addr: 0x7000, Flags: kcdata.FutexPrivate | kcdata.FutexOwned, Object: kcdata.FutexGlibcMutex, OwnerTid: 20, OwnerStart: start(20)}
	plain := kcdata.LinuxFutex{Addr: 0x7000, Flags: kcdata.FutexPrivate}
	for _, c := range []struct {
		stack  string
		f      kcdata.LinuxFutex
		kind   Kind
		owners string
	}{
		{"__futex_abstimed_wait_common pthread_cond_timedwait os::PlatformEvent::park ObjectMonitor::wait ObjectSynchronizer::wait", plain, JavaNotify, ""},
		{"syscall __cxa_guard_acquire main", mutex, StaticGuard, ""},
		{"pthread_cond_wait Parker::park Unsafe_Park", plain, UserPark, ""},
		{"pthread_cond_wait Monitor::wait", plain, UserCondvar, ""},
		{"pthread_cond_wait pthread_mutex_lock ObjectMonitor", plain, UserCondvar, ""},
		{"__lll_lock_wait pthread_mutex_lock Parker::park", mutex, UserMutex, "holds 20!"},
		{"__lll_lock_wait pthread_mutex_lock callC runtime.asmcgocall", mutex, UserMutex, "holds 20!"},
		{"f g", mutex, UserMutex, "holds 20!"},
		{"syscall <std::sys::sync::mutex::futex::Mutex>::lock_contended main", mutex, RustLock, ""},
		{"runtime.futex runtime.lock2", mutex, GoRuntime, ""},
	} {
		w := newWorld()
		th := w.task(10, 1, asleep, inFutex...)
		other := w.thread(w.last(), 21, asleep, inFutex...) // whose stack tells nothing
		w.thread(w.last(), 20, asleep, inPipe...)
		th.Futexes, other.Futexes = []kcdata.LinuxFutex{c.f}, []kcdata.LinuxFutex{c.f}
		w.userStack(w.last(), th, strings.Fields(c.stack)...)
		all := w.of()
		if a, b := all.Of[th], all.Of[other]; a.Kind != c.kind || owners(a) != c.owners || owners(b) != c.owners || a.Resource != (Resource{c.kind, 10, 0x7000}) || a.Resource != b.Resource {
			t.Errorf("%s: %s %q, the other %s %q", c.stack, a.Kind, owners(a), b.Kind, owners(b))
		}
	}
}
