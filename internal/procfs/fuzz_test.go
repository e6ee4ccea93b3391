package procfs

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

// fuzzParser asks three things of a parser on any bytes: no panic, no value
// beside an error, and an error that wraps ErrSyntax.
func fuzzParser[T any](f *testing.F, parse func([]byte) (T, error), more func(*testing.T, []byte, T), seeds ...string) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		before := bytes.Clone(b)
		v, err := parse(b)
		if !bytes.Equal(b, before) {
			t.Fatal("the input changed")
		}
		if err != nil {
			if !errors.Is(err, ErrSyntax) || !reflect.ValueOf(&v).Elem().IsZero() {
				t.Fatalf("%q: %+v, %v", b, v, err)
			}
			return
		}
		if more != nil {
			more(t, b, v)
		}
	})
}

func FuzzParseStat(f *testing.F) {
	fuzzParser(f, ParseStat, func(t *testing.T, b []byte, st ProcStat) {
		// No ')' may follow the one that closed the name, and the state's
		// letter is all between it and the numbers.
		_, after, ok := strings.Cut(string(b), "("+st.Comm+")")
		if !ok || st.Fields < 41 || strings.Contains(after, ")") || !strings.HasPrefix(strings.TrimLeft(after, " \t\n"), string([]byte{st.State})) {
			t.Fatalf("%q: %+v", b, st)
		}
	}, stat618, statKthread, statShort, statEvil)
}

func FuzzParseStatus(f *testing.F) {
	fuzzParser(f, ParseStatus, func(t *testing.T, b []byte, st ProcStatus) {
		if !bytes.Contains(b, []byte("Pid:")) || st.Pid == 0 {
			t.Fatalf("%q: %+v", b, st)
		}
	}, status618, status310)
}

func FuzzParseStack(f *testing.F) {
	fuzzParser(f, ParseStack, func(t *testing.T, b []byte, st ThreadStack) {
		if lines := bytes.Count(b, []byte("\n")) + 1; len(st.Frames) > lines {
			t.Fatalf("%q: %d frames of %d lines", b, len(st.Frames), lines)
		}
		for _, fr := range st.Frames {
			if fr.Symbol == "" && fr.Addr == 0 && !bytes.Contains(b, []byte("0x0")) {
				t.Fatalf("%q: empty frame", b)
			}
		}
	}, "[<0>] f+0x1/0x2 [m]\n[<ffffffffffffffff>] 0xffffffffffffffff\n", "[<0>] ? f+0x1/0x2", "x\n")
}

// The two sides of the file agree: what is parsed, written the kernel's way,
// parses to the same.
func FuzzParseSyscall(f *testing.F) {
	fuzzParser(f, ParseSyscall, func(t *testing.T, b []byte, s Syscall) {
		text := fmt.Sprintf("%d %#x %#x\n", s.Nr, s.SP, s.PC)
		if a := s.Args; s.Nr >= 0 {
			text = fmt.Sprintf("%d 0x%x 0x%x 0x%x 0x%x 0x%x 0x%x 0x%x 0x%x\n", s.Nr, a[0], a[1], a[2], a[3], a[4], a[5], s.SP, s.PC)
		}
		if again, err := ParseSyscall([]byte(text)); err != nil || again != s {
			t.Fatalf("%q: %+v, as %q %+v, %v", b, s, text, again, err)
		}
	}, "running\n", "-1 0x1 0x2\n", "0 0x1 0x2 0x3 0x4 0x5 0x6 0x7 0x8\n")
}

func FuzzParseIO(f *testing.F) {
	fuzzParser(f, ParseIO, nil, "rchar: 1\nwchar: 2\nsyscr: 3\nsyscw: 4\nread_bytes: 5\nwrite_bytes: 6\ncancelled_write_bytes: 7\n")
}

func FuzzParseSchedstat(f *testing.F) { fuzzParser(f, ParseSchedstat, nil, "1 2 3\n") }

func FuzzParseOOMScoreAdj(f *testing.F) { fuzzParser(f, ParseOOMScoreAdj, nil, "-17\n", "1000") }

func FuzzParseCgroup(f *testing.F) {
	fuzzParser(f, ParseCgroup, func(t *testing.T, b []byte, lines []Cgroup) {
		if got := CgroupPath(lines); (got == Cgroup{}) != (len(lines) == 0) {
			t.Fatalf("%q: %+v", b, got)
		}
	}, "0::/\n", "4:memory:/a:b\n0::/\n")
}

func FuzzParseNSLink(f *testing.F) {
	fuzzParser(f, func(b []byte) (uint32, error) {
		_, inode, err := ParseNSLink(b)
		return inode, err
	}, nil, "pid:[4026531836]")
}

func FuzzParseDirents(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x18\x00\x0442\x00\x00\x00"))
	fuzzParser(f, parseDirents, func(t *testing.T, b []byte, ids []int) {
		if len(ids) > len(b)/20 {
			t.Fatalf("%q: %v", b, ids)
		}
	})
}

// The own number parsers against strconv.
func FuzzNumbers(f *testing.F) {
	for _, s := range []string{"0", "18446744073709551615", "18446744073709551616", "-9223372036854775808", "-9223372036854775809",
		"-", "+1", "1_0", "ffffffffffffffff", "10000000000000000", "0xA", "\x11"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		plain := !strings.ContainsAny(s, "+_")
		u, err := strconv.ParseUint(s, 10, 64)
		if n, ok := parseUint([]byte(s)); ok != (err == nil && plain) || ok && n != u {
			t.Errorf("parseUint(%q) = %d, %v; strconv %d, %v", s, n, ok, u, err)
		}
		i, err := strconv.ParseInt(s, 10, 64)
		if n, ok := parseInt([]byte(s)); ok != (err == nil && plain) || ok && n != i {
			t.Errorf("parseInt(%q) = %d, %v; strconv %d, %v", s, n, ok, i, err)
		}
		x, err := strconv.ParseUint(s, 16, 64)
		plain = plain && len(s) <= 16 && s == strings.ToLower(s)
		if n, ok := parseHex(s); ok != (err == nil && plain) || ok && n != x {
			t.Errorf("parseHex(%q) = %#x, %v; strconv %#x, %v", s, n, ok, x, err)
		}
	})
}
