package panicregion

import (
	"fmt"
	"strconv"
	"strings"
)

// Message is what panic() said, as one line: its format with its arguments put in. What the
// walk could not read, or this program does not know (%pS and its like), stays as it is in the format. "": there is
// none.
func (w *Walk) Message() string {
	var out strings.Builder
	next := 0 // argument
	for rest := w.Format; rest != ""; {
		plain, verb, found := strings.Cut(rest, "%")
		out.WriteString(plain)
		if !found {
			break
		}
		d := parseDirective(verb)
		rest = verb[d.size:]
		out.WriteString(w.directive(d, "%"+verb[:d.size], &next))
	}
	if !w.formatWhole && w.Format != "" {
		out.WriteString("…")
	}
	return strings.Join(strings.Fields(strings.ToValidUTF8(out.String(), "?")), " ")
}

// directive is one of the format's, parsed (lib/vsprintf.c, format_decode).
type directive struct {
	size  int    // bytes behind the %
	flags string // as Go takes them: of "-+ #0", the width
	prec  string // with its dot
	stars int    // arguments that give width and precision
	bits  uint   // of an integer
	verb  byte   // 0: the format ends in it
	more  bool   // of %p: letters follow
}

// maxForm bounds the text of flags, width and precision, and maxWidth the digits of a number in it: the line must
// not grow without bound.
const (
	maxForm  = 6
	maxWidth = 2
)

// wide reports whether a width or precision has more digits than maxWidth.
func (d *directive) wide() bool {
	for _, s := range []string{d.flags, d.prec} {
		if len(strings.TrimLeft(s, "-+ #0.")) > maxWidth {
			return true
		}
	}
	return false
}

func parseDirective(s string) (d directive) {
	at := 0
	take := func(set string) string {
		from := at
		for at < len(s) && strings.IndexByte(set, s[at]) >= 0 {
			at++
		}
		return s[from:at]
	}
	d.flags = take("-+ #0") + take("0123456789*")
	if at < len(s) && s[at] == '.' {
		at++
		d.prec = "." + take("0123456789*")
	}
	d.stars = strings.Count(d.flags+d.prec, "*")
	switch take("hlLzqtj") {
	case "":
		d.bits = 32
	case "h":
		d.bits = 16
	case "hh":
		d.bits = 8
	default:
		d.bits = 64
	}
	if at < len(s) {
		d.verb = s[at]
		at++
	}
	if d.verb == 'p' {
		d.more = take("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") != ""
	}
	d.size = at
	return d
}

// directive gives the text of one directive. It takes the arguments that the directive stands for.
func (w *Walk) directive(d directive, raw string, next *int) string {
	if d.verb == '%' {
		return "%"
	}
	*next += d.stars
	if d.verb == 0 || strings.IndexByte("sdiuxXocp", d.verb) < 0 || len(d.flags)+len(d.prec) > maxForm || d.wide() {
		return raw
	}
	arg := *next
	*next++
	if arg >= len(w.Args) || d.stars > 0 {
		return raw // widths out of arguments are rare: only their places count
	}
	v := w.Args[arg]
	form := "%" + d.flags + d.prec
	switch d.verb {
	case 's':
		return w.text(arg, form, raw)
	case 'c':
		return fmt.Sprintf("%"+d.flags+"c", rune(byte(v)))
	case 'd', 'i':
		return fmt.Sprintf(form+"d", int64(v<<(64-d.bits))>>(64-d.bits))
	case 'u':
		return fmt.Sprintf(form+"d", v<<(64-d.bits)>>(64-d.bits))
	case 'p':
		if d.more {
			return raw
		}
		return fmt.Sprintf("%#x", v)
	}
	// The kernel counts 0x into a width that is filled with zeros, fmt does not.
	if width, zeros := strings.CutPrefix(d.flags, "#0"); zeros && d.verb != 'o' && d.prec == "" {
		if n, err := strconv.Atoi(width); err == nil {
			form = fmt.Sprintf("%%#0%d", max(n-2, 1))
		}
	}
	return fmt.Sprintf(form+string(d.verb), v<<(64-d.bits)>>(64-d.bits))
}

func (w *Walk) text(arg int, form, raw string) string {
	if arg >= len(w.Text) || w.Texts&(1<<arg) == 0 {
		return raw
	}
	s := w.Text[arg]
	if !w.textWhole[arg] {
		s += "…"
	}
	return fmt.Sprintf(form+"s", s)
}
