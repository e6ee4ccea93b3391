package testvm

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Doctor is what `stackshot doctor --json` said in a guest, as far as the table
// of kernels needs it (docs/take-json.md).
type Doctor struct {
	Release   string   `json:"release"`
	Arch      string   `json:"arch"`
	Engines   []Option `json:"engines"`
	Isolation []Option `json:"isolation"`
	Auto      struct {
		Engine    string `json:"engine"`
		Isolation string `json:"isolation"`
		Why       string `json:"why"`
	} `json:"auto"`
	Probes []Option `json:"probes"`
}

// Option is an engine, an isolation level, or a function of the kernel.
type Option struct {
	Name  string `json:"name"`
	OK    bool   `json:"ok"`
	Why   string `json:"why"`
	Since string `json:"since"`
}

// doctor takes what a test logged of stackshot doctor.
func (r *Result) doctor(logged string) {
	m := doctorLine.FindStringSubmatch(logged)
	if m == nil {
		return
	}
	d := &Doctor{}
	if json.Unmarshal([]byte(m[1]), d) == nil {
		r.Doctor = d
	}
}

// Support is the table of kernels: what auto takes on each, what the verifier
// went through, and in whose words something better is refused.
func (t *Table) Support() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, by `vmtest matrix`:\n\n", t.Date)
	b.WriteString("| kernel | architecture | `auto` takes | tests passed | skipped | failed | refused |\n|---|---|---|---:|---:|---:|---|\n")
	var why reasons
	for _, i := range t.kernels() {
		d := t.Doctors[i]
		passed, skipped, failed := t.tally(i)
		fmt.Fprintf(&b, "| %s | %s | `%s`, `%s` | %d | %d | %d | %s |\n", d.Release, d.Arch, d.Auto.Engine, d.Auto.Isolation,
			passed, skipped, failed, d.refused(&why))
	}
	why.write(&b)
	t.counts(&b)
	return b.String()
}

// counts is a row a BPF program, for the machines that the table of kernels has.
func (t *Table) counts(b *strings.Builder) {
	cols := t.kernels()
	b.WriteString("\n| instructions verified |")
	for _, i := range cols {
		fmt.Fprintf(b, " %s |", t.Columns[i])
	}
	fmt.Fprintf(b, "\n|---|%s\n", strings.Repeat("---:|", len(cols)))
	for _, program := range slices.Sorted(maps.Keys(t.Verified)) {
		fmt.Fprintf(b, "| `%s` |", program)
		for _, i := range cols {
			fmt.Fprintf(b, " %s |", t.instructions(program, i))
		}
		b.WriteString("\n")
	}
}

// kernels are the columns of kernels that run every test and said what they are.
func (t *Table) kernels() []int {
	var all []int
	for i, name := range t.Columns {
		if t.Doctors[i] != nil && strings.HasSuffix(name, " ×2") {
			all = append(all, i)
		}
	}
	return all
}

// refused names what the kernel lacks, with footnotes for its words.
func (d *Doctor) refused(why *reasons) string {
	var out []string
	for _, p := range d.Probes {
		if !p.OK {
			out = append(out, fmt.Sprintf("`%s` (%d)", p.Name, why.number(p.Why)))
		}
	}
	if len(out) == 0 {
		return "nothing"
	}
	return strings.Join(out, ", ")
}

func (t *Table) tally(col int) (passed, skipped, failed int) {
	for _, r := range t.Rows {
		switch c, ok := r.Cells[col]; {
		case !ok:
		case c.Outcome == "PASS":
			passed++
		case c.Outcome == "SKIP":
			skipped++
		default:
			failed++
		}
	}
	return passed, skipped, failed
}

func (t *Table) instructions(program string, col int) string {
	if n, ok := t.Verified[program][col]; ok {
		return fmt.Sprint(n)
	}
	return "-"
}
