package vmcore

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stackshot/internal/testneed"
)

// In a capture kernel, /proc/vmcore is read: each page once, and the dead kernel's name where its symbol table
// says that it lies. It is the kernel that runs the test, too. internal/testvm boots one.
func TestProcVmcore(t *testing.T) {
	testneed.Guests(t)
	const path = "/proc/vmcore"
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		t.Skip("needs a capture kernel (/proc/vmcore)")
	}
	before := peak(t)
	c, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		t.Fatal(err)
	}
	release, machine := unix.ByteSliceToString(u.Release[:]), unix.ByteSliceToString(u.Machine[:])
	i := c.Info()
	if i["OSRELEASE"] != release || i["CRASHTIME"] == "" || c.CPUs() == 0 || c.Arch() != "amd64" || machine != "x86_64" || len(c.Flaws()) > 0 {
		t.Errorf("%s, %d CPUs, %v, flaws %v", c.Arch(), c.CPUs(), i, c.Flaws())
	}
	uts := make([]byte, 4096)
	if err := c.ReadPhys(uts, physOf(t, i, "init_uts_ns")); err != nil || !bytes.Contains(uts, []byte(release+"\x00")) {
		t.Errorf("init_uts_ns: %v", err)
	}
	start, buf, runs := time.Now(), make([]byte, RunSize), 0
	n, err := c.Pages(func(pa uint64, run []byte) error {
		if runs++; runs%16 == 0 {
			if err := c.ReadPhys(buf[:len(run)], pa); err != nil || !bytes.Equal(run, buf[:len(run)]) {
				t.Errorf("run of %d bytes at %#x differs: %v", len(run), pa, err)
			}
		}
		return nil
	})
	took := time.Since(start)
	if err != nil || n.Damaged != 0 || n.Pages*4096 < 500<<20 {
		t.Errorf("%+v, %v", n, err)
	}
	if got := peak(t); got > memoryLimit {
		t.Errorf("took %d MiB, %d before", got>>20, before>>20)
	} else {
		t.Logf("%+v in %v (%.0f MB/s), %d MiB, %d before", n, took, float64(n.Pages*4096)/1e6/took.Seconds(), got>>20, before>>20)
	}
}

// physOf is the physical address of a symbol of an amd64 kernel: its text and data are mapped at one distance.
func physOf(t *testing.T, info map[string]string, symbol string) uint64 {
	t.Helper()
	at, err := strconv.ParseUint(info["SYMBOL("+symbol+")"], 16, 64)
	base, err2 := strconv.ParseInt(info["NUMBER(phys_base)"], 10, 64)
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	return at - 0xffffffff80000000 + uint64(base)
}

// peak is the most memory that the process has had, in bytes.
func peak(t *testing.T) int {
	t.Helper()
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(b), "VmHWM:")
	n, err := strconv.Atoi(strings.Fields(after)[0])
	if err != nil {
		t.Fatal(err)
	}
	return n << 10
}
