package snapshot

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"stackshot/internal/arm"
	"stackshot/internal/bpf"
	"stackshot/internal/bpf/bpftest"
	"stackshot/internal/engine/stop"
	"stackshot/internal/engine/trap"
	"stackshot/internal/extract"
	"stackshot/internal/panicregion"
	"stackshot/internal/testneed"
	"stackshot/internal/testtask"
	"stackshot/internal/testvm"
	"stackshot/internal/vmcore"
	"stackshot/kcdata"
)

const dieInStopVar = "STACKSHOT_DIE_IN_STOP"

// A live window of some seconds: CPU 0, where a guest's NMIs and its serial line arrive, holds
// its CPU and records nothing; CPU 1 leads and records.
const guestWindow = 4 * time.Second

// TestInsideLivePanic is the inner half of TestGuestPanicsInAStop: it arms the machine and
// stops it, until the kernel panics.
func TestInsideLivePanic(t *testing.T) {
	testneed.Guests(t)
	if os.Getenv(dieInStopVar) == "" {
		t.Skip("the inner half of TestGuestPanicsInAStop: kills its kernel")
	}
	testtask.Start(t, testtask.Bystanders(50), testtask.ManyThreads(4000))
	a, err := arm.Open(arm.Options{Key: 'y', Sysrq: true, Panic: true, Pause: arm.MaxPause, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	for _, h := range a.Hooks {
		fmt.Printf("HOOK %s %s/%s %v\n", h.Event, h.By, h.Function, h.Err)
	}
	s := openTest(t, Options{Engine: EngineTrap, ArrivalBudget: time.Second, MaxPause: time.Minute, Buffer: 64 << 20}, delayed(func(cpu int) bpftest.Delay {
		return bpftest.Delay{WindowNs: uint32(flagInt(cpu == 0)) * uint32(guestWindow)}
	}))
	s.plan.Main = 1
	e := s.engine.(*trap.Engine)
	fmt.Printf("ISOLATION %s\n", s.engine.Caps().Isolation)
	for range 20 {
		fmt.Println("STOPPING")
		_, err := oneTry(e, t, s)
		fmt.Printf("OVER %v, %v\n", err, s.resident.why)
		time.Sleep(time.Second)
	}
}

// The kernel panics in the middle of a stop, in a hard interrupt where the stop lets interrupts in, by
// an NMI where it does not. The other CPU is out of the trap within a millisecond, the kernel
// goes its own way, and a dump has both: the panic's records and the capture's.
func TestGuestPanicsInAStop(t *testing.T) {
	testneed.Guests(t)
	repo, err := testvm.Repo(".")
	if err != nil {
		t.Fatal(err)
	}
	b := &testvm.Builder{Repo: repo, Dir: t.TempDir()}
	for _, c := range []struct {
		track, isolation string
		panics           func(*testvm.Driven) error
	}{
		{"6.12", IsolationPreemptOff, func(d *testvm.Driven) error { return d.SerialBreak("c") }},
		{"newest", IsolationIRQOff, func(d *testvm.Driven) error { return d.NMI() }},
	} {
		t.Run(c.track, func(t *testing.T) {
			cache, err := testvm.CacheDir()
			if err != nil {
				t.Fatal(err)
			}
			k, err := testvm.FindKernel(cache, "amd64", c.track)
			if err != nil {
				t.Fatal(err)
			}
			panicsInAStop(t, b, repo, k, c.isolation, c.panics)
		})
	}
}

func panicsInAStop(t *testing.T, b *testvm.Builder, repo string, k testvm.Kernel, isolation string, panics func(*testvm.Driven) error) {
	dir := t.TempDir()
	d, err := testvm.Drive(t.Context(), b, testvm.Test{
		Package: "snapshot", Args: []string{"-run", "^TestInsideLivePanic$", "-test.v"}, Env: []string{dieInStopVar + "=1", "STACKSHOT_TIME_FACTOR=1000"},
		Guest: testvm.Config{Kernel: k, CPUs: 2, Memory: 1024, LogDir: dir, Limit: 9 * time.Minute,
			Append: "panic=0 sysrq_always_enabled unknown_nmi_panic nowatchdog"},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	fail := func(err error) {
		t.Fatalf("%v\n%s\n%s", err, strings.Join(d.Program.Lines(), "\n"), strings.Join(d.Console(), "\n"))
	}
	if _, err := d.Program.WaitLine(ctx, regexp.MustCompile("ISOLATION "+isolation)); err != nil {
		fail(err)
	}
	if _, err := d.Program.WaitLine(ctx, regexp.MustCompile("STOPPING")); err != nil {
		fail(err)
	}
	time.Sleep(1500 * time.Millisecond) // of guestWindow, so that the stop has begun however slow the host is
	if err := panics(d); err != nil {
		fail(err)
	}
	if _, err := d.WaitLine(ctx, regexp.MustCompile(`end Kernel panic`)); err != nil {
		fail(err)
	}
	name := filepath.Join(dir, "core")
	if err := d.DumpMemory(name); err != nil {
		t.Fatal(err)
	}
	d.Close()
	core, err := vmcore.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer core.Close()
	found, err := extract.Find(core)
	if err != nil {
		t.Fatal(err)
	}
	var live, panicked *extract.Region
	for _, r := range found.Regions {
		t.Log(r.Line(), r.Flaws)
		switch {
		case r.Err != nil:
		case r.Static.Kind == panicregion.KindLive:
			live = r
		default:
			panicked = r
		}
	}
	if live == nil || panicked == nil {
		fail(fmt.Errorf("regions: live %v, panic %v", live, panicked))
	}
	checkOut(t, live, panicked)
	checkBoth(t, live, panicked)
	checkCommand(t, repo, name)
}

// checkCommand: the command makes a file of each.
func checkCommand(t *testing.T, repo, core string) {
	t.Helper()
	dir := t.TempDir()
	build := exec.Command("go", "build", "-o", dir+"/stackshot", "./cmd/stackshot")
	build.Dir = repo
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	cmd := exec.Command(dir+"/stackshot", "extract", "--compress", "none", "-o", "dead.kcdata", core)
	cmd.Dir = dir
	text, _ := cmd.CombinedOutput()
	t.Logf("extract: %s", text)
	for file, engine := range map[string]string{"dead.kcdata": "panic", "dead-live.kcdata": EngineTrap} {
		b, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		snap, err := kcdata.ParseSnapshot(b)
		if err != nil {
			t.Fatal(err)
		}
		if snap.Engine != engine || snap.Symbols.Len() == 0 {
			t.Errorf("%s: engine %s, %d symbols", file, snap.Engine, snap.Symbols.Len())
		}
	}
	if code := cmd.ProcessState.ExitCode(); code != 0 && code != 3 { // 3: the live one was cut
		t.Errorf("exit code %d", code)
	}
	if bytes.Contains(text, []byte("damaged")) { // nothing that we left in memory looks like a torn head or list
		t.Error("the dump has damaged heads or lists")
	}
}

// checkOut: all CPUs but the one that panicked left the trap in time.
func checkOut(t *testing.T, live, panicked *extract.Region) {
	t.Helper()
	section := func(kind uint32) *bytes.Reader {
		x, _ := live.Static.Section(kind)
		b := make([]byte, x.Len)
		if _, err := live.ReadAt(b, int64(x.Off)); err != nil {
			t.Fatal(err)
		}
		return bytes.NewReader(b)
	}
	var s bpf.Stop
	workers := make([]bpf.TrapWorker, 2)
	if err := binary.Read(section(panicregion.SectionStop), binary.LittleEndian, &s); err != nil {
		t.Fatal(err)
	}
	if err := binary.Read(section(panicregion.SectionWorkers), binary.LittleEndian, workers); err != nil {
		t.Fatal(err)
	}
	w := panicked.Walk
	if stop.PhaseOf(s.Word) != stop.PhasePanicked || w.Live != 1 {
		t.Fatalf("phase %v, the panic told %d captures: it did not hit the stop", stop.PhaseOf(s.Word), w.Live)
	}
	for cpu, k := range workers {
		took := time.Duration(int64(k.Left) - int64(w.Began))
		t.Logf("CPU %d: held %v before the panic, out %v after it (the panic on CPU %d)", cpu, time.Duration(int64(w.Began)-int64(k.Held)), took, w.CPU)
		if uint32(cpu) == w.CPU {
			continue // it is in panic() for good
		}
		if k.In == 0 || k.Left == 0 || took > outWithin*emulationFactorOfGuests {
			t.Errorf("CPU %d: in %d, left at %d, %v after the panic", cpu, k.In, k.Left, took)
		}
	}
}

// An emulated CPU is that much slower, and may wait for a CPU of the host.
const emulationFactorOfGuests = 20

// checkBoth: both regions make files, and the large process is in each of them.
func checkBoth(t *testing.T, live, panicked *extract.Region) {
	t.Helper()
	for _, r := range []*extract.Region{live, panicked} {
		var out bytes.Buffer
		p, err := extract.Prepare(r, extract.Options{Version: "test", Beside: panicked})
		if err != nil {
			t.Fatal(err)
		}
		res, err := p.Write(&out)
		if err != nil {
			t.Fatal(err)
		}
		snap, err := kcdata.ParseSnapshot(out.Bytes())
		if err != nil || len(snap.Problems) > 0 {
			t.Fatal(err, snap.Problems)
		}
		most := 0
		for _, task := range snap.Tasks {
			most = max(most, len(task.Threads))
		}
		t.Logf("engine %s: %d tasks, %d threads, largest %d, missing %q, warnings %v", snap.Engine, res.Tasks, res.Threads, most, res.Missing, snap.Warnings)
		if most < 64 || res.Tasks < 50 || r == live && (!hasCode(snap, "kernel_panicked") || snap.Engine != EngineTrap) {
			t.Errorf("engine %s: %d tasks, the largest with %d threads", snap.Engine, res.Tasks, most)
		}
	}
}
