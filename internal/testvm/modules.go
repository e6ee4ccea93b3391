package testvm

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/zstd"
	"github.com/therootcompany/xz"

	"stackshot/internal/testvm/wire"
)

// ModulesDir is where the cache has the modules of the kernel's package, as they are
// there: each in a file of its own, compressed or not, beside modules.builtin.
func (k *Kernel) ModulesDir() string {
	return filepath.Join(filepath.Dir(k.Image), "modules-"+k.Release)
}

// builtinList names the modules that the kernel image has in itself.
const builtinList = "modules.builtin"

// moduleSuffixes are those of a package's modules, by CONFIG_MODULE_COMPRESS*.
var moduleSuffixes = []string{".ko", ".ko.xz", ".ko.zst"}

// moduleName is a module's own name, out of its file's; "" if it is no module's. The
// kernel takes - for _ in names.
func moduleName(file string) string {
	for _, suffix := range moduleSuffixes {
		if name, ok := strings.CutSuffix(filepath.Base(file), suffix); ok {
			return strings.ReplaceAll(name, "-", "_")
		}
	}
	return ""
}

// moduleSet is what of a kernel's modules a guest loads, and in which order.
type moduleSet struct {
	kernel *Kernel
	files  map[string]string // by name
	inside map[string]bool   // in the kernel image
	taken  map[string]bool
	load   []wire.Module // in order
	image  map[string][]byte
}

// modules finds the wanted modules of a kernel ("name parameter=value ...") and those
// that they need, uncompressed. What the kernel image has in itself is passed over.
func (k *Kernel) modules(wanted []string) (*moduleSet, error) {
	s := &moduleSet{kernel: k, files: map[string]string{}, inside: map[string]bool{}, taken: map[string]bool{}, image: map[string][]byte{}}
	entries, err := os.ReadDir(k.ModulesDir())
	if err != nil {
		return nil, fmt.Errorf("modules of %s: %w (vmtest kernels fetches them)", k.Release, err)
	}
	for _, e := range entries {
		s.files[moduleName(e.Name())] = filepath.Join(k.ModulesDir(), e.Name())
	}
	list, err := os.ReadFile(filepath.Join(k.ModulesDir(), builtinList))
	if err != nil {
		return nil, err
	}
	for _, path := range strings.Fields(string(list)) {
		s.inside[moduleName(path)] = true
	}
	for _, w := range wanted {
		name, parameters, _ := strings.Cut(w, " ")
		if err := s.take(strings.ReplaceAll(name, "-", "_"), parameters); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// take adds a module behind all that it depends on.
func (s *moduleSet) take(name, parameters string) error {
	if s.taken[name] || s.inside[name] {
		if parameters != "" {
			return fmt.Errorf("module %s is built in, or named or needed before: parameters %q would be lost", name, parameters)
		}
		return nil
	}
	s.taken[name] = true
	file := s.files[name]
	if file == "" {
		return fmt.Errorf("kernel %s has no module %s, in %s or built in", s.kernel.Release, name, s.kernel.ModulesDir())
	}
	text, err := readModule(file)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	needs, err := dependencies(text)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	for _, n := range needs {
		if err := s.take(n, ""); err != nil {
			return fmt.Errorf("%w, which %s needs", err, name)
		}
	}
	path := wire.ModulesDir + "/" + name + ".ko"
	s.image[path[1:]] = text
	s.load = append(s.load, wire.Module{File: path, Parameters: parameters})
	return nil
}

// readModule reads and decompresses a module.
func readModule(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var r io.Reader = f
	switch filepath.Ext(file) {
	case ".xz":
		r, err = xz.NewReader(f, 0)
	case ".zst":
		var z *zstd.Decoder
		if z, err = zstd.NewReader(f); err == nil {
			defer z.Close()
		}
		r = z
	}
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

// dependencies are the modules that a module's own .modinfo names, as modpost wrote it.
func dependencies(text []byte) ([]string, error) {
	f, err := elf.NewFile(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	info := f.Section(".modinfo")
	if info == nil {
		return nil, errors.New("no section .modinfo")
	}
	data, err := info.Data()
	if err != nil {
		return nil, err
	}
	for _, field := range bytes.Split(data, []byte{0}) {
		if list, ok := strings.CutPrefix(string(field), "depends="); ok {
			return strings.FieldsFunc(strings.ReplaceAll(list, "-", "_"), func(r rune) bool { return r == ',' }), nil
		}
	}
	return nil, errors.New("no depends= in .modinfo")
}
