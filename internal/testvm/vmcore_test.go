package testvm

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"stackshot/internal/testneed"
	"stackshot/internal/vmcore"
)

// The formats that QEMU and makedumpfile write hold the same memory, as package vmcore reads it.
func TestDumpsHoldTheSame(t *testing.T) {
	testneed.Guests(t)
	for arch, modules := range map[string][]string{"amd64": {"qemu_fw_cfg"}, "arm64": nil} {
		t.Run(arch, func(t *testing.T) {
			k := requireVM(t, arch, "6.12")
			dir := t.TempDir()
			plain, packed := dumpBoth(t, k, modules, dir)
			whole := openCore(t, plain)
			n := heldBy(t, whole, openCore(t, packed))
			if n.Absent != 0 || n.Pages < 1<<30/4096 {
				t.Errorf("QEMU leaves out pages of 1 GiB: %+v", n)
			}
			if arch == "amd64" {
				byMakedumpfile(t, whole, plain, dir)
			}
		})
	}
}

// dumpBoth boots a guest and dumps its memory in both formats.
func dumpBoth(t *testing.T, k Kernel, modules []string, dir string) (plain, packed string) {
	d, err := Drive(t.Context(), builder(t), Test{Package: "internal/testvm", Env: []string{victimVar + "=hang"},
		Guest: Config{Kernel: k, LogDir: t.TempDir(), Modules: modules, VMCoreInfo: len(modules) > 0}})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	if _, err := d.Program.WaitLine(ctx, regexp.MustCompile("TestVictim")); err != nil {
		t.Fatal(err)
	}
	if err := d.Pause(); err != nil {
		t.Fatal(err)
	}
	plain, packed = filepath.Join(dir, "elf"), filepath.Join(dir, "zlib")
	if err := d.DumpMemory(plain); err != nil {
		t.Fatal(err)
	}
	if err := d.DumpFlattened(packed+".flat", DumpZlib); err != nil {
		t.Fatal(err)
	}
	if c, err := vmcore.Open(packed + ".flat"); err == nil || !strings.Contains(err.Error(), "makedumpfile -R OUT < ") {
		t.Errorf("flattened: %v, %v", c, err)
	}
	if err := Unflatten(packed+".flat", packed); err != nil {
		t.Fatal(err)
	}
	return plain, packed
}

func openCore(t *testing.T, path string) *vmcore.Core {
	t.Helper()
	c, err := vmcore.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if len(c.Flaws()) > 0 {
		t.Errorf("%s: %v", path, c.Flaws())
	}
	return c
}

// heldBy holds every page of a dump against the one that has all.
func heldBy(t *testing.T, whole, c *vmcore.Core) vmcore.Tally {
	t.Helper()
	buf := make([]byte, vmcore.RunSize)
	start := time.Now()
	n, err := c.Pages(func(pa uint64, run []byte) error {
		if err := whole.ReadPhys(buf[:len(run)], pa); err != nil {
			return err
		}
		if !bytes.Equal(run, buf[:len(run)]) {
			return fmt.Errorf("%d bytes at %#x differ", len(run), pa)
		}
		return nil
	})
	if err != nil || n.Damaged != 0 {
		t.Errorf("%+v, %v", n, err)
	}
	if c.Arch() != whole.Arch() || c.CPUs() != whole.CPUs() || !maps.Equal(c.Info(), whole.Info()) {
		t.Errorf("%s with %d CPUs, vmcoreinfo %v", c.Arch(), c.CPUs(), c.Info())
	}
	t.Logf("%s: %+v in %v", c.Format(), n, time.Since(start))
	return n
}

// byMakedumpfile converts a dump as operators do. Level 31 leaves out what is zero, cached, the user's or free.
func byMakedumpfile(t *testing.T, whole *vmcore.Core, plain, dir string) {
	testneed.Program(t, "makedumpfile")
	if whole.Info()["OSRELEASE"] == "" {
		t.Fatal("no vmcoreinfo in the dump")
	}
	headersInFront(t, plain)
	convert := func(from, to string, args ...string) string {
		to = filepath.Join(dir, to)
		if out, err := exec.Command("makedumpfile", append(args, from, to)...).CombinedOutput(); err != nil {
			t.Fatalf("makedumpfile %v: %v\n%s", args, err, out[max(0, len(out)-1000):])
		}
		return to
	}
	tallies := map[string]vmcore.Tally{}
	for name, args := range map[string][]string{"c1": {"-c", "-d", "1"}, "c31": {"-c", "-d", "31"}, "E1": {"-E", "-d", "1"}, "E31": {"-E", "-d", "31"}} {
		n := heldBy(t, whole, openCore(t, convert(plain, name, args...)))
		if tallies[name] = n; n.Pages < 1000 || n.Pages+n.Absent < 1<<30/4096 {
			t.Errorf("%v: %+v", args, n)
		}
	}
	// Files of kdump's format have the pages of zeros, ELF cores do not.
	if a := tallies; a["E31"].Pages >= a["E1"].Pages || a["c31"].Pages >= a["c1"].Pages || a["E1"].Pages > a["c1"].Pages {
		t.Errorf("%+v", tallies)
	}
	lzo := convert(plain, "l31", "-l", "-d", "31")
	if _, err := vmcore.Open(lzo); err == nil || !strings.Contains(err.Error(), "makedumpfile -c "+lzo) {
		t.Errorf("lzo: %v", err)
	}
	if n := heldBy(t, whole, openCore(t, convert(lzo, "c", "-c"))); n != tallies["c31"] {
		t.Errorf("converted from lzo: %+v", n)
	}
}

// headersInFront moves the program headers of a dump to where makedumpfile 1.7.2 looks for them, right behind
// the ELF header, whatever e_phoff says. QEMU 7.2 puts the section headers there.
func headersInFront(t *testing.T, path string) {
	t.Helper()
	b := make([]byte, 4096)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.ReadAt(b, 0); err != nil {
		t.Fatal(err)
	}
	le := binary.LittleEndian
	off, size := le.Uint64(b[32:]), 56*uint64(le.Uint16(b[56:]))
	h := slices.Concat(b[:64], b[off:off+size])
	le.PutUint64(h[32:], 64)
	clear(h[40:48])
	clear(h[58:64])
	if _, err := f.WriteAt(h, 0); err != nil {
		t.Fatal(err)
	}
}

// A capture kernel reads the memory of the kernel that died.
func TestVmcoreInCaptureKernel(t *testing.T) {
	testneed.Guests(t)
	k := requireVM(t, "amd64", "6.12")
	b := builder(t)
	tests, err := b.TestBinary(t.Context(), "internal/vmcore", "amd64")
	if err != nil {
		t.Fatal(err)
	}
	d, err := Drive(t.Context(), b, Test{Package: "internal/testvm", Env: []string{victimVar + "=hang"},
		Guest: Config{Kernel: k, LogDir: t.TempDir(), Append: "sysrq_always_enabled",
			Capture: &Capture{Program: tests, Args: []string{"-test.run", "^TestProcVmcore$", "-test.v"}}}})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	if _, err := d.Program.WaitLine(ctx, regexp.MustCompile("TestVictim")); err != nil {
		t.Fatal(err)
	}
	if err := d.SendKeys("alt", "sysrq", "c"); err != nil {
		t.Fatal(err)
	}
	code, err := d.Capture.Wait(ctx)
	text := strings.Join(d.Capture.Lines(), "\n")
	if err != nil || code != 0 || !strings.Contains(text, "--- PASS: TestProcVmcore") {
		t.Errorf("exit code %d, %v\n%s", code, err, text)
	}
	t.Log(text)
}
