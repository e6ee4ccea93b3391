package arm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"stackshot/internal/bpf"
	"stackshot/internal/panicregion"
	"stackshot/internal/testneed"
	"stackshot/internal/testvm"
)

// armed arms the machine for a test, and skips the test where nothing can be hooked that records.
func armed(t testing.TB, o Options) *Armed {
	t.Helper()
	testneed.Root(t)
	o.Key, o.Pause = DefaultKey, MaxPause
	o.lockPath = t.TempDir() + "/armed" // other packages' tests arm at the same time
	a, err := Open(o)
	if errors.Is(err, bpf.ErrUnsupported) || err == nil && !a.Walks() {
		testneed.Hooks(t, err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	return a
}

const keysVar = "STACKSHOT_ARM_KEYS"

// keySteps are what the outer half of TestKeys does, and what the inner half must see of it.
var keySteps = []struct {
	name    string
	mask    string // kernel.sysrq
	press   func(d *testvm.Driven) error
	refused bool
}{
	{"keyboard-refused", "438", keyboard, true}, // Debian's default: all but dumps
	{"serial-refused", "438", serial, true},
	{"keyboard", "8", keyboard, false},
	{"serial", "1", serial, false},
}

func keyboard(d *testvm.Driven) error { return d.SendKeys("alt", "sysrq", string(rune(DefaultKey))) }
func serial(d *testvm.Driven) error   { return d.SerialBreak(string(rune(DefaultKey))) }

// TestInsideKeys is the inner half of TestKeys.
func TestInsideKeys(t *testing.T) {
	testneed.Guests(t)
	if os.Getenv(keysVar) == "" {
		t.Skip("the inner half of TestKeys: somebody outside presses keys")
	}
	a := armed(t, Options{Sysrq: true, UserStacks: bpf.UserAuto, Wait: true})
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	for _, s := range keySteps {
		if err := os.WriteFile("/proc/sys/kernel/sysrq", []byte(s.mask), 0); err != nil {
			t.Fatal(err)
		}
		for fmt.Sprint(a.Mask()) != s.mask { // it is seen within a second
			if _, err := nextBy(ctx, a, time.Second); err != nil {
				t.Fatal(err)
			}
		}
		refused := a.Tally().Refused
		fmt.Println("\nPRESS " + s.name)
		for {
			e, err := nextBy(ctx, a, time.Second)
			if err != nil {
				t.Fatalf("%s: %v", s.name, err)
			}
			if e.Image != nil {
				if w, err := panicregion.ReadWalk(e.Image.Region); err != nil || w.Checked == 0 || w.Key != DefaultKey || w.Outcome != panicregion.Whole || s.refused {
					t.Errorf("%s: %+v, %v", s.name, w, err)
				}
				e.Image.Free()
				break
			}
			if a.Tally().Refused > refused {
				if !s.refused {
					t.Errorf("%s is refused", s.name)
				}
				break
			}
		}
	}
	fmt.Println("\nKEYS DONE")
}

// nextBy is Next for a while; an event without anything if nothing comes.
func nextBy(ctx context.Context, a *Armed, limit time.Duration) (Event, error) {
	some, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	e, err := a.Next(some)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		err = nil
	}
	return e, err
}

// A key of a keyboard and one of a serial line, in hard interrupts: recorded where kernel.sysrq lets
// it, counted where not.
func TestKeys(t *testing.T) {
	testneed.Guests(t)
	b := guestBuilder(t)
	for _, track := range testneed.Length([]string{"6.12", "newest"}, []string{"6.12", "newest", "6.18"}) {
		t.Run(track, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), 8*time.Minute)
			defer cancel()
			d, err := testvm.Drive(ctx, b, testvm.Test{
				Package: "internal/arm", Args: []string{"-test.run", "^TestInsideKeys$", "-test.v"}, Env: []string{keysVar + "=1", "STACKSHOT_REQUIRE_BPF=1"},
				Guest: testvm.Config{Kernel: kernelOf{"amd64", track}.kernel(t), CPUs: 2, Memory: 1024, LogDir: filepath.Join(b.Repo, ".testvm", "arm-keys-"+track), Limit: 8 * time.Minute},
			})
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			for _, s := range keySteps {
				if _, err := d.Program.WaitLine(ctx, regexp.MustCompile("^PRESS "+s.name+"$")); err != nil {
					t.Fatalf("%s: %v\n%s", s.name, err, strings.Join(d.Program.Lines(), "\n"))
				}
				if err := s.press(d); err != nil {
					t.Fatal(err)
				}
			}
			code, err := d.Program.Wait(ctx)
			if err != nil || code != 0 {
				t.Errorf("exit code %d, %v:\n%s", code, err, strings.Join(d.Program.Lines(), "\n"))
			}
		})
	}
}
