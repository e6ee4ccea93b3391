package bpf

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"stackshot/internal/bpf/bpftest"
	"stackshot/internal/testneed"
	"stackshot/kcdata"
)

// The verifier walks a million instructions at most. Kernels that walk more of
// them than those tried have at least three quarters of that left. 6.12's walks the most.
func mostInstructions(t *testing.T) uint32 {
	t.Helper()
	if major, minor := kernelRelease(t); major == 6 && minor == 12 {
		return 250_000
	}
	return 200_000
}

func kernelRelease(t *testing.T) (major, minor int) {
	t.Helper()
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Sscanf(unix.ByteSliceToString(u.Release[:]), "%d.%d", &major, &minor); err != nil {
		t.Fatal(err)
	}
	return major, minor
}

// mustLoad ends a test whose objects did not load: as a failure, unless this kernel
// or our rights cannot have them and nothing says that they must.
func mustLoad(tb testing.TB, err error) {
	tb.Helper()
	if errors.Is(err, ErrUnsupported) && !testneed.All() {
		tb.Skip(err)
	}
	if err != nil {
		tb.Fatal(err)
	}
}

// Every program of every object loads, or its kernel lacks what it asks for,
// and is verified in few instructions. The counts are part of the test's output
// even where it passes.
func TestInstructionCounts(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	o, err := Load(Config{CPUs: 2, SelfTgid: uint32(os.Getpid()), Latency: 2, User: userAnywhere, Waits: waitsAnywhere})
	mustLoad(t, err)
	defer o.Close()
	for _, m := range o.Missing {
		t.Errorf("program %s: %v", m.Program, m.Why)
	}
	t.Run("object", func(t *testing.T) { countObject(t, o) })
	t.Run("probeObject", countProbes)
	t.Run("mapObject", countMapObject)
	t.Run("endsObject", func(t *testing.T) { countAll(t, newPass(t).coll.Programs) })
	t.Run("trapObject", func(t *testing.T) { countTrap(t, o) })
	for _, k := range []bpftest.Knobs{{AllMaps: true, NoFields: true, StaleTid: 1}, {Floor: true}} {
		t.Run(fmt.Sprintf("%+v", k), func(t *testing.T) {
			o, err := Load(Config{CPUs: 2, SelfTgid: uint32(os.Getpid()), Latency: 2, User: userAnywhere, Waits: waitsAnywhere, Specs: k})
			if err != nil {
				t.Fatal(err)
			}
			defer o.Close()
			countObject(t, o)
			countTrap(t, o)
		})
	}
}

func countObject(t *testing.T, o *Objects) {
	countAll(t, o.coll.Programs)
	p, err := o.LoadPull()
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for _, m := range p.Missing {
		t.Errorf("program %s: %v", m.Program, m.Why)
	}
	countAll(t, p.coll.Programs)
}

func countTrap(t *testing.T, o *Objects) {
	requireTrap(t)
	tr, err := o.LoadTrap(TrapConfig{Bytes: 16 << 20, Items: 65536})
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	countAll(t, tr.coll.Programs)
}

// userAnywhere has the programs with all that they do, over a map that nobody
// verified: they are loaded and never run.
var userAnywhere = UserStacks{Mode: UserAuto, Frames: MaxUserFrames, Bytes: 16 << 10, Memory: &DirectMap{
	Base: 0xffff_8880_0000_0000, TopShift: 39, VABits: 47, RAM: []RAMRange{{0x1000, 0x9f000}, {0x10_0000, 1 << 32}},
}}

// waitsAnywhere has them scan stacks, too, for paths where no kernel has any.
var waitsAnywhere = Waits{On: true, Words: true, Slow: []SlowPath{
	{0xffff_ffff_8100_0000, 0xffff_ffff_8100_0800, kcdata.LockMutex}, {0xffff_ffff_8100_1000, 0xffff_ffff_8100_1400, kcdata.LockRWSemRead},
	{0xffff_ffff_8100_1400, 0xffff_ffff_8100_1800, kcdata.LockRWSemWrite}, {0xffff_ffff_8100_2000, 0xffff_ffff_8100_2200, kcdata.LockSemaphore},
}}

func countMapObject(t *testing.T) {
	for _, name := range []string{"peek_words", "walk_pages"} {
		k, err := newAsker(name, userAnywhere.Memory)
		if err != nil {
			t.Error(err)
			continue
		}
		defer k.close()
		countAll(t, k.coll.Programs)
	}
}

func countProbes(t *testing.T) {
	spec, err := loadProbeObject()
	if err != nil {
		t.Fatal(err)
	}
	loaded := map[string]*ebpf.Program{}
	for i := range probes {
		p := &probes[i]
		if answer := p.ask(); answer.Err != nil {
			if !answer.Lacks() {
				t.Errorf("%s: %v", p.program, answer)
			}
			continue
		}
		prog, err := ebpf.NewProgram(spec.Programs[p.program])
		if err != nil {
			t.Errorf("%s: %v", p.program, err)
			continue
		}
		defer prog.Close()
		loaded[p.program] = prog
	}
	countAll(t, loaded)
}

func countAll(t *testing.T, programs map[string]*ebpf.Program) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(programs)) {
		n := instructions(t, programs[name])
		t.Logf("%s: %d instructions verified", name, n)
		if most := mostInstructions(t); n > most {
			t.Errorf("%s: %d instructions verified, more than %d", name, n, most)
		}
	}
}

// instructions is how many the verifier walked; the kernel has told since 5.16.
func instructions(t *testing.T, p *ebpf.Program) uint32 {
	t.Helper()
	info, err := p.Info()
	if err != nil {
		t.Fatal(err)
	}
	n, ok := info.VerifiedInstructions()
	if !ok {
		t.Fatal("the kernel does not say how many instructions it verified")
	}
	return n
}
