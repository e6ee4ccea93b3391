package arm

import (
	"encoding/base64"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	"stackshot/internal/bpf"
	"stackshot/internal/testneed"
	"stackshot/internal/testtask"
)

const (
	panicVar   = "STACKSHOT_ARM_PANIC" // the death of a guest
	actorCount = 2000                  // threads that stand there when it comes
)

// armBuffer is for arm64's crowd, bytes: its threads share their maker's stack and have no chain of frame pointers, so
// up to 24 KiB of it are taken for each. By default there is room for a fifth of that.
const armBuffer = 64 << 20

// wireSlow is when what was printed has left the guest.
const wireSlow = 2 * time.Second

// TestInsidePanic is the inner half of TestPanic: a guest with a crowd of known threads is armed, and dies.
func TestInsidePanic(t *testing.T) {
	testneed.Guests(t)
	d := deathNamed(os.Getenv(panicVar))
	if d == nil {
		t.Skip("the inner half of TestPanic: kills its kernel")
	}
	f := testtask.Start(t, testtask.Crowd(actorCount)...)
	o := Options{Sysrq: true, Panic: true, UserStacks: bpf.UserAuto, Wait: true, Version: "armed"}
	if runtime.GOARCH == "arm64" {
		o.Buffer = armBuffer
	}
	a := armed(t, o)
	if err := a.refresh(); err != nil {
		t.Fatal(err)
	}
	fmt.Println()
	for _, h := range a.Hooks {
		fmt.Printf("HOOK %s %s/%s, %d instructions, %v, %v\n", h.Event, h.By, h.Function, h.Verified, h.Load, h.Err)
	}
	console, err := os.OpenFile("/dev/console", os.O_WRONLY, 0)
	if err == nil {
		err = f.Announce(console)
	}
	if err != nil {
		t.Fatal(err)
	}
	for part := range slices.Chunk(a.FramesFile(), 512) { // long lines would be cut
		fmt.Println("FRAMES " + base64.StdEncoding.EncodeToString(part))
	}
	fmt.Printf("REGION %d bytes for %d threads\n", a.Bytes(), a.Threads)
	if d.inside != nil {
		d.inside(t, a)
	}
	fmt.Printf("READY %x\n", addressOf(t, d.function))
	time.Sleep(wireSlow)
	if d.die != nil {
		d.die(t, a)
	}
	time.Sleep(time.Hour)
	runtime.KeepAlive(a)
}

// addressOf is where a kernel function begins; of none it is 0.
func addressOf(t *testing.T, function string) uint64 {
	if function == "" {
		return 0
	}
	symbols, err := os.ReadFile("/proc/kallsyms")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^([0-9a-f]+) [tT] ` + function + `$`).FindSubmatch(symbols)
	if m == nil {
		t.Fatal("no function ", function)
	}
	addr, err := strconv.ParseUint(string(m[1]), 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	return addr
}
