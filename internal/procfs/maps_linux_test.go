package procfs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// plainMaps is a second parser, by Sscanf: field by field, without thought for
// speed or damage.
func plainMaps(t testing.TB, text string) (out []Mapping) {
	t.Helper()
	for line := range strings.Lines(text) {
		var m Mapping
		var perm, start string
		line = strings.TrimSuffix(line, "\n")
		n, err := fmt.Sscanf(line, "%s %s %x %x:%x %d", &start, &perm, &m.Offset, &m.DevMajor, &m.DevMinor, &m.Inode)
		if err != nil || n != 6 {
			t.Fatalf("%q: %v", line, err)
		}
		if _, err := fmt.Sscanf(start, "%x-%x", &m.Start, &m.End); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		for i, bit := range []uint8{PermRead, PermWrite, PermExec, PermShared} {
			if perm[i] == "rwxs"[i] {
				m.Perm |= bit
			}
		}
		if at := strings.IndexAny(line, "/["); at >= 0 {
			m.Path = line[at:]
		} else if f := strings.Fields(line); len(f) > 5 {
			m.Path = strings.Join(f[5:], " ") // anon_inode:[perf_event]
		}
		if strings.HasPrefix(m.Path, "/") && strings.HasSuffix(m.Path, " (deleted)") {
			m.Path, m.Deleted = strings.TrimSuffix(m.Path, " (deleted)"), true
		}
		m.Path = strings.ReplaceAll(m.Path, `\012`, "\n")
		out = append(out, m)
	}
	return out
}

func parseAllMaps(b []byte, perm uint8) ([]Mapping, error) {
	var out []Mapping
	for m, err := range ParseMaps(b, perm) {
		if err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	return out, nil
}

// text writes a mapping the kernel's way (show_vma_header_prefix, seq_path).
func (m *Mapping) text() string {
	perm := []byte("---p")
	for i, bit := range []uint8{PermRead, PermWrite, PermExec, PermShared} {
		if m.Perm&bit != 0 {
			perm[i] = "rwxs"[i]
		}
	}
	head := fmt.Sprintf("%08x-%08x %s %08x %02x:%02x %d ", m.Start, m.End, perm, m.Offset, m.DevMajor, m.DevMinor, m.Inode)
	if m.Path == "" && !m.Deleted {
		return head + "\n"
	}
	name := strings.ReplaceAll(m.Path, "\n", `\012`)
	if m.Deleted {
		name += " (deleted)"
	}
	return fmt.Sprintf("%-72s %s\n", strings.TrimSuffix(head, " "), name)
}

// Every process of this machine that lets us: both parsers agree, and what was parsed,
// written again, is the file.
func TestMapsOfThisMachine(t *testing.T) {
	files, err := filepath.Glob("/proc/[0-9]*/maps")
	if err != nil {
		t.Fatal(err)
	}
	lines := 0
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			// Ended meanwhile, or one that not even root may look into.
			if errors.Is(err, unix.ESRCH) || errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission) {
				continue
			}
			t.Fatal(err)
		}
		got, err := parseAllMaps(b, 0)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if want := plainMaps(t, string(b)); !reflect.DeepEqual(got, want) {
			t.Fatalf("%s: %+v, want %+v", file, got, want)
		}
		var text strings.Builder
		for i := range got {
			text.WriteString(got[i].text())
		}
		if text.String() != string(b) {
			t.Fatalf("%s: %s\nwritten again: %s", file, b, text.String())
		}
		lines += len(got)
		code, err := parseAllMaps(b, PermExec)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, m := range got {
			if m.Perm&PermExec != 0 {
				if !reflect.DeepEqual(code[n], m) {
					t.Fatalf("%s: %+v, want %+v", file, code[n], m)
				}
				n++
			}
		}
		if n != len(code) {
			t.Fatalf("%s: %d executable, want %d", file, len(code), n)
		}
	}
	if lines < 20 { // who has no rights may see no process but this one
		t.Errorf("only %d lines", lines)
	}
}

// Names that the kernel writes in an odd way, mapped for real.
func TestMapsOfOddNames(t *testing.T) {
	dir := t.TempDir()
	// 15 times 255 bytes: near PATH_MAX, so that the line is longer than a page.
	deep := dir
	for len(deep)+260 < 3900 {
		deep += "/" + strings.Repeat("d", 250)
	}
	if err := os.MkdirAll(deep, 0o700); err != nil {
		t.Fatal(err)
	}
	const newlines = 140 // each 4 bytes in the file
	names := map[string]bool{
		dir + "/a\nb":                              false,
		dir + "/two  blanks ":                      false,
		dir + "/[vdso]":                            false,
		dir + "/gone":                              true,
		dir + "/back\\slash":                       false,
		dir + "/\xff\xfe":                          false,
		dir + "/tab\there":                         false,
		dir + "/(deleted)":                         false,
		deep + "/" + "deepest\n":                   false,
		dir + "/" + strings.Repeat("\n", newlines): false,
	}
	for name := range names {
		f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Truncate(4096); err != nil {
			t.Fatal(err)
		}
		b, err := unix.Mmap(int(f.Fd()), 0, 4096, unix.PROT_READ, unix.MAP_SHARED)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Munmap(b)
		if names[name] {
			if err := os.Remove(name); err != nil {
				t.Fatal(err)
			}
		}
	}
	b, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	all, err := parseAllMaps(b, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		if deleted, mine := names[m.Path]; mine {
			seen[m.Path] = true
			var st unix.Stat_t
			if m.Deleted != deleted || m.Perm != PermRead|PermShared || m.End-m.Start != 4096 {
				t.Errorf("%q: %+v", m.Path, m)
			}
			if err := unix.Stat(m.Path, &st); !deleted && (err != nil || st.Ino != m.Inode) {
				t.Errorf("%q: inode %d, %v, want %d", m.Path, st.Ino, err, m.Inode)
			}
		}
	}
	for name := range names {
		if !seen[name] {
			t.Errorf("%q is not found", name)
		}
	}
}

func TestParseMapsRefuses(t *testing.T) {
	const good = "1000-2000 r-xp 00000000 fe:00 5                          /bin/x\n"
	for _, bad := range []string{
		"\n", "x", "1000-2000", "1000-2000 r-xp", "1000-2000 r-xp 0 fe:00", "2000-1000 r-xp 0 0:0 0 ", "1000-1000 r-xp 0 0:0 0 ",
		"1000-2000 r-x 0 0:0 0 ", "1000-2000 r-xpp 0 0:0 0 ", "1000-2000 rxxp 0 0:0 0 ", "1000-2000 -pxp 0 0:0 0 ", "1000-2000 r-xp 0 0:0 x ",
		"0x1000-2000 r-xp 0 0:0 0 ", "1000-2000 r-xp 0 123456789:0 0 ", "1000-11112222333344445 r-xp 0 0:0 0 ", "1000-2000 r-xp 0 0:0 -1 ",
	} {
		got, err := parseAllMaps([]byte(good+bad), 0)
		if got != nil || !errors.Is(err, ErrSyntax) || !strings.HasPrefix(err.Error(), "maps: line 2: ") {
			t.Errorf("%q: %+v, %v", bad, got, err)
		}
	}
	if got, err := parseAllMaps(nil, 0); got != nil || err != nil {
		t.Errorf("an empty file: %+v, %v", got, err)
	}
}

// What parses, written the kernel's way, parses to the same.
func FuzzParseMaps(f *testing.F) {
	fuzzParser(f, func(b []byte) ([]Mapping, error) { return parseAllMaps(b, 0) }, func(t *testing.T, b []byte, ms []Mapping) {
		var text strings.Builder
		for i := range ms {
			text.WriteString(ms[i].text())
		}
		again, err := parseAllMaps([]byte(text.String()), 0)
		if err != nil || !reflect.DeepEqual(again, ms) {
			t.Fatalf("%q: %+v, as %q %+v, %v", b, ms, text.String(), again, err)
		}
	}, "1000-2000 r-xp 00000000 fe:00 5                          /bin/x (deleted)\n",
		"7ffc-7ffd rw-s 0 0:1 0                                 [anon: a b]\n55d0-55d1 ---p 0 0:0 0 \n", "1-2 r-xp 0 0:0 0 anon_inode:[perf_event]")
}

func BenchmarkParseMaps(b *testing.B) {
	text, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := parseAllMaps(text, PermExec); err != nil {
			b.Fatal(err)
		}
	}
}
