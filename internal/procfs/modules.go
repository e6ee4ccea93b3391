package procfs

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"stackshot/internal/elfnote"
)

// ErrModuleFormat is of /proc/modules.
var ErrModuleFormat = errors.New("not in the form of /proc/modules")

// Module is one loaded kernel module.
type Module struct {
	Name    string
	Addr    uint64 // of its first section; 0 where addresses are hidden
	Size    uint64 // bytes, of its core part
	State   string // Live, Loading, Unloading
	BuildID []byte // nil: unknown
}

// ReadModules reads the loaded modules below proc ("/proc") with their
// build-ids below sys ("/sys"). A kernel without modules has none: that is no
// error. A module without a readable note keeps a nil BuildID.
func ReadModules(proc, sys string) ([]Module, error) {
	f, err := os.Open(filepath.Join(proc, "modules"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	mods, err := ParseModules(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name(), err)
	}
	for i := range mods {
		m := &mods[i]
		note, err := os.ReadFile(filepath.Join(sys, "module", m.Name, "notes", ".note.gnu.build-id"))
		if err != nil {
			continue
		}
		m.BuildID = findBuildID(note)
	}
	return mods, nil
}

// ReadKernelBuildID returns vmlinux's build-id from /sys/kernel/notes, below
// sys. Errors: the file's, or elfnote.ErrNoBuildID.
func ReadKernelBuildID(sys string) ([]byte, error) {
	name := filepath.Join(sys, "kernel", "notes")
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	id := findBuildID(b)
	if id == nil {
		return nil, fmt.Errorf("%s: %w", name, elfnote.ErrNoBuildID)
	}
	return id, nil
}

// findBuildID reads the kernel's notes: in its own byte order, padded to 4.
func findBuildID(notes []byte) []byte { return elfnote.Find(notes, binary.NativeEndian, 4) }

// ParseModules parses /proc/modules: "name size refs users state address",
// with taints after it that are of no use here.
func ParseModules(r io.Reader) ([]Module, error) {
	var mods []Module
	sc := bufio.NewScanner(r)
	for line := 1; sc.Scan(); line++ {
		m, err := parseModule(sc.Text())
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		mods = append(mods, m)
	}
	if err := sc.Err(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrModuleFormat, err)
	}
	return mods, nil
}

func parseModule(line string) (Module, error) {
	f := strings.Fields(line)
	if len(f) < 6 || !isModuleName(f[0]) {
		return Module{}, fmt.Errorf("%w: %q", ErrModuleFormat, kallsymsCut(line, 80))
	}
	size, err := strconv.ParseUint(f[1], 10, 64)
	if err != nil {
		return Module{}, fmt.Errorf("%w: size %q", ErrModuleFormat, kallsymsCut(f[1], 80))
	}
	addr, err := strconv.ParseUint(strings.TrimPrefix(f[5], "0x"), 16, 64)
	if err != nil {
		return Module{}, fmt.Errorf("%w: address %q", ErrModuleFormat, kallsymsCut(f[5], 80))
	}
	return Module{Name: f[0], Addr: addr, Size: size, State: f[4]}, nil
}

// isModuleName keeps a name from being a path: it becomes one under /sys.
func isModuleName(s string) bool {
	return s != "." && s != ".." && !strings.ContainsAny(s, "/\x00")
}
