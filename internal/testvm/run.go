package testvm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"stackshot/internal/testneed"
	"stackshot/internal/testvm/wire"
)

// Test is one run of a package's test binary in a guest.
type Test struct {
	Package string   // folder in the repository: snapshot
	Args    []string // as for go test: -run TestX -v
	Env     []string // more for the environment
	// Factor is how much longer than on a real machine the tests may take:
	// STACKSHOT_TIME_FACTOR in the guest. 0: by the guest's CPUs and the host's.
	Factor int
	// Silence is how long the program may write nothing before it counts as
	// hung; 0: as long as the guest's limit.
	Silence time.Duration

	Guest  Config    // Initrd and OnFrame are Run's
	Output io.Writer // gets the test's output as it comes; may be nil
	OutDir string    // gets the files of the guest's /out; empty: they are dropped
}

// Factors of a guest whose CPUs always find a real one, and of one whose CPUs
// take turns, with each other or with other work of the host: then the last of
// them waits for several turns, of milliseconds each, before it does what takes
// a microsecond.
const (
	aloneFactor  = 8
	sharedFactor = 1000
)

// factor is the test's own or what suits the guest.
func (t *Test) factor(hostCPUs int) int {
	switch {
	case t.Factor != 0:
		return t.Factor
	case 2*t.Guest.cpus() > hostCPUs && t.Guest.cpus() > 1:
		return sharedFactor
	}
	return aloneFactor
}

// Run runs a test in a guest, and once more if the first attempt came to nothing
// (Result.Flaked). The error is of the host: no QEMU, a build that fails. What
// the guest did is in the Result.
func Run(ctx context.Context, b *Builder, t Test) (*Result, error) {
	dir := t.Guest.LogDir
	for attempt := 1; ; attempt++ {
		t.Guest.LogDir = filepath.Join(dir, strconv.Itoa(attempt))
		if err := os.MkdirAll(t.Guest.LogDir, 0o755); err != nil {
			return nil, err
		}
		r, err := runOnce(ctx, b, t)
		if err != nil {
			return nil, err
		}
		r.Attempts = attempt
		err = os.WriteFile(filepath.Join(t.Guest.LogDir, "result.txt"), []byte(r.String()+"\n"), 0o644)
		if attempt == 2 || !r.Flaked() || ctx.Err() != nil {
			return r, errors.Join(err, ctx.Err())
		}
		if t.Output != nil {
			fmt.Fprintf(t.Output, "vmtest: %v: once more\n", r)
		}
	}
}

func runOnce(ctx context.Context, b *Builder, t Test) (*Result, error) {
	t.Guest.Initrd = filepath.Join(t.Guest.LogDir, "initrd")
	if err := b.Initrd(ctx, &t, t.Guest.Initrd); err != nil {
		return nil, err
	}
	defer os.Remove(t.Guest.Initrd)
	rec, err := newRecorder(&t)
	if err != nil {
		return nil, err
	}
	defer rec.close()
	t.Guest.OnFrame = rec.frame
	began := time.Now()
	g, err := Start(ctx, t.Guest)
	if err != nil {
		return nil, err
	}
	defer g.Close()
	rec.await(ctx, g)
	g.Close()
	r := rec.result(g)
	r.Took, r.LogDir = time.Since(began), t.Guest.LogDir
	return r, rec.err
}

// job is what the guest is told to do.
func (t *Test) job(e emulator) *wire.Job {
	dir := filepath.Join(wire.RepoDir, t.Package)
	args := append([]string{filepath.Join(dir, filepath.Base(t.Package)+".test"),
		"-test.v=true", "-test.paniconexit0", "-test.outputdir=" + wire.OutDir}, testArgs(t.Args)...)
	requireBPF := 1
	if t.Guest.Layout.NoBPF {
		requireBPF = 0
	}
	return &wire.Job{
		Args: args,
		Dir:  dir,
		Env: append([]string{
			"PATH=/bin", "HOME=/root", "TMPDIR=/tmp",
			testneed.GuestVar + "=1",
			testneed.LongVar + "=" + os.Getenv(testneed.LongVar),
			"STACKSHOT_REQUIRE_BPF=" + strconv.Itoa(requireBPF),
			"STACKSHOT_TIME_FACTOR=" + strconv.Itoa(t.factor(runtime.NumCPU())),
		}, t.Env...),
		Wire:  e.wire,
		Setup: t.Guest.Layout.Setup,
	}
}

// goTestFlags are go test's names for flags of a test binary.
var goTestFlags = map[string]bool{}

func init() {
	for _, name := range strings.Fields(`artifacts bench benchmem benchtime blockprofile blockprofilerate count coverprofile cpu cpuprofile
		failfast fullpath fuzz fuzzminimizetime fuzztime list memprofile memprofilerate mutexprofile mutexprofilefraction
		outputdir parallel run short shuffle skip timeout trace v`) {
		goTestFlags[name] = true
	}
}

// testArgs turns go test's flags into the test binary's: -run X is -test.run X.
// A flag that go test does not know is the test's own and stays.
func testArgs(args []string) []string {
	var out []string
	for i, arg := range args {
		if arg == "-args" || arg == "--args" {
			return append(out, args[i+1:]...)
		}
		bare := strings.TrimLeft(arg, "-")
		if name, _, _ := strings.Cut(bare, "="); bare != arg && goTestFlags[name] {
			arg = "-test." + bare
		}
		out = append(out, arg)
	}
	return out
}
