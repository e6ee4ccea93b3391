package urgency

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"stackshot/internal/clock"
	"stackshot/internal/testneed"
	"stackshot/internal/testtask"
)

// A process that changes its priority is a child of the test, one of these.
const childVar = "STACKSHOT_TEST_URGENCY"

var children = map[string]func() error{
	"threads": everyThreadFollows, "spin": spinForMoment, "starve": spinForLong, "refused": refused, "lacks keeper": lacksKeeper, "inherited": inheritedRefused,
	"no descriptors": endsWithoutDescriptors, "limit": limitHolds, "started": startedSo,
}

func TestMain(m *testing.M) {
	if child := children[os.Getenv(childVar)]; child != nil {
		startTime = testneed.Patience
		if os.Getenv(childVar) != "starve" {
			starveTime = time.Hour // whatever keeps it from the CPUs
		}
		if err := child(); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// command starts a child later.
func command(name string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), childVar+"="+name)
	return cmd
}

func run(t *testing.T, name string) {
	t.Helper()
	if out, err := command(name).CombinedOutput(); err != nil {
		t.Errorf("%s: %v\n%s", name, err, out)
	}
}

// policies names what the threads of a process have, but for the keeper's. The kernel says so, not the
// code under test.
func policies(pid int) string {
	return strings.Join(slices.DeleteFunc(testtask.Schedules(pid), func(s string) bool { return s == keeperHas }), " ")
}

// What the threads have; the keeper always its own.
const (
	areOrdinary = "0/0"
	areUrgent   = "2/1"
	keeperHas   = "2/99"
)

// No thread stays behind, however many are made meanwhile, each keeps its nice value, and only the
// keeper is above the others.
func TestEveryThreadFollows(t *testing.T) {
	testneed.Live(t)
	testneed.Root(t)
	run(t, "threads")
}

func everyThreadFollows() error {
	runtime.LockOSThread()
	tid := unix.Gettid()
	if err := unix.Setpriority(unix.PRIO_PROCESS, tid, 3); err != nil {
		return err
	}
	end := make(chan struct{})
	defer close(end)
	threads := func(n int) {
		for range n {
			go func() {
				runtime.LockOSThread()
				<-end
			}()
			clock.Nap(20 * time.Microsecond) // so that they come during passes
		}
	}
	pid := os.Getpid()
	for range 5 {
		go threads(30)
		if err := Begin(); err != nil {
			return err
		}
		if err := Begin(); err != nil { // changes nothing
			return err
		}
		for range 20 {
			if p := policies(pid); p != areUrgent {
				return fmt.Errorf("begun: %s", p)
			}
		}
		go threads(30)
		End()
		End()
		for range 20 {
			if p := policies(pid); p != areOrdinary {
				return fmt.Errorf("ended: %s", p)
			}
		}
	}
	if nice, err := unix.Getpriority(unix.PRIO_PROCESS, tid); err != nil || 20-nice != 3 {
		return fmt.Errorf("nice %d, %v", 20-nice, err)
	}
	return nil
}

// The Go runtime is stopped for good in the middle of a collection: one thread never comes to a
// safe point, and spins at the urgent priority. The keeper ends that; nobody else could.
func TestSpinInAStoppedRuntime(t *testing.T) {
	testneed.Live(t)
	testneed.Root(t)
	spins(t, "spin", "ordinary")
}

// No goroutine runs any more, as if somebody's FIFO tasks had all CPUs. The keeper raises the threads,
// and makes them ordinary when that does not help, long before the budget is spent.
func TestStarved(t *testing.T) {
	testneed.Live(t)
	testneed.Root(t)
	spins(t, "starve", "raised", "ordinary")
}

// spins runs a child whose spinning thread becomes what is wanted, one after the other, and then all others too.
func spins(t *testing.T, child string, wanted ...string) {
	t.Helper()
	cmd := command(child)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	in := bufio.NewScanner(out)
	for _, want := range append([]string{"spins"}, wanted...) {
		if !in.Scan() || in.Text() != want {
			t.Fatalf("the child says %q, %v; want %q: it goes on, or was killed for its time at a real-time priority", in.Text(), in.Err(), want)
		}
	}
	for policies(cmd.Process.Pid) != areOrdinary {
		time.Sleep(time.Millisecond) // until the last thread is
	}
}

func spinForMoment() error { return spinStopped(50 * time.Millisecond) } // long enough for the collection to begin, and short for other tests

func spinForLong() error { return spinStopped(time.Hour) }

func spinStopped(budget time.Duration) error {
	Limit(0)
	runtime.GOMAXPROCS(2)
	began := make(chan bool)
	go func() {
		runtime.LockOSThread()
		// The runtime asks for a safe point by a signal.
		var all unix.Sigset_t
		for i := range all.Val {
			all.Val[i] = ^all.Val[i]
		}
		unix.PthreadSigmask(unix.SIG_SETMASK, &all, nil)
		close(began)
		spin()
	}()
	<-began
	fmt.Println("spins")
	if err := begin(budget); err != nil {
		return err
	}
	runtime.GC()
	return errors.New("collected")
}

// spin makes system calls that the runtime knows nothing of, and says what the thread becomes. A
// nosplit function has no safe point, unless it is inlined into one that has.
//
//go:nosplit
//go:norace
//go:noinline
func spin() {
	last := ordinary
	for {
		now, _ := scheduleOf(0)
		switch {
		case now == last:
		case now == raised:
			syscall.RawSyscall(unix.SYS_WRITE, 1, uintptr(unsafe.Pointer(&saysRaised)), uintptr(len(saysRaised)))
		case now == ordinary:
			syscall.RawSyscall(unix.SYS_WRITE, 1, uintptr(unsafe.Pointer(&saysOrdinary)), uintptr(len(saysOrdinary)))
		}
		last = now
	}
}

var (
	saysRaised   = [...]byte{'r', 'a', 'i', 's', 'e', 'd', '\n'}
	saysOrdinary = [...]byte{'o', 'r', 'd', 'i', 'n', 'a', 'r', 'y', '\n'}
)

// Who has no right to it learns so, each time, and no thread is urgent.
func TestRefused(t *testing.T) {
	testneed.Live(t)
	testneed.Root(t)
	run(t, "refused")
	run(t, "lacks keeper")
}

func refused() error {
	none := unix.Rlimit{}
	if err := errors.Join(unix.Setrlimit(unix.RLIMIT_RTPRIO, &none), syscall.Setuid(65534)); err != nil {
		return err
	}
	return refusedFor(unix.EPERM)
}

// lacksKeeper has a right to all but the keeper's priority.
func lacksKeeper() error {
	above[0].priority = 100 // there is none
	return refusedFor(unix.EINVAL)
}

func refusedFor(why error) error {
	for range 3 {
		if err := Begin(); !errors.Is(err, why) {
			return fmt.Errorf("begun: %v", err)
		}
		if p := policies(os.Getpid()); p != areOrdinary {
			return fmt.Errorf("refused: %s", p)
		}
		End()
	}
	return nil
}

// Also who was urgent from the start is so no longer after an error.
func TestInheritedAndRefused(t *testing.T) {
	testneed.Live(t)
	testneed.Root(t)
	run(t, "inherited")
}

func inheritedRefused() error {
	if err := Begin(); err != nil {
		return err
	}
	close(process.ended)
	process.ended = nil // as a process that was started so
	keeper.set(0)
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_RTTIME, &limit); err != nil {
		return err
	}
	limit.Max, limit.Cur = 2_000_000, 2_000_000 // too low for a capture
	if err := unix.Setrlimit(unix.RLIMIT_RTTIME, &limit); err != nil {
		return err
	}
	if err := Begin(); err == nil {
		return errors.New("not refused")
	}
	if p := policies(os.Getpid()); p != areOrdinary {
		return fmt.Errorf("refused: %s", p)
	}
	return nil
}

// End needs no descriptor that Begin has not opened.
func TestEndWithoutDescriptors(t *testing.T) {
	testneed.Live(t)
	testneed.Root(t)
	run(t, "no descriptors")
}

func endsWithoutDescriptors() error {
	if err := Begin(); err != nil {
		return err
	}
	list := policies(os.Getpid())
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return err
	}
	few := limit
	few.Cur = 0
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &few); err != nil {
		return err
	}
	End()
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return err
	}
	if p := policies(os.Getpid()); list != areUrgent || p != areOrdinary {
		return fmt.Errorf("begun: %s, ended: %s", list, p)
	}
	return nil
}

// The kernel's limit is below what kills a process late, but not where all is real-time anyway.
func TestLimit(t *testing.T) {
	testneed.Live(t)
	testneed.Root(t)
	run(t, "limit")
}

func limitHolds() error {
	runtime.LockOSThread()
	var before, limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_RTTIME, &before); err != nil {
		return err
	}
	urgent.set(0)
	Limit(0)
	if now, _ := scheduleOf(0); now != urgent {
		return errors.New("not urgent")
	}
	if err := unix.Getrlimit(unix.RLIMIT_RTTIME, &limit); err != nil || limit != before {
		return fmt.Errorf("started at a real-time priority: RLIMIT_RTTIME %+v, %v", limit, err)
	}
	ordinary.set(0)
	Limit(0)
	if now, _ := scheduleOf(0); now != ordinary {
		return errors.New("urgent")
	}
	if err := unix.Getrlimit(unix.RLIMIT_RTTIME, &limit); err != nil || limit.Max > uint64(hardTimes*Budget/time.Microsecond) { // the soft one kills no Go program
		return fmt.Errorf("RLIMIT_RTTIME %+v, %v", limit, err)
	}
	return nil
}

// A process that a raised one starts stays raised until its End, and the keeper has a budget for it. One that
// was started at another real-time priority keeps that.
func TestStartedAt(t *testing.T) {
	testneed.Live(t)
	testneed.Root(t)
	for _, at := range []struct {
		schedule
		begun, ended string
	}{{raised, "2/98", areOrdinary}, {urgent, areUrgent, areOrdinary}, {schedule{unix.SCHED_FIFO, 50}, "1/50", "1/50"}, {schedule{unix.SCHED_BATCH, 0}, "3/0", "3/0"}} {
		cmd := command("started")
		cmd.Env = append(cmd.Env, "STACKSHOT_TEST_WANT="+at.begun+" "+at.ended)
		var out []byte
		done := make(chan error)
		go func() {
			runtime.LockOSThread() // for good: the thread ends with the goroutine
			err := error(nil)
			if errno := at.set(0); errno != 0 {
				err = errno
			} else {
				out, err = cmd.CombinedOutput()
			}
			done <- err
		}()
		if err := <-done; err != nil {
			t.Errorf("started at %v: %v\n%s", at.schedule, err, out)
		}
	}
}

func startedSo() error {
	want := strings.Fields(os.Getenv("STACKSHOT_TEST_WANT"))
	for range 3 {
		if err := Begin(); err != nil {
			return err
		}
		if p := policies(os.Getpid()); p != want[0] {
			return fmt.Errorf("begun: %s", p)
		}
		End()
		if p := policies(os.Getpid()); p != want[1] {
			return fmt.Errorf("ended: %s", p)
		}
		if want[1] == areOrdinary {
			want[0] = areUrgent // now it is as any other
		}
	}
	return nil
}
