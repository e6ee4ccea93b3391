package manual

import (
	"fmt"
	"regexp"
	"strings"

	"stackshot/internal/show"
)

// roff is the source of a page in the making, in the macros of man(7).
type roff struct{ strings.Builder }

// lineWidth is that of the source's lines, for who reads it.
const lineWidth = 68

func (r *roff) raw(line string) { r.WriteString(line + "\n") }

func (r *roff) macro(name string, args ...string) {
	line := "." + name
	for _, a := range args {
		line += fmt.Sprintf(` "%s"`, strings.ReplaceAll(escape(a), `"`, `\(dq`))
	}
	r.raw(line)
}

// text writes paragraphs. Lines that begin with two spaces stand as they are.
func (r *roff) text(text string) {
	for i, paragraph := range strings.Split(strings.Trim(text, "\n"), "\n\n") {
		if i > 0 {
			r.macro("PP")
		}
		r.paragraph(strings.Split(paragraph, "\n"))
	}
}

// paragraph writes lines, some of which may stand as they are.
func (r *roff) paragraph(lines []string) {
	for len(lines) > 0 {
		n := 0
		for n < len(lines) && strings.HasPrefix(lines[n], "  ") {
			n++
		}
		if n > 0 {
			r.raw(".RS 2\n.nf")
			for _, line := range lines[:n] {
				r.raw(guard(escape(strings.TrimPrefix(line, "  "))))
			}
			r.raw(".fi\n.RE")
			lines = lines[n:]
			continue
		}
		for n < len(lines) && !strings.HasPrefix(lines[n], "  ") {
			n++
		}
		r.fill(strings.Join(lines[:n], " "))
		lines = lines[n:]
	}
}

// fill writes one paragraph's words.
func (r *roff) fill(text string) {
	for _, line := range show.Wrap(text, lineWidth) {
		r.raw(guard(escape(line)))
	}
}

func (r *roff) entries(list [][2]string) {
	for _, e := range list {
		r.macro("TP")
		r.raw(bold(e[0]))
		r.fill(e[1])
	}
}

func bold(s string) string { return `\fB` + escape(s) + `\fR` }

func italic(s string) string { return italicEscaped(escape(s)) }

func italicEscaped(s string) string { return `\fI` + s + `\fR` }

// upper is a word that stands for a value.
var upper = regexp.MustCompile(`[A-Z]+`)

// escape has every character stand for itself. A hyphen is that of the keyboard, so that what is
// copied out of a page works.
func escape(s string) string {
	var b strings.Builder
	for _, c := range s {
		switch {
		case c == '\\':
			b.WriteString(`\e`)
		case c == '-':
			b.WriteString(`\-`)
		case c == '\'':
			b.WriteString(`\(aq`)
		case c == '`':
			b.WriteString(`\(ga`)
		case c == '^':
			b.WriteString(`\(ha`)
		case c == '~':
			b.WriteString(`\(ti`)
		case c > 0x7e:
			fmt.Fprintf(&b, `\[u%04X]`, c)
		default:
			b.WriteRune(c)
		}
	}
	return b.String()
}

// guard keeps a line that begins like a request from being one.
func guard(line string) string {
	if strings.HasPrefix(line, ".") {
		return `\&` + line
	}
	return line
}
