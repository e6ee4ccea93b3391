package testvm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Column is one machine of the matrix.
type Column struct {
	Arch, Track, Layout string
	CPUs                int // 0: the layout's
}

func (c Column) String() string {
	s := c.Track
	if c.Arch != "amd64" {
		s += " " + c.Arch
	}
	if c.Layout != "" {
		return s + " " + c.Layout
	}
	return fmt.Sprintf("%s ×%d", s, c.CPUs)
}

// Quick are the machines of every change.
var Quick = []Column{
	{"amd64", "6.12", "", 2},
	{"amd64", newest, "", 2},
}

// All are all machines: every kernel with 2 and 8 CPUs, every layout on one
// kernel that stops with interrupts on (6.12) and one that does with them off;
// on arm64 its own, and the one in which a CPU runs on, for its unwinder differs.
func All() []Column {
	var all []Column
	for _, t := range Tracks {
		for _, n := range []int{2, 8} {
			all = append(all, Column{t.Arch, t.Name, "", n})
		}
	}
	for _, track := range []string{"6.12", newest} {
		all = append(all, Column{"amd64", track, "", 1}, Column{"amd64", track, "", 4})
		for _, l := range Layouts {
			if l.Arch != "arm64" {
				all = append(all, Column{"amd64", track, l.Name, 0})
			}
		}
	}
	return append(all, Column{"arm64", "6.12", "biglittle", 0}, Column{"arm64", "6.12", "isolcpus", 0})
}

// whole are the columns that run every test; a layout runs those of Matrix.Narrow.
func (c Column) whole() bool { return c.Layout == "" && c.CPUs == 2 }

// Matrix is a run of tests on machines.
type Matrix struct {
	Columns  []Column
	Packages []string      // folders; with :REGEXP behind, only those of their tests
	Args     []string      // go test flags, for each package
	Narrow   string        // -run on the columns that are not whole, beside Layout.Tests; "": all tests there too
	Save     string        // file that gets the table after each column; "": none
	Factor   int           // as in Test
	Limit    time.Duration // of each guest; what does not fit goes on in another
	Silence  time.Duration // of a test, which then counts as hung
	Cache    string        // of kernels
	LogDir   string
	Progress io.Writer // a line a guest
}

// Cell is what a test came to on a machine.
type Cell struct {
	Outcome string // PASS, FAIL, SKIP, or a verdict in capitals
	Took    time.Duration
	Why     string
}

// Row is one test; its cells are by column.
type Row struct {
	Package, Test string
	Cells         map[int]Cell
}

// Table is what a matrix came to.
type Table struct {
	Date    string // of the end of the last column
	Columns []string
	Absent  map[int]string // columns that were not run, and why
	Rows    []*Row
	Guests  []string // one line each
	// Verified instructions by BPF program and column.
	Verified map[string]map[int]int
	Doctors  map[int]*Doctor // by column
}

func newTable() *Table {
	return &Table{Absent: map[int]string{}, Verified: map[string]map[int]int{}, Doctors: map[int]*Doctor{}}
}

// maxResumed is how often a package is gone on with on one machine.
const maxResumed = 8

// Run runs every package on every machine, one guest at a time.
func (m *Matrix) Run(ctx context.Context, b *Builder) (*Table, error) {
	t := newTable()
	for i, col := range m.Columns {
		t.Columns = append(t.Columns, col.String())
		g := Config{CPUs: col.CPUs, Limit: m.Limit}
		var err, qerr error
		if g.Layout, err = LayoutNamed(col.Layout, col.Arch); err != nil {
			return nil, err
		}
		g.Kernel, err = FindKernel(m.Cache, col.Arch, col.Track)
		_, qerr = emulatorOf(col.Arch)
		if err = errors.Join(err, qerr); err != nil {
			if required(col) {
				return nil, err
			}
			t.Absent[i] = err.Error()
			continue
		}
		for _, pkg := range m.Packages {
			if err := m.fill(ctx, b, t, i, pkg, g); err != nil {
				return nil, err
			}
		}
		if err := t.save(m.Save); err != nil {
			return nil, err
		}
	}
	return t, nil
}

func required(c Column) bool {
	return slices.ContainsFunc(Tracks, func(t Track) bool { return t.Required && t.Arch == c.Arch && t.Name == c.Track })
}

// fill runs one package on one machine. A test that ends the guest gets its
// verdict, and the others run in another guest without it. A guest that only
// came to its limit is followed by another for the tests that have not ended.
func (m *Matrix) fill(ctx context.Context, b *Builder, t *Table, col int, pkg string, g Config) error {
	pkg, only, _ := strings.Cut(pkg, ":")
	var ended []string
	for n := 0; ; n++ {
		g.LogDir = filepath.Join(m.LogDir, fileName(t.Columns[col]), fileName(pkg)+fmt.Sprintf("-%d", n))
		args := slices.Clone(m.Args)
		if run := first(only, m.narrow(m.Columns[col], g.Layout)); run != "" {
			args = append(args, "-run", run)
		}
		if len(ended) > 0 {
			args = append(args, "-skip", "^("+strings.Join(ended, "|")+")$")
		}
		r, err := Run(ctx, b, Test{Package: pkg, Args: args, Factor: m.Factor, Silence: m.Silence, Guest: g})
		if err != nil {
			return err
		}
		line := fmt.Sprintf("%s, %s: %v", t.Columns[col], pkg, r)
		t.Guests = append(t.Guests, line)
		fmt.Fprintln(m.Progress, line)
		t.count(col, r.Verified)
		if r.Doctor != nil {
			t.Doctors[col] = r.Doctor
		}
		for _, end := range r.Tests {
			t.row(pkg, end.Name).Cells[col] = Cell{end.Outcome, end.Took, end.Why}
			ended = append(ended, regexp.QuoteMeta(end.Name))
		}
		if r.Verdict == Hung && r.Why == overLimit && len(r.Tests) > 0 && n < maxResumed {
			continue
		}
		culprit := t.verdict(col, pkg, r)
		if culprit == "" || n >= maxResumed {
			return nil
		}
		ended = append(ended, regexp.QuoteMeta(culprit))
	}
}

// narrow is -run on a machine that does not run everything.
func (m *Matrix) narrow(col Column, l Layout) string {
	if col.whole() || m.Narrow == "" {
		return ""
	}
	if len(l.Tests) == 0 {
		return m.Narrow
	}
	return m.Narrow + "|^Test(" + strings.Join(l.Tests, "|") + ")"
}

// verdict fills the cell of the test that ended the guest and returns its name,
// or "" if there is nothing to go on with.
func (t *Table) verdict(col int, pkg string, r *Result) string {
	outcome := strings.ToUpper(string(r.Verdict))
	switch {
	case r.Verdict == Passed:
	case r.Running != "":
		t.row(pkg, r.Running).Cells[col] = Cell{outcome, r.Took, r.Why}
		return r.Running
	case !r.ownVerdict():
		t.row(pkg, "(all)").Cells[col] = Cell{outcome, r.Took, r.Why}
	}
	return ""
}

func (t *Table) count(col int, verified map[string]int) {
	for program, n := range verified {
		if t.Verified[program] == nil {
			t.Verified[program] = map[int]int{}
		}
		t.Verified[program][col] = max(t.Verified[program][col], n)
	}
}

// row finds a test's row or adds it.
func (t *Table) row(pkg, test string) *Row {
	for _, r := range t.Rows {
		if r.Package == pkg && r.Test == test {
			return r
		}
	}
	r := &Row{pkg, test, map[int]Cell{}}
	t.Rows = append(t.Rows, r)
	return r
}

func fileName(s string) string {
	return strings.NewReplacer("/", "_", " ", "-", "×", "smp").Replace(s)
}
