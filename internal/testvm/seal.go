package testvm

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// Seals say for which BPF objects the guests' tests were run last, on which kernels, and what failed
// there: the file .ci/seals, which step vm of .ci/run writes and step seals holds against the objects.
type Seals struct {
	Objects []Object
	Kernels []Kernel // by architecture and track, without Image
	Red     []Red
}

// Object is a committed BPF object.
type Object struct{ File, SHA256 string } // the file from the repository's root

// Red is a test that failed in a guest.
type Red struct {
	Arch, Track   string // of the guest's kernel; "-" if that is not known
	Package, Test string // the test may be "(all)": the guest ended, or did not begin
	Why           string // "" until a person has written it
}

func (r Red) String() string {
	return strings.TrimSpace(strings.Join([]string{"red", r.Arch, r.Track, r.Package, r.Test, r.Why}, " "))
}

// same: the same test of the same kernel.
func (r Red) same(o Red) bool { r.Why, o.Why = "", ""; return r == o }

// SealsFile is where they are, from the repository's root.
const SealsFile = ".ci/seals"

const sealsHead = `# What "make vm" proved last: it writes this file, and step seals of .ci/run holds the BPF objects
# against it. A test that failed is red, and wants a reason that is not the change's. "make vm" writes one
# where the kernel is another than the last time and the objects are not, and keeps one that a person wrote.
#
#   object SHA256 FILE
#   kernel ARCH TRACK RELEASE PACKAGE VERSION SHA256
#   red    ARCH TRACK PACKAGE TEST REASON
`

// ReadSeals reads the file; one that is not there has sealed nothing.
func ReadSeals(file string) (*Seals, error) {
	text, err := os.ReadFile(file)
	if os.IsNotExist(err) {
		return &Seals{}, nil
	}
	if err != nil {
		return nil, err
	}
	s := &Seals{}
	for i, line := range strings.Split(string(text), "\n") {
		w := strings.Fields(line)
		switch {
		case len(w) == 0 || strings.HasPrefix(w[0], "#"):
		case len(w) == 3 && w[0] == "object":
			s.Objects = append(s.Objects, Object{w[2], w[1]})
		case len(w) == 7 && w[0] == "kernel":
			s.Kernels = append(s.Kernels, Kernel{Arch: w[1], Track: w[2], Release: w[3], Package: w[4], Version: w[5], SHA256: w[6]})
		case len(w) >= 5 && w[0] == "red":
			s.Red = append(s.Red, Red{w[1], w[2], w[3], w[4], strings.Join(w[5:], " ")})
		default:
			return nil, fmt.Errorf("%s:%d: neither object, kernel nor red: %q", file, i+1, line)
		}
	}
	return s, nil
}

func (s *Seals) String() string {
	var b strings.Builder
	b.WriteString(sealsHead)
	b.WriteByte('\n')
	for _, o := range s.Objects {
		fmt.Fprintf(&b, "object %s  %s\n", o.SHA256, o.File) // as sha256sum has it
	}
	b.WriteByte('\n')
	for _, k := range s.Kernels {
		fmt.Fprintln(&b, "kernel", k.Arch, k.Track, k.Release, k.Package, k.Version, k.SHA256)
	}
	b.WriteByte('\n')
	for _, r := range s.Red {
		fmt.Fprintln(&b, r)
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// Kernel is the sealed one of a track; false if there is none, or s is nil.
func (s *Seals) Kernel(arch, track string) (Kernel, bool) {
	if s == nil {
		return Kernel{}, false
	}
	i := slices.IndexFunc(s.Kernels, func(k Kernel) bool { return k.Arch == arch && k.Track == track })
	if i < 0 {
		return Kernel{}, false
	}
	return s.Kernels[i], true
}

// Next are the seals after another run, on these kernels, in which these tests failed. A reason that a
// person wrote for the same test stands. Where a failure has none, and its kernel is not the one that was
// sealed, but the objects are, that is its reason.
func (s *Seals) Next(objects []Object, kernels []Kernel, red []Red) *Seals {
	next := &Seals{Objects: objects}
	changed := !slices.Equal(objects, s.Objects)
	for _, k := range kernels {
		if k.Image != "" && slices.ContainsFunc(Tracks, func(t Track) bool { return t.Sealed && t.Arch == k.Arch && t.Name == k.Track }) {
			k.Image = ""
			next.Kernels = append(next.Kernels, k)
		}
	}
	for _, r := range red {
		r = r.placed()
		if slices.ContainsFunc(next.Red, r.same) {
			continue
		}
		if i := slices.IndexFunc(s.Red, r.same); i >= 0 && !(changed && strings.HasPrefix(s.Red[i].Why, newKernel)) {
			r.Why = s.Red[i].Why
		}
		was, sealed := s.Kernel(r.Arch, r.Track)
		if is, ok := next.Kernel(r.Arch, r.Track); r.Why == "" && !changed && ok && sealed && is.SHA256 != was.SHA256 {
			r.Why = fmt.Sprintf("%s %s, before %s", newKernel, is.Version, was.Version)
		}
		next.Red = append(next.Red, r)
	}
	return next
}

// newKernel begins a reason that no person wrote.
const newKernel = "new kernel:"

// placed knows the track of a test that is a part named after it: TestPanic/6.12.
func (r Red) placed() Red {
	part := r.Test[strings.LastIndexByte(r.Test, '/')+1:]
	if r.Track == "-" && slices.ContainsFunc(Tracks, func(t Track) bool { return t.Arch == "amd64" && t.Name == part }) {
		r.Arch, r.Track = "amd64", part
	}
	return r
}

// Unexplained are the failures that want a person's reason.
func (s *Seals) Unexplained() []Red {
	return slices.DeleteFunc(slices.Clone(s.Red), func(r Red) bool { return r.Why != "" })
}

// Booted fails unless the cache's image of each kernel is the one that its index names.
func Booted(kernels []Kernel) error {
	for _, k := range kernels {
		if k.Image == "" {
			continue
		}
		if sum, err := sha256Of(k.Image); err != nil || sum != k.SHA256 {
			return fmt.Errorf("%s is not the image of %s (SHA-256 %s, want %s): %w", k.Image, indexName, sum, k.SHA256, err)
		}
	}
	return nil
}

// redVar names a file that is to hear of each test that fails in a guest, as a line of .ci/seals.
const redVar = "STACKSHOT_VM_RED"

// NoteRed adds failures to the file that the environment names, if it names one.
func NoteRed(red ...Red) error {
	file := os.Getenv(redVar)
	if file == "" || len(red) == 0 {
		return nil
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	for _, r := range red {
		fmt.Fprintln(f, r)
	}
	return f.Close()
}

// Red are the tests that failed in a guest with this kernel, and "(all)" if not all had their turn.
func (r *Result) Red(k Kernel, pkg string) []Red {
	var all []Red
	note := func(test string) { all = append(all, Red{k.Arch, k.Track, pkg, test, ""}) }
	for _, t := range r.Tests {
		if t.Outcome == "FAIL" {
			note(t.Name)
		}
	}
	if r.Running != "" {
		note(r.Running)
	}
	if !r.ownVerdict() || len(r.Tests) == 0 {
		note("(all)")
	}
	return all
}

// ownVerdict: the program passed, or ended because tests failed.
func (r *Result) ownVerdict() bool {
	return r.Verdict == Passed || r.Verdict == Failed && slices.ContainsFunc(r.Tests, func(t TestResult) bool { return t.Outcome == "FAIL" })
}

// Red are the tests that failed on machines of these columns, and the machines that there were not.
func (t *Table) Red(columns []Column) []Red {
	var all []Red
	for i, c := range columns {
		if _, absent := t.Absent[i]; absent {
			all = append(all, Red{c.Arch, c.Track, "-", "(all)", ""})
		}
	}
	for _, r := range t.Rows {
		for i, c := range columns {
			if cell, ran := r.Cells[i]; ran && cell.bad() {
				all = append(all, Red{c.Arch, c.Track, r.Package, r.Test, ""})
			}
		}
	}
	return all
}
