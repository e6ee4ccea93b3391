package arm

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"stackshot/internal/extract"
	"stackshot/internal/panicregion"
	"stackshot/internal/testneed"
	"stackshot/internal/testtask"
	"stackshot/internal/testvm"
)

// A machine of 2,000 known threads is armed and dies, in every way that there is. QEMU dumps it, and each
// thread is in the file once, with its state and its kernel stack. In short each way is tried on one kernel.
func TestPanic(t *testing.T) {
	testneed.Guests(t)
	b := guestBuilder(t)
	for i := range deaths {
		d := &deaths[i]
		for _, m := range testneed.Length(d.short, d.long) {
			t.Run(strings.ReplaceAll(d.name+" "+m.String(), " ", "-"), func(t *testing.T) { dies(t, b, d, m) })
		}
	}
}

// built has the programs of guests, for all tests of this package; "": none boots one. TestMain removes it.
var built string

// guestBuilder is for one test at a time.
func guestBuilder(t *testing.T) *testvm.Builder {
	t.Helper()
	if testneed.Guest() {
		t.Skip("it boots guests, and this is one")
	}
	repo, err := testvm.Repo(".")
	if err != nil {
		t.Fatal(err)
	}
	if built == "" {
		if built, err = os.MkdirTemp("", "arm-guests-"); err != nil {
			t.Fatal(err)
		}
	}
	return &testvm.Builder{Repo: repo, Dir: built}
}

// kernelOf is the kernel of a guest.
type kernelOf struct{ arch, track string }

func (m kernelOf) String() string { return m.track + " " + m.arch }

func (m kernelOf) kernel(t *testing.T) testvm.Kernel {
	t.Helper()
	cache, err := testvm.CacheDir()
	if err != nil {
		t.Fatal(err)
	}
	k, err := testvm.FindKernel(cache, m.arch, m.track)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// guestLimit is for all of a guest's life.
const guestLimit = 8 * time.Minute

// dies has a guest die, and judges what its memory holds.
func dies(t *testing.T, b *testvm.Builder, d *death, m kernelOf) {
	ctx, cancel := context.WithTimeout(t.Context(), guestLimit)
	defer cancel()
	dir, start := t.TempDir(), time.Now()
	g := drive(ctx, t, b, d, testvm.Config{Kernel: m.kernel(t), CPUs: 2, Memory: 1024, LogDir: dir, Limit: guestLimit, Append: "panic=0 sysrq_always_enabled " + d.append})
	began, err := bringAbout(ctx, d, g)
	if err == nil {
		_, err = g.WaitLine(ctx, regexp.MustCompile(`end Kernel panic`))
	}
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, strings.Join(tail(g.Program.Lines()), "\n"), strings.Join(tail(g.Console()), "\n"))
	}
	t.Logf("all announced after %.1f s; from the cause to the end of the panic %.2f s", began.Sub(start).Seconds(), time.Since(began).Seconds())
	for _, line := range g.Program.Lines() {
		if strings.HasPrefix(line, "HOOK ") || strings.HasPrefix(line, "REGION ") {
			t.Log(line)
		}
	}
	actors, err := testtask.ReadActors(g.Console())
	if err != nil || len(actors) < actorCount {
		t.Fatal(len(actors), err)
	}
	frames := framesFile(t, g.Program.Lines())
	elf, packed := filepath.Join(dir, "elf"), filepath.Join(dir, "zlib")
	if err := g.DumpMemory(elf); err != nil {
		t.Fatal(err)
	}
	if d.packed {
		if err := g.DumpMemoryAs(packed, testvm.DumpZlib); err != nil {
			t.Fatal(err)
		}
	}
	g.Close()
	core := openCore(t, elf)
	file := foundIn(t, core)
	judge(t, file, d, actors)
	listed, err := extract.FromFrames(core, frames)
	if err != nil {
		t.Fatal(err)
	}
	if other := fileOf(t, listed); !bytes.Equal(file, other) {
		t.Errorf("by a search %d bytes, by the list of frames %d", len(file), len(other))
	}
	if d.packed {
		if other := foundIn(t, openCore(t, packed)); !bytes.Equal(file, other) {
			t.Errorf("of the ELF dump %d bytes, of the compressed one %d", len(file), len(other))
		}
	}
}

// tail is the end of what a guest said.
func tail(lines []string) []string {
	lines = slices.DeleteFunc(slices.Clone(lines), func(s string) bool { return strings.HasPrefix(s, "FRAMES ") || strings.HasPrefix(s, "ACTORS ") })
	return lines[max(0, len(lines)-40):]
}

// drive boots a guest in which TestInsidePanic runs.
func drive(ctx context.Context, t *testing.T, b *testvm.Builder, d *death, c testvm.Config) *testvm.Driven {
	t.Helper()
	g, err := testvm.Drive(ctx, b, testvm.Test{
		Package: "internal/arm", Args: []string{"-test.run", "^TestInsidePanic$", "-test.v"}, Env: []string{panicVar + "=" + d.name}, Guest: c,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	return g
}

// bringAbout waits until all is announced, and does what is to be done from outside. began is when.
func bringAbout(ctx context.Context, d *death, g *testvm.Driven) (began time.Time, err error) {
	line, err := g.Program.WaitLine(ctx, regexp.MustCompile(`^READY |^--- FAIL`))
	if err == nil && strings.HasPrefix(line, "---") {
		err = fmt.Errorf("the inner half: %s", line)
	}
	if err != nil {
		return began, err
	}
	began = time.Now()
	if d.outside == nil {
		return began.Add(wireSlow), nil // about: the guest's clock is not ours
	}
	addr, err := strconv.ParseUint(strings.TrimPrefix(line, "READY "), 16, 64)
	if err == nil {
		_, err = g.WaitLine(ctx, regexp.MustCompile(`^ACTORS READY`))
	}
	if err == nil {
		began = time.Now()
		err = d.outside(ctx, g, addr)
	}
	return began, err
}

// framesFile is the frames file as the inner half printed it.
func framesFile(t *testing.T, lines []string) (file []byte) {
	t.Helper()
	for _, line := range lines {
		if text, ok := strings.CutPrefix(line, "FRAMES "); ok {
			part, err := base64.StdEncoding.DecodeString(text)
			if err != nil {
				t.Fatal(err)
			}
			file = append(file, part...)
		}
	}
	if len(file) == 0 || len(file)%panicregion.PageSize != 0 {
		t.Fatalf("frames file of %d bytes", len(file))
	}
	return file
}
