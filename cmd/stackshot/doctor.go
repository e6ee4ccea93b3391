package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"stackshot/internal/account"
	"stackshot/internal/procfs"
	"stackshot/internal/show"
	"stackshot/snapshot"
)

// diagnosis is what doctor found; as JSON, docs/take-json.md.
type diagnosis struct {
	Format    string   `json:"format"`
	Version   int      `json:"version"`
	Host      string   `json:"host"`
	Release   string   `json:"release"`
	Arch      string   `json:"arch"`
	Engines   []option `json:"engines"`
	Isolation []option `json:"isolation"`
	Auto      choice   `json:"auto"`
	Probes    []probe  `json:"probes"`
	Missing   []option `json:"programs_missing"`
	Facts     []fact   `json:"facts"`
}

// option is an engine or an isolation level, best first.
type option struct {
	Name string `json:"name"`
	OK   bool   `json:"ok"`
	Why  string `json:"why"` // why not; "" where OK
}

// choice is what `take` does unless told otherwise.
type choice struct {
	Engine     string `json:"engine"`
	Isolation  string `json:"isolation"`
	MaxPauseNs int64  `json:"max_pause_ns"`
	Why        string `json:"why"` // not a better engine; "" where it is the best
	// What the file will say besides of what this process may not do.
	Warnings []account.Warning `json:"warnings"`
}

// probe is a function or a type of program that the kernel was asked for.
type probe struct {
	option
	Since string `json:"since"` // the Linux release that brought it
}

// fact is one thing about the machine that decides what a snapshot can hold.
type fact struct {
	Section string `json:"section"`
	Name    string `json:"name"`
	Value   string `json:"value"`
	OK      bool   `json:"ok"`
	Cost    string `json:"cost"` // what it costs; "" where OK
}

// doctor reads files under a time limit: /boot may be on a disk that hangs.
type doctor struct {
	proc procfs.FS
	boot procfs.FS
	sys  procfs.FS
	diagnosis
}

const doctorReadLimit = time.Second

func newDoctor() *doctor {
	r := procfs.NewReaders(0, doctorReadLimit)
	return &doctor{
		proc: procfs.FS{Readers: r}, boot: procfs.FS{Root: "/boot", Readers: r}, sys: procfs.FS{Root: "/sys", Readers: r},
		diagnosis: diagnosis{Format: "stackshot-doctor", Version: 1, Missing: []option{}, Probes: []probe{}},
	}
}

func doctorCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Say what this machine allows, and what it costs where it does not",
		Long: "Try every engine and isolation level, say which of them auto takes, and list what\n" +
			"decides about them.\n\n" +
			"Exit code 0: the machine can be stopped (engine trap or pull, with SCHED_FIFO); 3: only\n" +
			"a lesser way works.",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := liftLimits(); err != nil { // as take does
				return err
			}
			limitRealTime(maxStop)
			d := newDoctor()
			defer d.proc.Readers.Close()
			d.examine()
			write := d.text
			if asJSON {
				write = d.json
			}
			if err := write(os.Stdout); err != nil {
				return err
			}
			return d.verdict()
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "one JSON object")
	return cmd
}

func (d *doctor) examine() {
	d.kernel()
	d.capabilities()
	d.machine()
	d.engines()
	d.stop()
}

// verdict is an error where the machine cannot be stopped, or its CPUs may
// come late to the stop.
func (d *doctor) verdict() error {
	stops := works(d.Engines, snapshot.EngineTrap) || works(d.Engines, snapshot.EnginePull)
	if stops && works(d.Isolation, snapshot.IsolationFIFO) {
		return nil
	}
	return &incompleteError{errors.New("not the best way: engine " + d.Auto.Engine + ", isolation " + d.Auto.Isolation)}
}

func works(list []option, name string) bool {
	return slices.ContainsFunc(list, func(o option) bool { return o.Name == name && o.OK })
}

// good and bad file a fact.
func (d *doctor) good(section, name, value string) {
	d.Facts = append(d.Facts, fact{section, name, show.Clean(value), true, ""})
}

func (d *doctor) bad(section, name, value, cost string) {
	d.Facts = append(d.Facts, fact{section, name, show.Clean(value), false, show.Clean(cost)})
}

func (d *doctor) json(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	return enc.Encode(d.diagnosis)
}

func (d *doctor) text(w io.Writer) error {
	p := &printer{w: w}
	p.line("stackshot doctor: %s, Linux %s %s", d.Host, d.Release, d.Arch)
	p.options("engines, best first", d.Engines)
	p.options("isolation levels, best first", d.Isolation)
	p.auto(d.Auto)
	if len(d.Missing) > 0 {
		p.options("programs that this kernel refuses", d.Missing)
	}
	p.probes(d.Probes)
	section := ""
	for _, f := range d.Facts {
		if f.Section != section {
			section = f.Section
			p.line("\n%s", section)
		}
		p.fact(f)
	}
	return p.err
}

// printer writes lines and keeps the first error.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) line(format string, args ...any) {
	if _, err := fmt.Fprintf(p.w, format+"\n", args...); p.err == nil {
		p.err = err
	}
}

func (p *printer) options(title string, list []option) {
	p.line("\n%s", title)
	for _, o := range list {
		p.option(o.Name, o)
	}
}

func (p *printer) option(name string, o option) {
	if o.OK {
		p.line("  ok  %s", name)
	} else {
		p.line("  no  %s: %s", name, o.Why)
	}
}

func (p *printer) auto(c choice) {
	bound := "nothing is stopped"
	if c.Engine != snapshot.EngineProcfs {
		bound = "stops for at most " + time.Duration(c.MaxPauseNs).String()
	}
	p.line("\nauto takes: engine %s, isolation %s, %s", c.Engine, c.Isolation, bound)
	if c.Why != "" {
		p.line("  because %s", c.Why)
	}
	for _, w := range c.Warnings {
		p.line("  the file will say %s: %s", w.Code, w.Text)
	}
}

func (p *printer) probes(list []probe) {
	p.line("\nwhat the engines ask of the kernel")
	for _, o := range list {
		p.option(fmt.Sprintf("%s (Linux %s)", o.Name, o.Since), o.option)
	}
}

func (p *printer) fact(f fact) {
	mark := "  "
	if !f.OK {
		mark = "! "
	}
	line := fmt.Sprintf("%s  %-26s %s", mark, f.Name, f.Value)
	if f.Cost != "" {
		line += ": " + f.Cost
	}
	p.line("%s", line)
}
