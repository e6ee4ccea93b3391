package waits

import (
	"strings"
	"sync"

	"stackshot/kcdata"
)

// userRow names a futex wait by a function of the user stack. Names are as userRow's
// neighbours in row: a "*" ends the begin of a name.
type userRow struct {
	kind  Kind
	names string
}

// userTable has what libraries and runtimes call when they wait. The first frame from the leaf
// on that is in it counts: what calls it is the program, unless that is a runtime which makes its
// own waits of condition variables. Names are those of the symbol tables,
// demangled.
var userTable = [...]userRow{
	{UserCondvar, "pthread_cond_wait __pthread_cond_wait pthread_cond_timedwait __pthread_cond_timedwait pthread_cond_clockwait __pthread_cond_clockwait __pthread_cond_wait_common " +
		"___pthread_cond_wait ___pthread_cond_timedwait ___pthread_cond_clockwait cnd_wait cnd_timedwait __private_cond_signal std::condition_variable::* std::_V2::condition_variable_any::* " +
		"std::__condvar::* parking_lot::condvar::* std::sys::*::condvar::* std::sync::poison::condvar::Condvar::* std::sync::condvar::Condvar::*"},
	{UserSemaphore, "sem_wait __sem_wait __new_sem_wait sem_timedwait sem_clockwait __new_sem_wait_slow __new_sem_wait_slow64 do_futex_wait std::__atomic_semaphore* std::counting_semaphore*"},
	{UserBarrier, "pthread_barrier_wait __pthread_barrier_wait ___pthread_barrier_wait std::__tree_barrier* std::sync::barrier::* gomp_barrier_wait* gomp_team_barrier_wait*"},
	{UserJoin, "pthread_join __pthread_join __pthread_clockjoin_ex __pthread_timedjoin_ex pthread_timedjoin_np thrd_join"},
	{UserRWLock, "pthread_rwlock_* __pthread_rwlock_* ___pthread_rwlock_*"},
	{UserMutex, "pthread_mutex_* __pthread_mutex_* ___pthread_mutex_* __lll_lock_wait __lll_lock_wait_private __lll_mutex_lock_wait mtx_lock mtx_timedlock __lock"},
	{GoRuntime, "runtime.futex runtime.futexsleep runtime.futexsleep1 runtime.notesleep runtime.notetsleep* runtime.semasleep runtime.lock* runtime.mPark runtime.stopm runtime.mcall"},
	{UserOnce, "__pthread_once __pthread_once_slow __pthread_once_full pthread_once ___pthread_once __gthread_once std::call_once* std::sys::*::once::* std::sync::once::* std::sync::poison::once::* std::sync::once_lock::* std::sync::lazy_lock::*"},
	{StaticGuard, "__cxa_guard_acquire"},
	{RustLock, "std::sys::*::mutex::* std::sys::*::rwlock::* std::sync::poison::mutex::* std::sync::poison::rwlock::*"},
	{ParkingLot, "parking_lot::raw_mutex::* parking_lot::raw_rwlock::*"},
	{UserPark, "std::sys::*::thread_parking::* std::sys::*::thread_parker::* std::thread::park* std::thread::Thread::park* std::thread::*::park parking_lot_core::* Unsafe_Park Parker::park*"},
	{JavaNotify, "ObjectMonitor::wait* ObjectSynchronizer::wait*"},
	{JavaMonitor, "ObjectMonitor::* ObjectSynchronizer::*"},
}

// throughFrames are the frames above the first one that tells: the call itself and what the
// libraries wrap around it.
const throughFrames = 12

// userKind names a futex wait by the user stack of t; ok is false if no frame tells.
func userKind(task *kcdata.Task, t *kcdata.Thread) (kind Kind, ok bool) {
	if task.UserSymbols.Len() == 0 {
		return Futex, false
	}
	waitsOnce := sync.OnceValue(func() bool { return onceFrame(task, t) > 0 })
	for i := range t.User[:min(len(t.User), throughFrames)] {
		for _, fn := range task.UserSymbols.Functions(t.UserPlace(i)) {
			switch k, tells := userFunction(fn.Name); {
			case !tells || k.IsOnce() && !waitsOnce():
			case !ok:
				kind, ok = k, true
			case kind == UserCondvar && (k == JavaMonitor || k == JavaNotify || k == UserPark), kind == UserPark && k == ParkingLot:
				return k, true // which is made of it
			}
		}
	}
	return kind, ok
}

// userFunction looks a function up in userTable. What a name has of arguments or of the
// compiler's additions does not count, nor do the brackets that newer Rust (symbol names of
// version 0) sets around the type of a method: "<std::sys::sync::mutex::futex::Mutex>::lock".
func userFunction(name string) (Kind, bool) {
	name, _, _ = strings.Cut(rustMethod(name), "(")
	name, _, _ = strings.Cut(name, "@")
	if strings.HasPrefix(name, "runtime.") { // a Go package
		name = strings.TrimSuffix(name, ".abi0")
	} else {
		name, _, _ = strings.Cut(name, ".")
	}
	for _, p := range userPatterns {
		if p.matches(name) {
			return p.kind, true
		}
	}
	return Futex, false
}

// rustMethod is a method's name without the brackets that Rust's newer mangling puts around its
// type: <std::thread::Thread>::park, <T as Trait>::f.
func rustMethod(name string) string {
	rest, ok := strings.CutPrefix(name, "<")
	if !ok {
		return name
	}
	depth := 1
	for i, c := range rest {
		switch c {
		case '<':
			depth++
		case '>':
			depth--
		}
		if depth == 0 {
			typ, _, _ := strings.Cut(rest[:i], " as ")
			return typ + rest[i+1:]
		}
	}
	return name
}

// ownWords reports whether who waits for k in a futex call does so for a word of a runtime of its own.
// glibc's and musl's layouts say nothing of such a word: what the program keeps behind it may
// look like the fields of one of their locks.
func ownWords(k Kind) bool {
	return k == RustLock || k.IsOnce() || k == UserPark || k == GoRuntime
}

// userPattern is one name of userTable, cut at its stars.
type userPattern struct {
	kind  Kind
	parts []string
}

var userPatterns = func() (out []userPattern) {
	for _, r := range userTable {
		out = append(out, newUserPatterns(r.kind, r.names)...)
	}
	return out
}()

func newUserPatterns(kind Kind, names string) (out []userPattern) {
	for _, n := range strings.Fields(names) {
		out = append(out, userPattern{kind, strings.Split(n, "*")})
	}
	return out
}

// matches: the first part begins the name; each further one follows somewhere behind. A
// pattern without a star is the whole name.
func (p userPattern) matches(name string) bool {
	rest, ok := strings.CutPrefix(name, p.parts[0])
	if !ok {
		return false
	}
	if len(p.parts) == 1 {
		return rest == ""
	}
	for _, part := range p.parts[1:] {
		i := strings.Index(rest, part)
		if i < 0 {
			return false
		}
		rest = rest[i+len(part):]
	}
	return true
}
