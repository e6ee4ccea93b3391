package main

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"stackshot/internal/testvm/wire"
)

// loadModules loads the job's modules, each behind those that it needs.
func loadModules(all []wire.Module) error {
	for _, m := range all {
		if err := loadModule(m); err != nil {
			return fmt.Errorf("module %s %s: %w", m.File, m.Parameters, err)
		}
	}
	return os.RemoveAll(wire.ModulesDir)
}

func loadModule(m wire.Module) error {
	f, err := os.Open(m.File)
	if err != nil {
		return err
	}
	defer f.Close()
	err = unix.FinitModule(int(f.Fd()), m.Parameters, 0)
	if errors.Is(err, unix.EEXIST) { // something else had the kernel load it
		return nil
	}
	return err
}
