package testvm

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"stackshot/internal/testneed"
	"stackshot/internal/testtask"
)

// inCrashVar says, in a guest, that its kernel is to die, and which modules it has.
const inCrashVar = "STACKSHOT_TESTVM_CRASH"

// The kernel of a guest with modules and a crowd of known threads oopses in a hard
// interrupt, and the capture kernel's program reads the dead kernel's memory and sends a
// file. The inner half is TestInCrash. TestDumpsHoldTheSame is about QEMU's dumps.
func TestCrash(t *testing.T) {
	testneed.Guests(t)
	b := builder(t)
	for _, track := range testneed.Length([]string{"6.12"}, []string{"6.1", "6.12", "6.18", newest}) {
		t.Run(track, func(t *testing.T) { crash(t, b, requireVM(t, "amd64", track)) })
	}
}

func crash(t *testing.T, b *Builder, k Kernel) {
	program, err := b.TestBinary(t.Context(), "internal/testvm", "amd64")
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	lap := func(what string) { t.Logf("%5.1f s: %s", time.Since(began).Seconds(), what) }
	d, err := Drive(t.Context(), b, Test{Package: "internal/testvm", Args: []string{"-run", "^TestInCrash$"}, Env: []string{inCrashVar + "=qemu_fw_cfg pvpanic_pci"},
		Guest: Config{
			Kernel: k, Limit: 5 * time.Minute, LogDir: t.TempDir(), Append: "sysrq_always_enabled",
			QEMU: []string{"-device", "pvpanic-pci"}, Modules: []string{"qemu_fw_cfg", "pvpanic-pci"},
			Capture: &Capture{Program: program, Env: []string{victimVar + "=vmcore"}},
		}})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	line, err := d.Program.WaitLine(ctx, regexp.MustCompile(`^SYMBOL |^--- FAIL`))
	symbol, perr := strconv.ParseUint(strings.TrimPrefix(line, "SYMBOL "), 16, 64)
	if err != nil || perr != nil {
		t.Fatalf("%v, %v: %q", err, perr, d.Program.Lines())
	}
	lap("ready")
	if _, err := d.WaitLine(ctx, regexp.MustCompile(`^ACTORS READY`)); err != nil {
		t.Fatal(err)
	}
	if actors, err := testtask.ReadActors(d.Console()); err != nil || len(actors) < crashCrowd {
		t.Errorf("%d actors, want %d: %v", len(actors), crashCrowd, err)
	}
	cpus, err := d.CPUs()
	if err != nil || len(cpus) != 2 || cpus[1].CPU != 1 || cpus[1].PC == 0 {
		t.Errorf("CPUs %+v, %v", cpus, err)
	}
	if err := d.NMI(); err != nil {
		t.Error(err)
	}
	if _, err := d.WaitLine(ctx, regexp.MustCompile(`NMI received .* CPU 0`)); err != nil {
		t.Error(err)
	}
	lap("NMI")
	if err := d.OopsAt(ctx, symbol, func() error { return d.SendKeys("alt", "sysrq", "h") }); err != nil {
		t.Fatal(err)
	}
	if _, err := d.WaitLine(ctx, regexp.MustCompile(`NULL pointer dereference`)); err != nil {
		t.Error(err)
	}
	lap("oops")
	code, err := d.Capture.Wait(ctx)
	if _, ferr := d.Capture.File("big"); err != nil || ferr != nil || code != 0 {
		t.Errorf("capture kernel: exit code %d, %v, %v: %q", code, err, ferr, d.Capture.Lines())
	}
	lap("captured")
	// The kernel goes from the oops to the capture kernel by itself (oops_end calls
	// crash_kexec), so nothing that waits for a panic sees one.
	if i := slices.IndexFunc(d.Console(), panicLine.MatchString); i >= 0 {
		t.Errorf("an oops with a capture kernel loaded came to panic: %q", d.Console()[i])
	}
}

// With panic=0 a kernel that has panicked stands, and is dumped.
func TestPanicStands(t *testing.T) {
	testneed.Guests(t)
	b := builder(t)
	type machine struct{ arch, track string }
	for _, m := range testneed.Length([]machine{{"amd64", newest}}, []machine{{"amd64", "6.1"}, {"amd64", newest}, {"arm64", "6.12"}, {"arm64", "6.18"}}) {
		t.Run(m.arch+" "+m.track, func(t *testing.T) {
			k, dir, began := requireVM(t, m.arch, m.track), t.TempDir(), time.Now()
			d, err := Drive(t.Context(), b, Test{Package: "internal/testvm", Args: []string{"-run", "^TestInCrash$"}, Env: []string{inCrashVar + "= ", hungVar + "=" + m.arch},
				Guest: Config{Kernel: k, Limit: 5 * time.Minute, LogDir: dir,
					Append: "panic=0 sysrq_always_enabled"}})
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
			defer cancel()
			if line, err := d.Program.WaitLine(ctx, regexp.MustCompile(`^SYMBOL |^--- FAIL`)); err != nil || line[0] == '-' {
				t.Fatalf("%v: %q", err, d.Program.Lines())
			}
			why := `hung_task: blocked tasks`
			if m.arch == "arm64" { // by a key on the serial line
				why = `sysrq triggered crash`
				if err := d.SerialBreak("c"); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := d.WaitLine(ctx, regexp.MustCompile(`Kernel panic - not syncing: `+why)); err != nil {
				t.Fatal(err)
			}
			if err := d.DumpMemory(filepath.Join(dir, "core")); err != nil {
				t.Fatal(err)
			}
			n, err := countIn(filepath.Join(dir, "core"), memento())
			if err != nil || n == 0 {
				t.Errorf("the memory of the test: found %d times, %v", n, err)
			}
			t.Logf("%.1f s", time.Since(began).Seconds())
		})
	}
}

const crashCrowd = 300

// hungVar is the architecture of a guest: on amd64 its kernel panics at a hung task.
const hungVar = "STACKSHOT_TESTVM_HUNG"

// panicAtHungTasks is for a guest alone, and for the time when all is announced: the
// crowd's tasks in state D end the kernel soon after.
func panicAtHungTasks(t *testing.T) {
	for name, value := range map[string]string{"panic": "1", "timeout_secs": "5"} {
		if err := os.WriteFile("/proc/sys/kernel/hung_task_"+name, []byte(value), 0); err != nil {
			t.Fatal(err)
		}
	}
}

func TestInCrash(t *testing.T) {
	testneed.Guests(t)
	if os.Getenv(inCrashVar) == "" {
		t.Skip("for a guest, see TestCrash")
	}
	loaded, err := os.ReadFile("/proc/modules")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range strings.Fields(os.Getenv(inCrashVar)) {
		if !strings.Contains("\n"+string(loaded), "\n"+name+" ") {
			t.Errorf("module %s is not loaded: %s", name, loaded)
		}
	}
	f := testtask.Start(t, testtask.Crowd(crashCrowd)...)
	console, err := os.OpenFile("/dev/console", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Announce(console); err != nil {
		t.Fatal(err)
	}
	symbols, err := os.ReadFile("/proc/kallsyms")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^([0-9a-f]+) [tT] __handle_sysrq$`).FindSubmatch(symbols)
	if m == nil || t.Failed() {
		t.Fatal("no __handle_sysrq, or no modules")
	}
	kept := slices.Repeat(memento(), 2)
	os.Stdout.WriteString("SYMBOL " + string(m[1]) + "\n")
	if os.Getenv(hungVar) == "amd64" {
		panicAtHungTasks(t)
	}
	for {
		time.Sleep(time.Hour)
		kept[0]++
	}
}
