package testvm

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"stackshot/internal/testneed"
	"stackshot/internal/testvm/wire"
)

// A guest is driven from outside by everything there is.
func TestDrive(t *testing.T) {
	testneed.Guests(t)
	k := requireVM(t, "amd64", "6.12")
	g, kinds, dir := startVictim(t, Config{Kernel: k, Append: "sysrq_always_enabled", Reboot: true, Limit: 4 * time.Minute}, "hang")
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	await := func(what string, err error, line string) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		got, err := g.WaitLine(ctx, regexp.MustCompile(line))
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		t.Logf("%s: %s", what, got)
	}
	awaitFrame(ctx, t, kinds, wire.Output)
	await("keys", g.SendKeys("alt", "sysrq", "h"), `sysrq: HELP`)
	await("break", g.SerialBreak("h"), `sysrq: HELP`)
	await("NMI", g.NMI(), `NMI received`)
	dump := filepath.Join(dir, "core")
	if err := g.DumpMemory(dump); err != nil {
		t.Fatal(err)
	}
	if st, err := os.Stat(dump); err != nil || st.Size() < 1<<30 {
		t.Errorf("dump of 1 GiB: %v, %v", st, err)
	}
	if err := g.Reset(); err != nil {
		t.Fatal(err)
	}
	if err := g.Event(ctx, "RESET"); err != nil {
		t.Fatal(err)
	}
	awaitFrame(ctx, t, kinds, wire.Hello)
	g.Close()
	if _, err := g.WaitLine(ctx, regexp.MustCompile(`never printed`)); err == nil {
		t.Error("a line that was never printed was found")
	}
	if err := g.NMI(); err == nil {
		t.Error("a guest that has ended took an NMI")
	}
}

// startVictim boots one and returns the kinds of its frames as they come.
func startVictim(t *testing.T, c Config, end string) (*Guest, <-chan byte, string) {
	t.Helper()
	kinds := make(chan byte, 1000)
	c.LogDir, c.OnFrame = t.TempDir(), func(f wire.Frame) { kinds <- f.Kind }
	c.Initrd = filepath.Join(c.LogDir, "initrd")
	test := Test{Package: "internal/testvm", Env: []string{victimVar + "=" + end}, Guest: c}
	if err := builder(t).Initrd(t.Context(), &test, c.Initrd); err != nil {
		t.Fatal(err)
	}
	g, err := Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	return g, kinds, c.LogDir
}

func awaitFrame(ctx context.Context, t *testing.T, kinds <-chan byte, want byte) {
	t.Helper()
	for {
		select {
		case k := <-kinds:
			if k == want {
				return
			}
		case <-ctx.Done():
			t.Fatalf("no frame %q: %v", want, ctx.Err())
		}
	}
}
