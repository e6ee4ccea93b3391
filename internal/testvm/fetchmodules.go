package testvm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

func (k *Kernel) hasModules() bool {
	_, err := os.Stat(filepath.Join(k.ModulesDir(), builtinList))
	return err == nil
}

// modulesPackages hold a kernel's modules and the list of what is built in: the image's
// own, but from 6.19 on, where that is split, two others of the same version.
func (k *Kernel) modulesPackages() []string {
	if strings.HasPrefix(k.Package, "linux-binary-") {
		return []string{"linux-modules-" + k.Release, "linux-base-" + k.Release}
	}
	return []string{k.Package}
}

// modules fetches the modules of a kernel whose image is in the cache, of the same build.
func (a *apt) modules(ctx context.Context, k *Kernel) error {
	dir := k.ModulesDir() + ".part"
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755)); err != nil {
		return err
	}
	keep := func(name string) string {
		if moduleName(name) != "" || name == builtinList {
			return filepath.Join(dir, name)
		}
		return ""
	}
	var err error
	for _, pkg := range k.modulesPackages() {
		err = errors.Join(err, a.extract(ctx, pkg, k.Arch, k.Version, keep))
	}
	if err == nil {
		_, err = os.Stat(filepath.Join(dir, builtinList))
	}
	if err != nil {
		return errors.Join(fmt.Errorf("modules of %s: %w", k.Release, err), os.RemoveAll(dir))
	}
	return errors.Join(os.RemoveAll(k.ModulesDir()), os.Rename(dir, k.ModulesDir()))
}
