//go:build linux && (amd64 || arm64)

package hangscenes_test

import (
	"bytes"
	"fmt"
	"html"
	"regexp"
	"strings"
)

// A picture of a terminal: the size of a cell, and the margin, in pixels.
const (
	cellWidth, cellHeight = 8.4, 18
	margin                = 14
)

// colours of a dark terminal, by SGR parameter.
var colours = map[string]string{"": "#d4d4d4", "31": "#ff7b72", "32": "#7ee787", "33": "#e3b341", "34": "#79c0ff", "35": "#d2a8ff",
	"36": "#76e3ea", "91": "#ffa198", "92": "#aff5b4", "93": "#f8e3a1", "2": "#8b949e", "90": "#8b949e"}

var sgr = regexp.MustCompile("\x1b\\[([0-9;]*)m")

// svg draws what a program wrote to a terminal of a width. Each run of cells is told its
// length, so that any monospaced font fits.
func svg(text string, width int) []byte {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	w, h := float64(width)*cellWidth+2*margin, len(lines)*cellHeight+2*margin
	var b bytes.Buffer
	fmt.Fprintf(&b, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%d\" viewBox=\"0 0 %.0f %d\">\n", w, h, w, h)
	fmt.Fprintf(&b, "<rect width=\"100%%\" height=\"100%%\" rx=\"6\" fill=\"#0d1117\"/>\n")
	fmt.Fprintf(&b, "<g font-family=\"ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace\" font-size=\"14\" xml:space=\"preserve\">\n")
	pen := pen{}
	for i, line := range lines {
		column := 0
		for len(line) > 0 {
			part, rest, code := line, "", []int(nil)
			if code = sgr.FindStringSubmatchIndex(line); code != nil {
				part, rest = line[:code[0]], line[code[1]:]
			}
			n := len([]rune(part))
			if strings.TrimSpace(part) != "" {
				fmt.Fprintf(&b, "<text x=\"%.1f\" y=\"%d\" textLength=\"%.1f\"%s>%s</text>\n", margin+float64(column)*cellWidth,
					margin+i*cellHeight+13, float64(n)*cellWidth, pen, html.EscapeString(part))
			}
			if column += n; code != nil {
				pen.take(line[code[2]:code[3]])
			}
			line = rest
		}
	}
	fmt.Fprintf(&b, "</g>\n</svg>\n")
	return b.Bytes()
}

// pen is how text is drawn.
type pen struct {
	colour string
	bold   bool
}

func (p *pen) take(codes string) {
	for c := range strings.SplitSeq(codes, ";") {
		switch {
		case c == "" || c == "0":
			*p = pen{}
		case c == "1":
			p.bold = true
		case colours[c] != "":
			p.colour = c
		}
	}
}

func (p pen) String() string {
	s := fmt.Sprintf(" fill=%q", colours[p.colour])
	if p.bold {
		s += ` font-weight="bold"`
	}
	return s
}
