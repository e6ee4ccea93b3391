package manual

import (
	"os/exec"
	"strings"
	"testing"
	"unicode"

	"stackshot/internal/testneed"
)

// No text is taken for a request, and none is lost, whatever it begins with.
func TestEscape(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		".TH x": `\&.TH x`, "'br": `\(aqbr`, `a\b`: `a\eb`, "--x": `\-\-x`, "é": `\[u00E9]`, "it's `x`^~": `it\(aqs \(gax\(ga\(ha\(ti`,
	} {
		if got := guard(escape(in)); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// Every word of a text is on the page, in order, as mandoc shows it.
func FuzzText(f *testing.F) {
	testneed.Live(f)
	for _, s := range []string{"a", ".SH x\n\n  .nf\n'y", "  code --x\nand text\\fB", "\\n[.x] \"q\"", "a\n\n\n\n  b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		testneed.Program(t, "mandoc")
		for _, c := range s {
			if c > 0x7e || c < 0x20 && c != '\n' { // our texts have none
				return
			}
		}
		if strings.TrimSpace(s) == "" || len(s) > 4000 {
			return
		}
		r := &roff{}
		r.raw(`.TH "X" "1" "2026-11-23"`)
		r.macro("SH", "MARK")
		r.text(s)
		cmd := exec.Command("mandoc", "-man", "-Tutf8", "-Owidth=1000")
		cmd.Stdin = strings.NewReader(r.String())
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v: %s", err, r.String())
		}
		_, got, _ := strings.Cut(plain(string(out)), "MARK")
		if want := squeeze(s); !strings.HasPrefix(squeeze(got), want) {
			t.Fatalf("%q:\n%s\nwant %q\nof %s", s, got, want, r.String())
		}
	})
}

// plain takes away the backspaces by which mandoc makes bold text.
func plain(s string) string {
	out := []rune{}
	for _, c := range s {
		if c == '\b' && len(out) > 0 {
			out = out[:len(out)-1]
			continue
		}
		out = append(out, c)
	}
	return string(out)
}

func squeeze(s string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsSpace(c) {
			return -1
		}
		return c
	}, s)
}
