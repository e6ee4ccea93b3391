package urgency

import (
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"stackshot/internal/limits"
)

// Priorities at SCHED_RR of a process that is urgent: the usual one, below whatever else is
// real-time, and that of one that somebody's real-time tasks keep from all CPUs.
const (
	Priority = 1
	Raised   = 98
)

var (
	ordinary = schedule{unix.SCHED_NORMAL, 0}
	urgent   = schedule{unix.SCHED_RR, Priority}
	raised   = schedule{unix.SCHED_RR, Raised}
)

// startedAs is the schedule with which this process was started.
var startedAs, _ = scheduleOf(0)

// Budget is the CPU time that all threads together may spend at the urgent priority after each
// Begin. What takes longer goes on as an ordinary program, so that it does not starve the
// machine.
const Budget = 5 * time.Second

// process is the priority of this process, of which there is one.
var process struct {
	sync.Mutex
	pass  pass          // of the callers of Begin and End
	ended chan struct{} // of one that is begun, closed by End: its goroutine that beats ends; nil: none is
}

// Starved hears, on a goroutine, that no goroutine of this process ran for starveTime, mostly since real-time tasks
// of others have all CPUs: that it was raised, or else made ordinary, since an ordinary thread has the
// share that the kernel keeps for those. It is set before the first Begin.
var Starved func(wasRaised bool)

// Begin makes every thread of this process urgent, until End is called or the budget is spent.
// A second one before End changes nothing. After an error no thread is urgent, also of those
// that were when this process was started.
func Begin() error { return begin(Budget) }

func begin(budget time.Duration) error {
	process.Lock()
	defer process.Unlock()
	if process.ended != nil {
		return nil
	}
	err := prepare()
	if err == nil {
		err = limits.RealTime()
	}
	if err == nil {
		err = raiseAll(budget)
	}
	if err != nil {
		end()
	}
	return err
}

// raiseAll makes the keeper, and then every thread urgent. Until it is done its own thread is raised, or that,
// and those that it makes, might have no CPU. A helper process of one that was raised stays so.
func raiseAll(budget time.Duration) error {
	now, _ := scheduleOf(0)
	process.ended = make(chan struct{})
	go beat(process.ended)
	atomic.StoreInt32(&keeper.done, 0)
	defer atomic.StoreInt32(&keeper.done, 1)
	keeper.set(cpuTime() + budget)
	raiseSelf()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	raiseSelf() // the goroutine may have gone to another thread meanwhile: the first is one of all now
	if err := keeper.start(); err != nil || startedAs == raised && now == raised {
		return err
	}
	err := everyThread(urgent)
	if err == nil && atomic.LoadInt32(&keeper.step) == atRaised {
		err = everyThread(raised) // the last passes may have undone it
	}
	return err
}

func raiseSelf() {
	if now, errno := scheduleOf(0); errno == 0 && (now == ordinary || now == urgent) {
		raised.set(0) // it may be refused
	}
}

// beat tells the keeper that goroutines run, and others what the keeper did.
func beat(ended chan struct{}) {
	tick := time.NewTicker(beatTime)
	defer tick.Stop()
	told := atStart
	for {
		atomic.AddInt32(&keeper.beats, 1)
		if now := atomic.LoadInt32(&keeper.step); now > told {
			if told = now; Starved != nil {
				go Starved(now == atRaised) // it may have to wait for whoever reads
			}
		}
		select {
		case <-tick.C:
		case <-ended:
			return
		}
	}
}

// End makes every thread of this process an ordinary one again.
func End() {
	process.Lock()
	defer process.Unlock()
	if process.ended != nil {
		end()
	}
}

// end lowers all threads. process is locked.
func end() {
	atomic.StoreInt64(&keeper.until, 1) // if the keeper is about to raise some, it sees this afterwards
	if process.ended != nil {
		close(process.ended)
		process.ended = nil
	}
	err := everyThread(ordinary)
	switch {
	case !keeper.started:
	case err == nil:
		keeper.set(0)
	default:
		keeper.set(1) // the budget is spent: the keeper tries, again and again
	}
}

// Prepare makes what Begin needs: a process that stays may have no descriptor and no thread left
// when it has to be urgent.
func Prepare() error {
	process.Lock()
	defer process.Unlock()
	if err := prepare(); err != nil {
		return err
	}
	return keeper.start()
}

// prepare opens what is not open yet, for the life of this process. process is locked.
func prepare() (err error) {
	const tasks = "/proc/self/task"
	for _, dir := range []*int{&process.pass.dir, &keeper.pass.dir} {
		if *dir == 0 {
			if *dir, err = unix.Open(tasks, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err != nil {
				*dir = 0
				return &os.PathError{Op: "open", Path: tasks, Err: err}
			}
		}
	}
	if keeper.wake == 0 {
		if keeper.wake, err = unix.Eventfd(0, unix.EFD_CLOEXEC); err != nil {
			keeper.wake = 0
			return os.NewSyscallError("eventfd", err)
		}
	}
	return nil
}

// Inherited reports whether this process was started by one that is urgent.
func Inherited() bool {
	return startedAs == urgent || startedAs == raised
}

// Limit has the kernel end this process if one of its threads runs at a real-time priority
// for longer than six times the budget and the longest stop without a pause: then something is
// wrong that not even the keeper could end. The kernel counts ticks, also those that a host took
// from this machine, and the budget is CPU time, so the limit must be far from it. It is the hard
// RLIMIT_RTTIME, which helper processes inherit; at the soft one comes SIGXCPU, which the Go
// runtime ignores. If this process was started at a real-time priority, all its work is done at
// it, and there is no limit.
func Limit(stop time.Duration) {
	switch now, _ := scheduleOf(0); now.policy {
	case unix.SCHED_RR, unix.SCHED_FIFO, unix.SCHED_DEADLINE:
		return
	}
	most := uint64((hardTimes*Budget + stop) / time.Microsecond)
	unix.Setrlimit(unix.RLIMIT_RTTIME, &unix.Rlimit{Cur: most, Max: most}) // if it is refused, the limit is lower already
}

const hardTimes = 6

// everyThread gives all threads of this process a schedule, if it becomes them (schedule.becomes), the
// calling one last, which might have no CPU then. Their nice values stay. process is locked.
func everyThread(to schedule) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	p := &process.pass
	if p.dir == 0 { // prepare failed: no other thread was changed
		if now, _ := scheduleOf(0); now.becomes(to) {
			to.set(0)
		}
		return os.ErrInvalid
	}
	p.self = unix.Gettid()
	// A thread that is just being made has the schedule that its maker had, and is in no list yet. So the last
	// passes come when no thread can be made. The first may be needed for that: a maker that waits
	// behind somebody's FIFO task goes on only as an ordinary thread.
	errno := p.changeAll(to)
	if errno == 0 {
		beforeExec()
		errno = p.changeAll(to)
		afterExec()
	}
	if now, _ := scheduleOf(0); errno == 0 && now.becomes(to) {
		errno = to.set(0)
	}
	if errno != 0 {
		return errno
	}
	return nil
}
