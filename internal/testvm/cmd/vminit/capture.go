package main

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"stackshot/internal/testvm/wire"
)

// loadCapture loads the capture kernel into the memory that crashkernel= has set apart.
// The files are not needed afterwards, and their memory is: they are removed.
func loadCapture(line string) error {
	kernel, err := os.Open(wire.CaptureKernel)
	if err != nil {
		return err
	}
	defer kernel.Close()
	initrd, err := os.Open(wire.CaptureInitrd)
	if err != nil {
		return err
	}
	defer initrd.Close()
	err = unix.KexecFileLoad(int(kernel.Fd()), int(initrd.Fd()), line, unix.KEXEC_FILE_ON_CRASH)
	if err != nil {
		return fmt.Errorf("capture kernel: kexec_file_load: %w", err)
	}
	return os.RemoveAll(filepath.Dir(wire.CaptureKernel))
}
