package testvm

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"stackshot/internal/testtask"
)

// victimVar makes of this test binary, in a guest, a program that comes to the
// bad end it names.
const victimVar = "STACKSHOT_TESTVM_VICTIM"

func TestMain(m *testing.M) {
	testtask.MaybeRun()
	if end := os.Getenv(victimVar); end != "" {
		os.Exit(victim(end))
	}
	os.Exit(m.Run())
}

// lineLeft is when a line of the victim has surely left the guest: a panic or a
// power-off takes along what is still in a pipe or in the serial port.
const lineLeft = 2 * time.Second

// victim is run as root in a guest of its own, never on the host: the tests
// that set victimVar set it in a job.
func victim(end string) int {
	fmt.Println("=== RUN   TestVictim")
	time.Sleep(lineLeft)
	switch end {
	case "hang":
		for {
			time.Sleep(time.Hour)
		}
	case "panic":
		fmt.Println(os.WriteFile("/proc/sysrq-trigger", []byte("c"), 0))
	case "garbage":
		port, err := os.OpenFile("/dev/ttyS1", os.O_WRONLY, 0)
		if err != nil {
			fmt.Println(err)
			return 3
		}
		b := make([]byte, 4096)
		for {
			rand.Read(b)
			port.Write(b)
		}
	case "poweroff":
		fmt.Println(os.WriteFile("/proc/sysrq-trigger", []byte("o"), 0))
		time.Sleep(time.Hour)
	case "fail":
		fmt.Println("--- FAIL: TestVictim (0.00s)")
	case "vmcore":
		if err := readVMCore(); err != nil {
			fmt.Println(err)
			return 3
		}
		return 0
	case "files":
		return leaveFiles()
	}
	return 3
}

func leaveFiles() int {
	for name, size := range map[string]int{"empty": 0, "small": 5, "big": 200_000} {
		b := make([]byte, size)
		for i := range b {
			b[i] = byte(i % 251)
		}
		if err := os.WriteFile("/out/"+name, b, 0o644); err != nil {
			fmt.Println(err)
			return 3
		}
	}
	fmt.Println("--- PASS: TestVictim (0.00s)")
	return 0
}

// requireVM is a kernel to boot. The test fails where QEMU or the kernel is missing.
func requireVM(t *testing.T, arch, track string) Kernel {
	t.Helper()
	cache, err := CacheDir()
	if err != nil {
		t.Fatal(err)
	}
	k, err := FindKernel(cache, arch, track)
	if err != nil {
		t.Fatal(err)
	}
	_, err = emulatorOf(arch)
	for _, program := range []string{"go", "git"} {
		_, perr := exec.LookPath(program)
		err = errors.Join(err, perr)
	}
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// builder is one for the test's length.
func builder(t *testing.T) *Builder {
	t.Helper()
	repo, err := Repo(".")
	if err != nil {
		t.Fatal(err)
	}
	return &Builder{Repo: repo, Dir: t.TempDir()}
}
