package arm

import (
	"context"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"stackshot/internal/testneed"
	"stackshot/internal/testtask"
	"stackshot/internal/testvm"
	"stackshot/kcdata"
)

// extractMost is what `stackshot extract` may have resident in a capture kernel, bytes.
const extractMost = 64 << 20

// A machine with a capture kernel is armed and dies. The capture kernel runs `stackshot extract`, as kdump-tools
// would, and the file has every thread. An oops goes there without any panic(), and so without a message.
func TestExtractInCaptureKernel(t *testing.T) {
	testneed.Guests(t)
	b := guestBuilder(t)
	type row struct {
		death, message string
		kernelOf
	}
	hung := row{"hung-task", `^hung_task: blocked tasks$`, linux612}
	all := []row{hung}
	for _, k := range amd64 {
		all = append(all, row{"c", `^sysrq triggered crash$`, k}, row{"oops", `^$`, k})
	}
	for _, r := range testneed.Length(all[:1], all) {
		t.Run(strings.ReplaceAll(r.death+" "+r.String(), " ", "-"), func(t *testing.T) {
			d := *deathNamed(r.death)
			d.message = r.message
			extractsInCaptureKernel(t, b, &d, r.kernelOf)
		})
	}
}

func extractsInCaptureKernel(t *testing.T, b *testvm.Builder, d *death, k kernelOf) {
	ctx, cancel := context.WithTimeout(t.Context(), guestLimit)
	defer cancel()
	program, err := b.Program(ctx, "cmd/stackshot", k.arch)
	if err != nil {
		t.Fatal(err)
	}
	g := drive(ctx, t, b, d, testvm.Config{
		Kernel: k.kernel(t), CPUs: 2, Memory: 1024, LogDir: t.TempDir(), Limit: guestLimit, Append: "sysrq_always_enabled",
		Capture: &testvm.Capture{Program: program, Args: []string{"extract", "/proc/vmcore", "-o", "/out/file"}},
	})
	began, err := bringAbout(ctx, d, g)
	if err == nil && d.cause == kcdata.PanicByPanic {
		_, err = g.WaitLine(ctx, regexp.MustCompile(`Kernel panic`))
	}
	code := -1
	if err == nil {
		code, err = g.Capture.Wait(ctx)
	}
	text := strings.Join(g.Capture.Lines(), "\n")
	if err != nil || code != 0 {
		t.Fatalf("exit code %d, %v\n%s\n%s\n%s", code, err, text, strings.Join(tail(g.Program.Lines()), "\n"), strings.Join(tail(g.Console()), "\n"))
	}
	peak, took := g.Capture.Used()
	t.Logf("%s\n%v from the cause to the file; extract ran %v and had %d MiB resident at most", text, time.Since(began), took, peak>>20)
	if peak == 0 || peak > extractMost {
		t.Errorf("extract had %d bytes resident", peak)
	}
	actors, err := testtask.ReadActors(g.Console())
	if err != nil || len(actors) < actorCount {
		t.Fatal(len(actors), err)
	}
	name, err := g.Capture.File("file")
	if err != nil {
		t.Fatal(err)
	}
	packed, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	file, _, err := kcdata.Unwrap(packed, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	judge(t, file, d, actors)
}
