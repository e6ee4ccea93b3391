package snapshot

import (
	"os"
	"os/exec"
	"testing"
)

// runs32Bit says why this kernel runs no 32-bit program; nil: it does.
func runs32Bit(t *testing.T) error {
	t.Helper()
	exit := []byte{0xb8, 1, 0, 0, 0, 0x31, 0xdb, 0xcd, 0x80} // mov $1, %eax; xor %ebx, %ebx; int $0x80
	file := t.TempDir() + "/exit32"
	if err := os.WriteFile(file, elf32(exit), 0o755); err != nil {
		t.Fatal(err)
	}
	return exec.Command(file).Run()
}
