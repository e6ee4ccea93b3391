package procfs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"stackshot/internal/elfnote"
)

// ErrModuleFormat is the error of a /proc/modules of another form.
var ErrModuleFormat = errors.New("not in the form of /proc/modules")

// Module is one loaded kernel module.
type Module struct {
	Name    string
	Addr    uint64 // of its first section; 0: addresses are hidden
	Size    uint64 // bytes, of its core part
	BuildID []byte // nil: unknown
}

// ReadModules reads the loaded modules below proc ("/proc") with their
// build-ids below sys ("/sys"). A kernel that has no modules gives none and no
// error. A module without a readable note has a nil BuildID.
func ReadModules(proc, sys string) ([]Module, error) {
	name := filepath.Join(proc, "modules")
	b, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	mods, err := ParseModules(string(b))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
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

// ParseModules parses /proc/modules: "name size refs users state address" and, on some
// lines, taints.
func ParseModules(text string) (mods []Module, err error) {
	for line := range strings.Lines(text) {
		var m Module
		var refs, users, state string // refs is "-" where modules cannot be unloaded
		n, _ := fmt.Sscanf(line, "%s %d %s %s %s 0x%x", &m.Name, &m.Size, &refs, &users, &state, &m.Addr)
		if n != 6 || !isModuleName(m.Name) {
			return nil, fmt.Errorf("line %d: %w: %.80q", len(mods)+1, ErrModuleFormat, line)
		}
		mods = append(mods, m)
	}
	return mods, nil
}

// isModuleName keeps a name from being a path: it becomes one under /sys.
func isModuleName(s string) bool {
	return s != "." && s != ".." && !strings.ContainsAny(s, "/\x00")
}
