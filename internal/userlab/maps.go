//go:build linux

package userlab

import (
	"debug/elf"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// A module is one file that a process has mapped.
type module struct {
	spans []span
	loads []elf.ProgHeader // PT_LOAD
}

// A mapping is an executable one. Without a module nothing is known of what it
// maps.
type mapping struct {
	start, end, offset uint64
	vdso               bool
	module             *module
}

type mappings []mapping

// readMaps lists a process's executable mappings.
func readMaps(pid int) (mappings, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return nil, err
	}
	var ms mappings
	modules := map[string]*module{}
	for line := range strings.Lines(string(b)) {
		var m mapping
		var perms, dev string
		var ino uint64
		if _, err := fmt.Sscanf(line, "%x-%x %s %x %s %d", &m.start, &m.end, &perms, &m.offset, &dev, &ino); err != nil {
			return nil, fmt.Errorf("userlab: /proc/%d/maps: %q: %w", pid, line, err)
		}
		if perms[2] != 'x' {
			continue
		}
		_, name, _ := strings.Cut(line, fmt.Sprintf(" %d ", ino))
		name = strings.TrimSpace(name)
		m.vdso = name == "[vdso]"
		if strings.HasPrefix(name, "/") {
			if _, seen := modules[name]; !seen {
				modules[name] = openModule(pid, name, ino)
			}
			m.module = modules[name]
		}
		ms = append(ms, m)
	}
	return ms, nil
}

// openModule gives nil for a file that cannot be found or read. A name is as we
// see it, if the process's root is within ours, or as the process does.
func openModule(pid int, name string, ino uint64) *module {
	for _, path := range []string{name, fmt.Sprintf("/proc/%d/root%s", pid, name)} {
		var st unix.Stat_t
		if err := unix.Stat(path, &st); err != nil || st.Ino != ino {
			continue
		}
		f, err := elf.Open(path)
		if err != nil {
			continue
		}
		defer f.Close()
		m := &module{}
		for _, p := range f.Progs {
			if p.Type == elf.PT_LOAD {
				m.loads = append(m.loads, p.ProgHeader)
			}
		}
		if m.spans, err = spansOf(f); err == nil {
			return m
		}
	}
	return nil
}

// hasCFI says whether an unwinding table covers an address.
func (ms mappings) hasCFI(pc uint64) bool {
	for _, m := range ms {
		if pc < m.start || pc >= m.end {
			continue
		}
		if m.module == nil {
			return m.vdso
		}
		off := pc - m.start + m.offset
		for _, l := range m.module.loads {
			if off >= l.Off && off < l.Off+l.Filesz {
				return covers(m.module.spans, off-l.Off+l.Vaddr)
			}
		}
	}
	return false
}
