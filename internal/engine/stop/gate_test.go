package stop

import (
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stackshot/internal/testneed"
)

// loneWorker is a worker that parks and never takes a turn.
func loneWorker(t *testing.T, gate *Gate) *Worker {
	t.Helper()
	w := &Worker{Gate: gate}
	var err error
	if w.wake, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		t.Fatal(err)
	}
	if w.bell, err = newBell(w.wake, gate.all); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(w.wake); unix.Close(w.bell) })
	return w
}

type parked struct {
	number uint64
	main   bool
}

func parking(w *Worker) chan parked {
	out := make(chan parked, 1)
	go func() {
		number, main := w.park()
		out <- parked{number, main}
	}()
	return out
}

// One worker is parked across two tries: the gate of the second is not for it, its
// doing is not counted for the second, and as an old main it opens nothing.
func TestInvariant3OneGateATry(t *testing.T) {
	var looks atomic.Int64
	gate, err := newGate()
	if err != nil {
		t.Fatal(err)
	}
	defer gate.close()
	gate.Hooks.Parked = func(int) { looks.Add(1) }
	old, oldMain, now := loneWorker(t, gate), loneWorker(t, gate), loneWorker(t, gate)

	first := gate.begin()
	old.Called.Store(first)
	oldMain.Called.Store(first)
	if !gate.open(first) {
		t.Fatal("the gate of the try under way does not open")
	}
	second := gate.begin()
	now.Called.Store(second)
	if gate.open(first) {
		t.Error("the gate of a try that is over opens")
	}
	outOld, outNow := parking(old), parking(now)
	idle := loneWorker(t, gate)
	outIdle := parking(idle)
	ring(oldMain.wake)
	if number, main := oldMain.park(); number != first || !main || gate.open(number) {
		t.Errorf("woken as main of try %d: %d, %v; and it opens the gate of another", first, number, main)
	}
	select {
	case p := <-outNow:
		t.Fatalf("through a closed gate: %+v", p)
	case <-time.After(20 * time.Millisecond):
	}
	if !gate.open(second) {
		t.Error("an old main keeps the gate shut")
	}
	ring(gate.all)
	select {
	case p := <-outNow:
		if p.number != second || p.main {
			t.Errorf("%+v, want try %d", p, second)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("who is called does not come through an open gate")
	}
	for by := time.Now().Add(10 * time.Second); old.Through.Load() != first && time.Now().Before(by); {
		time.Sleep(time.Millisecond)
	}
	if old.Through.Load() != first || now.Through.Load() != 0 {
		t.Errorf("through: %d and %d, want %d and 0", old.Through.Load(), now.Through.Load(), first)
	}
	m := &Team{Gate: gate}
	two := &Try{Number: second}
	if left := m.collect(two, []*Worker{now}, time.Now().Add(30*time.Millisecond), nil); len(left) != 1 {
		t.Error("the doing of another try was counted")
	}
	now.sayDone(second)
	if left := m.collect(two, []*Worker{now}, time.Now().Add(10*time.Second), nil); len(left) != 0 {
		t.Error("who is through is waited for")
	}
	if n := looks.Load(); n > 20 {
		t.Errorf("parked workers looked %d times: a ring keeps them awake", n)
	}
	gate.closing.Store(true)
	for _, w := range []*Worker{old, idle} {
		ring(w.wake)
	}
	<-outOld
	<-outIdle
}

// A main worker that stalls just before it opens the gate, until its try has been given
// up, opens it for nobody. The next try's gate opens.
func TestInvariant3GateOfAnEndedTryStaysShut(t *testing.T) {
	testneed.Slow(t)
	gate, err := newGate()
	if err != nil {
		t.Fatal(err)
	}
	defer gate.close()
	stalled, ended, opens := make(chan bool), make(chan bool), make(chan bool)
	gate.Hooks.Opening = func(int) { close(stalled); <-ended }
	w := loneWorker(t, gate)
	w.CPU, w.Tid = 1023, 1<<23 // neither is there, so nobody is moved
	m := &Team{Gate: gate}
	try := &Try{Number: gate.begin(), Here: []*Worker{w}, Words: new(Words)}
	try.State.Begin(1)
	w.assign(try)
	go func() { opens <- w.openGate(try) }()
	<-stalled
	var home unix.CPUSet
	unix.SchedGetaffinity(0, &home)
	m.await(try, &home)
	close(ended)
	if <-opens || !try.shut || !w.Away {
		t.Errorf("the gate of a try that was given up opens; shut %v, away %v", try.shut, w.Away)
	}
	next := gate.begin()
	if !gate.open(next) || gate.shut(next) {
		t.Errorf("try %d: its gate does not open, or is shut when it has been opened", next)
	}
}
