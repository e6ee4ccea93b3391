package procfs

import (
	"bytes"
	"fmt"
	"iter"
	"strings"
)

// Bits of Mapping.Perm.
const (
	PermRead   = 1 << 0
	PermWrite  = 1 << 1
	PermExec   = 1 << 2
	PermShared = 1 << 3 // else private: copied on write
)

// Mapping is one line of /proc/PID/maps.
type Mapping struct {
	Start, End         uint64 // addresses, End excluded
	Perm               uint8  // Perm*
	Offset             uint64 // in the file, bytes
	DevMajor, DevMinor uint32
	Inode              uint64 // 0: no file
	Deleted            bool   // the file had lost its name; " (deleted)" is not in Path
	// Path is the path as the process itself sees it. Without a file: "[heap]",
	// "[stack]", "[vdso]", "[anon:name]", …, or "" for other anonymous memory.
	Path string
}

// permLetters are the letters of the permissions, in their order. "-" stands for one that
// is missing; "p" instead of the last one stands for private.
var permLetters = [...]struct {
	letter byte
	bit    uint8
}{{'r', PermRead}, {'w', PermWrite}, {'x', PermExec}, {'s', PermShared}}

// ParseMaps gives the mappings of a maps file that have every bit of perm, in the order
// of the file; perm 0 gives all. It ends with the first error. Lines have any length.
//
// The file is ambiguous: a name that itself ends in " (deleted)" or holds `\012` reads
// like a name that the kernel marked or escaped. Whoever opens such a path checks device
// and inode.
func ParseMaps(b []byte, perm uint8) iter.Seq2[Mapping, error] {
	return func(yield func(Mapping, error) bool) {
		for n := 1; len(b) > 0; n++ {
			var line []byte
			line, b, _ = bytes.Cut(b, []byte("\n"))
			m, name, ok := parseMapping(line)
			if !ok {
				yield(Mapping{}, syntaxError("maps", fmt.Sprintf("line %d", n), line))
				return
			}
			if m.Perm&perm != perm {
				continue
			}
			m.Path, m.Deleted = mappingPath(name)
			if !yield(m, nil) {
				return
			}
		}
	}
}

// parseMapping parses one line, and leaves its name as it is.
func parseMapping(line []byte) (m Mapping, name []byte, ok bool) {
	from, rest, ok1 := bytes.Cut(line, []byte("-"))
	to, rest, ok2 := bytes.Cut(rest, []byte(" "))
	perm, rest, ok3 := bytes.Cut(rest, []byte(" "))
	offset, rest, ok4 := bytes.Cut(rest, []byte(" "))
	major, rest, ok5 := bytes.Cut(rest, []byte(":"))
	minor, rest, ok6 := bytes.Cut(rest, []byte(" "))
	inode, name, _ := bytes.Cut(rest, []byte(" "))
	if !(ok1 && ok2 && ok3 && ok4 && ok5 && ok6) || len(perm) != len(permLetters) {
		return m, nil, false
	}
	var ma, mi uint64
	var good [6]bool
	m.Start, good[0] = parseHex(from)
	m.End, good[1] = parseHex(to)
	m.Offset, good[2] = parseHex(offset)
	ma, good[3] = parseHex(major)
	mi, good[4] = parseHex(minor)
	m.Inode, good[5] = parseUint(inode)
	m.DevMajor, m.DevMinor = uint32(ma), uint32(mi)
	for i, p := range permLetters {
		switch c := perm[i]; {
		case c == p.letter:
			m.Perm |= p.bit
		case c != '-' && !(c == 'p' && p.bit == PermShared):
			return m, nil, false
		}
	}
	if good != [6]bool{true, true, true, true, true, true} || m.End <= m.Start || ma>>32 != 0 || mi>>32 != 0 {
		return m, nil, false
	}
	return m, bytes.TrimLeft(name, " "), true
}

// mappingPath undoes what the kernel does to a name: a newline becomes `\012`,
// and nothing else is escaped (seq_path(…, "\n") of fs/proc/task_mmu.c).
func mappingPath(name []byte) (path string, deleted bool) {
	if len(name) > 0 && name[0] == '/' {
		name, deleted = bytes.CutSuffix(name, []byte(" (deleted)"))
	}
	return strings.ReplaceAll(string(name), `\012`, "\n"), deleted
}
