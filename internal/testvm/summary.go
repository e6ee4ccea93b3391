package testvm

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Summary is the table for a document: what each machine came to; how many tests
// passed wherever they ran; the others, on the machines that run every test; and what
// the shape of the other machines decides.
func (t *Table) Summary() string {
	var b strings.Builder
	var whole, shaped []int
	for i, name := range t.Columns {
		if strings.HasSuffix(name, " ×2") {
			whole = append(whole, i)
		} else {
			shaped = append(shaped, i)
		}
	}
	fmt.Fprintf(&b, "%s:\n\n| machine | passed | skipped | failed |\n|---|---:|---:|---:|\n", t.Date)
	for i, name := range t.Columns {
		passed, skipped, failed := t.tally(i)
		fmt.Fprintf(&b, "| %s | %d | %d | %d |\n", name, passed, skipped, failed)
	}
	t.everywhere(&b, whole)
	var why reasons
	t.part(&b, "not everywhere", whole, &why, func(r *Row) bool { return !r.passes(whole) })
	t.part(&b, "by shape", shaped, &why, func(r *Row) bool { return !r.skips(shaped) })
	why.write(&b)
	return b.String()
}

// everywhere counts by package what passed on each of these machines.
func (t *Table) everywhere(b *strings.Builder, cols []int) {
	count := map[string]int{}
	for _, r := range t.Rows {
		if r.passes(cols) {
			count[r.Package]++
		}
	}
	var list []string
	for _, pkg := range slices.Sorted(maps.Keys(count)) {
		list = append(list, fmt.Sprintf("%d of `%s`", count[pkg], pkg))
	}
	if len(list) > 0 {
		fmt.Fprintf(b, "\nPassed on every machine of 2 CPUs: %s.\n", strings.Join(list, ", "))
	}
}

// part is a table of some rows and columns; none where there are no such rows.
func (t *Table) part(b *strings.Builder, title string, cols []int, why *reasons, in func(*Row) bool) {
	headed := false
	for _, r := range t.Rows {
		if !r.ran(cols) || !in(r) {
			continue
		}
		if !headed {
			fmt.Fprintf(b, "\n| %s |", title)
			for _, c := range cols {
				fmt.Fprintf(b, " %s |", t.Columns[c])
			}
			fmt.Fprintf(b, "\n|---|%s\n", strings.Repeat("---|", len(cols)))
			headed = true
		}
		fmt.Fprintf(b, "| `%s` %s |", r.Package, r.Test)
		for _, c := range cols {
			fmt.Fprintf(b, " %s |", t.cell(r, c, why))
		}
		b.WriteByte('\n')
	}
}

// ran says whether the test came to anything on one of these machines.
func (r *Row) ran(cols []int) bool {
	return slices.ContainsFunc(cols, func(c int) bool { return r.Cells[c].Outcome != "" })
}

// passes says whether it passed on each of them that it ran on, and on one.
func (r *Row) passes(cols []int) bool {
	return r.ran(cols) && !slices.ContainsFunc(cols, func(c int) bool { o := r.Cells[c].Outcome; return o != "" && o != "PASS" })
}

// skips says whether it was skipped on each of them that it ran on.
func (r *Row) skips(cols []int) bool {
	return !slices.ContainsFunc(cols, func(c int) bool { o := r.Cells[c].Outcome; return o != "" && o != "SKIP" })
}
