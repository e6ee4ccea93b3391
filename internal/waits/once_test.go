package waits

import (
	"strings"
	"testing"

	"stackshot/kcdata"
)

// Who runs an initialization is told by the function through which it and those who wait for it came.
func TestInitializers(t *testing.T) {
	const (
		guard = "syscall __cxa_guard_acquire registry()+40 "
		once  = "__pthread_once_slow ___pthread_once open_log "
		rust  = "syscall std::sys::sync::once::futex::Once::call std::sync::once_lock::OnceLock<T>::initialize app::config "
	)
	for name, c := range map[string]struct {
		waiter string
		others []string // of threads 21, 22, ...; if one of them is in a futex call its first word is "futex"
		kind   Kind
		owners string
	}{
		"a static":                      {guard + "main", []string{"read Registry::Registry() registry()+60 work"}, StaticGuard, "holds 21"},
		"a static, inlined":             {guard + "main", []string{"registry()+60 work"}, StaticGuard, "holds 21"},
		"nobody is there":               {guard + "main", []string{"read other()+60 work"}, StaticGuard, ""},
		"before the guard":              {guard + "main", []string{"read registry()+20 work"}, StaticGuard, ""},
		"two are there":                 {guard + "main", []string{"read registry()+60", "nanosleep registry()+60"}, StaticGuard, ""},
		"others wait, too":              {guard + "main", []string{"futex " + guard + "work", "read registry()+60 work", "futex " + guard + "work"}, StaticGuard, "holds 22"},
		"one that waits runs it":        {guard + "main", []string{"futex syscall __cxa_guard_acquire settings()+40 registry()+60 work"}, StaticGuard, "holds 21"},
		"without a name":                {"syscall __cxa_guard_acquire", []string{"read registry()+60"}, StaticGuard, ""},
		"without a name, beside others": {"syscall __cxa_guard_acquire #1+40 main", []string{"read init_log __pthread_once_slow open_log"}, StaticGuard, ""},
		"pthread_once":                  {once + "main", []string{"read init_log __pthread_once_slow ___pthread_once open_log work"}, UserOnce, "holds 21"},
		"short":                         {once + "main", []string{"read __pthread_once_slow ___pthread_once work"}, UserOnce, "holds 21"},
		"its own futex":                 {once + "main", []string{"futex syscall init_log __pthread_once_slow ___pthread_once work"}, UserOnce, "holds 21"},
		"called by another":             {once + "main", []string{"read init_log __pthread_once_slow ___pthread_once work"}, UserOnce, "holds 21"},
		"two run one":                   {once + "main", []string{"read init_log __pthread_once_slow ___pthread_once open_log", "read init_db __pthread_once_slow ___pthread_once warm"}, UserOnce, ""},
		"crosswise":                     {once + "init_log __pthread_once_slow ___pthread_once warm", []string{"futex __pthread_once_slow ___pthread_once warm init_db __pthread_once_slow ___pthread_once open_log"}, UserOnce, "holds 21"},
		"it waits for itself":           {once + "init_log __pthread_once_slow ___pthread_once open_log main", nil, UserOnce, "holds 20"},
		"it runs another":               {once + "init_log __pthread_once_slow ___pthread_once warm main", nil, UserOnce, ""},
		"it and two others run some":    {once + "init_log __pthread_once_slow ___pthread_once warm", []string{"read init_db __pthread_once_slow warm", "read init_db __pthread_once_slow warm"}, UserOnce, ""},
		"a generic's other function":    {guard + "main", []string{"read registry()#2+60 work"}, StaticGuard, ""},
		"at the next guard":             {guard + "main", []string{"futex syscall __cxa_guard_acquire registry()+60 work"}, StaticGuard, ""},
		"inlined in the initializer":    {guard + "main", []string{"read Registry::Registry()~registry()+60 work"}, StaticGuard, "holds 21"},
		"not in a futex call":           {once + "main", []string{"__pthread_once_slow ___pthread_once open_log"}, UserOnce, "holds 21"},
		"nobody runs it":                {once + "main", []string{"read write_line open_log work"}, UserOnce, ""},
		"call_once":                     {"__pthread_once_slow std::call_once<void(&)()> setup() main", []string{"read init() std::call_once<void(&)()>::f __pthread_once_slow std::call_once<void(&)()> setup() work"}, UserOnce, "holds 21"},
		"Rust":                          {rust + "main", []string{"read app::load std::sync::once::Once::call_once_force::{{closure}} std::sys::sync::once::futex::Once::call std::sync::once_lock::OnceLock<T>::initialize app::config"}, UserOnce, "holds 21"},
		"a lock of the initialization":  {"syscall init __pthread_once_slow ___pthread_once open_log main", nil, Futex, ""},
	} {
		w := newWorld()
		th := w.task(10, 1, asleep, inFutex...)
		th.ID, th.Linux.Tid = 20, 20
		th.Futexes = []kcdata.LinuxFutex{{Addr: 0x7000, Place: 0x9000}} // libstdc++ does not say that it is private
		stacks := [][]string{strings.Fields(c.waiter)}
		threads := []*kcdata.Thread{th}
		for i, s := range c.others {
			words := strings.Fields(s)
			in := inPipe
			if words[0] == "futex" {
				in, words = inFutex, words[1:]
			}
			o := w.thread(w.last(), uint32(21+i), asleep, in...)
			if len(in) > 0 && &in[0] == &inFutex[0] {
				o.Futexes = []kcdata.LinuxFutex{{Addr: 0x7000, Flags: kcdata.FutexPrivate}}
			}
			threads, stacks = append(threads, o), append(stacks, words)
		}
		w.userStacks(w.last(), threads, stacks)
		got := w.of().Of[th]
		if got.Kind.IsOnce() && got.Resource != (Resource{c.kind, 10, 0x7000}) {
			t.Errorf("%s: %+v", name, got.Resource)
		}
		if got.Kind != c.kind || strings.Trim(owners(got), "!") != c.owners || (len(got.Owners) > 0) != (got.Confidence == Likely) {
			t.Errorf("%s: %s %q, %s; want %s %q", name, got.Kind, owners(got), got.Confidence, c.kind, c.owners)
		}
	}
}

// Threads that wait for locks at words of their own are in one line, whatever their words are. A timeout of
// Java's is for another look.
func TestQueuedLocks(t *testing.T) {
	for stack, kind := range map[string]Kind{
		"__futex_abstimed_wait_common pthread_cond_wait os::PlatformEvent::park ObjectMonitor::EnterI ObjectMonitor::enter":  JavaMonitor,
		"__futex_abstimed_wait_common pthread_cond_wait os::PlatformEvent::park ObjectMonitor::ReenterI ObjectMonitor::wait": JavaMonitor,
		"syscall parking_lot::raw_mutex::RawMutex::lock_slow main":                                                           ParkingLot,
		"syscall parking_lot_core::parking_lot::park parking_lot::raw_rwlock::RawRwLock::lock_shared_slow main":              ParkingLot,
	} {
		w := newWorld()
		a := w.task(10, 1, asleep, inFutex...)
		b := w.thread(w.last(), 20, asleep, inFutex...)
		// What lies around the words looks like a mutex that the other one holds.
		a.Futexes = []kcdata.LinuxFutex{{Addr: 0x7000, Flags: kcdata.FutexPrivate | kcdata.FutexOwned | kcdata.FutexTimed, Object: kcdata.FutexGlibcMutex, OwnerTid: 20, OwnerStart: start(20)}}
		b.Futexes = []kcdata.LinuxFutex{{Addr: 0x8000, Flags: kcdata.FutexPrivate}}
		w.userStacks(w.last(), []*kcdata.Thread{a, b}, [][]string{strings.Fields(stack), strings.Fields(stack)})
		a.Linux.LastArrival = now - second*7/10
		all := w.of()
		x, y, again := all.Of[a], all.Of[b], kind == JavaMonitor
		if want := (Resource{Kind: kind, Task: 10}); x.Kind != kind || x.Resource != want || y.Resource != want || len(x.Owners) > 0 || x.Timed == again || y.Timed || y.Again || x.Evidence != Stack {
			t.Errorf("%s: %+v, %+v", stack, x, y)
		}
		if x.Again != again || x.Age.About != again || again && x.Age.Ns != second*7/10+looksBefore {
			t.Errorf("%s: looks again: %v, %+v, %+v", stack, x.Again, x.Age, y.Age)
		}
	}
}
