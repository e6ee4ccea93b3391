package testvm

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// bad says that a cell speaks against the change that is tested.
func (c Cell) bad() bool { return c.Outcome != "PASS" && c.Outcome != "SKIP" }

// Bad counts the cells that do.
func (t *Table) Bad() int {
	n := 0
	for _, r := range t.Rows {
		for _, c := range r.Cells {
			if c.bad() {
				n++
			}
		}
	}
	return n
}

// Markdown writes the table: a row a test, a column a machine, in each cell
// verdict and seconds; below it why something did not pass, and what the
// kernels' verifiers went through.
func (t *Table) Markdown(w io.Writer) {
	t.head(w, "test")
	var why reasons
	for _, r := range t.Rows {
		fmt.Fprintf(w, "| `%s` %s |", r.Package, r.Test)
		for i := range t.Columns {
			fmt.Fprintf(w, " %s |", t.cell(r, i, &why))
		}
		fmt.Fprintln(w)
	}
	why.write(w)
	for i, c := range t.Columns {
		if reason, ok := t.Absent[i]; ok {
			fmt.Fprintf(w, "\n%s was not run: %s\n", c, reason)
		}
	}
	t.verified(w)
}

func (t *Table) head(w io.Writer, first string) {
	fmt.Fprintf(w, "| %s | %s |\n|---|%s\n", first, strings.Join(t.Columns, " | "), strings.Repeat("---|", len(t.Columns)))
}

// verified is a row a program that any kernel took.
func (t *Table) verified(w io.Writer) {
	if len(t.Verified) == 0 {
		return
	}
	fmt.Fprintln(w)
	t.head(w, "verified instructions")
	for _, program := range slices.Sorted(maps.Keys(t.Verified)) {
		fmt.Fprintf(w, "| %s |", program)
		for i := range t.Columns {
			if n, ok := t.Verified[program][i]; ok {
				fmt.Fprintf(w, " %d |", n)
			} else {
				fmt.Fprint(w, " - |")
			}
		}
		fmt.Fprintln(w)
	}
}

// reasons are the table's footnotes, each once.
type reasons []string

func (r *reasons) number(reason string) int {
	reason = strings.ReplaceAll(reason, "|", "\\|")
	i := slices.Index(*r, reason)
	if i < 0 {
		i = len(*r)
		*r = append(*r, reason)
	}
	return i + 1
}

func (r reasons) write(w io.Writer) {
	for n, reason := range r {
		fmt.Fprintf(w, "\n%d. %s\n", n+1, reason)
	}
}

func (t *Table) cell(r *Row, col int, why *reasons) string {
	c, ok := r.Cells[col]
	switch {
	case !ok:
		return "-"
	case c.Outcome == "PASS":
		return fmt.Sprintf("%.1f", c.Took.Seconds())
	}
	text := c.Outcome
	if c.Outcome == "SKIP" {
		text = "skip"
	} else {
		text = fmt.Sprintf("**%s** %.1f", text, c.Took.Seconds())
	}
	if c.Why == "" {
		return text
	}
	return fmt.Sprintf("%s (%d)", text, why.number(c.Why))
}
