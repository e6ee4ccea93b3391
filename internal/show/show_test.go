package show

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestClean(t *testing.T) {
	for _, c := range [][2]string{
		{"", ""}, {"plain name", "plain name"}, {"日本語 é", "日本語 é"}, {`a\x1b`, `a\x1b`},
		{"\x1b[31m", `\x1b[31m`}, {"a\nb\tc\x7f", `a\x0ab\x09c\x7f`}, {"\xff\xc3(", `\xff\xc3(`},
		{"\u202e\u2066\u200b", `\xe2\x80\xae\xe2\x81\xa6\xe2\x80\x8b`}, {"\u0085\u2028", `\xc2\x85\xe2\x80\xa8`},
		{"\u00a0", `\xc2\xa0`}, {"\ufffd", "\ufffd"}, {"\U000e0041", `\xf3\xa0\x81\x81`},
	} {
		if got := Clean(c[0]); got != c[1] {
			t.Errorf("Clean(%q) = %q, want %q", c[0], got, c[1])
		}
	}
}

var escape = regexp.MustCompile(`\\x([0-9a-f]{2})`)

// FuzzClean: the result is showable, cleaning twice is cleaning once, and
// undoing the escapes gives the name back unless it had some of its own.
func FuzzClean(f *testing.F) {
	f.Add("a\x1b[2J\xff\u202e")
	f.Add(`\x41`)
	f.Fuzz(func(t *testing.T, s string) {
		c := Clean(s)
		for _, r := range c {
			if !printable(r, utf8.RuneLen(r)) {
				t.Fatalf("%q holds %U", c, r)
			}
		}
		if Clean(c) != c {
			t.Fatalf("cleaning %q again gives %q", c, Clean(c))
		}
		back := escape.ReplaceAllStringFunc(c, func(m string) string {
			n, _ := strconv.ParseUint(m[2:], 16, 8)
			return string([]byte{byte(n)})
		})
		if back != s && !escape.MatchString(s) {
			t.Fatalf("%q became %q, which is %q", s, c, back)
		}
	})
}

func TestUnits(t *testing.T) {
	for _, c := range []struct {
		ns   uint64
		want string
	}{{0, "0 us"}, {999_999, "999 us"}, {4_130_000, "4.1 ms"}, {25_000_000, "25 ms"}, {1_500_000_000, "1.5 s"}, {192e9, "3m 12s"}, {7500e9, "2h 05m"}, {1 << 63, "106751d 23h"}, {1<<64 - 1, "106751d 23h"}} {
		if got := Duration(c.ns); got != c.want {
			t.Errorf("Duration(%d) = %q, want %q", c.ns, got, c.want)
		}
	}
	for _, c := range []struct {
		n    uint64
		want string
	}{{0, "0 B"}, {1023, "1023 B"}, {1 << 20, "1.0 MiB"}, {150 << 30, "150 GiB"}, {1<<64 - 1, "16.0 EiB"}} {
		if got := Size(c.n); got != c.want {
			t.Errorf("Size(%d) = %q, want %q", c.n, got, c.want)
		}
	}
	for _, c := range []struct {
		in    []uint64
		limit int
		want  string
	}{{nil, 3, ""}, {[]uint64{5}, 3, "5"}, {[]uint64{3, 1, 2, 2, 9}, 3, "1-3,9"}, {[]uint64{1, 3, 5, 7, 8}, 2, "1,3 and 3 more"}, {[]uint64{1<<64 - 1, 0}, 2, "0,18446744073709551615"}} {
		if got := Ranges(c.in, c.limit); got != c.want {
			t.Errorf("Ranges(%v, %d) = %q, want %q", c.in, c.limit, got, c.want)
		}
	}
}

func TestThousands(t *testing.T) {
	for n, want := range map[uint64]string{
		0: "0", 999: "999", 1000: "1,000", 4085: "4,085", 1234567: "1,234,567", 1<<64 - 1: "18,446,744,073,709,551,615",
	} {
		if got := Thousands(n); got != want {
			t.Errorf("%d: %s", n, got)
		}
	}
}

// Wrap loses nothing, keeps to the width, and never breaks a command.
func TestWrap(t *testing.T) {
	const command = "`stackshot symbolize --unwind FILE`"
	for _, s := range []string{
		"", "word", "two words", strings.Repeat("x", 100), "a " + strings.Repeat("界", 40) + " b", "see " + command + ", it helps",
		command, "a lone ` quote and more", "ends in `", "`a` `b` `", " leading  and double ",
	} {
		for width := 1; width < 60; width++ {
			lines := Wrap(s, width)
			if got, want := strings.ReplaceAll(strings.Join(lines, ""), " ", ""), strings.ReplaceAll(s, " ", ""); got != want {
				t.Fatalf("width %d: %q became %q", width, s, lines)
			}
			for _, line := range lines {
				if Cells(line) > max(width, 2) && !strings.HasPrefix(line, "`") {
					t.Errorf("width %d: %q", width, line)
				}
			}
			if strings.Contains(s, command) && !strings.Contains(strings.Join(lines, "\n"), command) {
				t.Errorf("width %d: the command is broken: %q", width, lines)
			}
		}
	}
}
