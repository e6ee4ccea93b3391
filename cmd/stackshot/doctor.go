package main

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"stackshot/internal/account"
	"stackshot/internal/procfs"
	"stackshot/internal/urgency"
	"stackshot/snapshot"
)

// diagnosis is what doctor found; docs/take-json.md describes it as JSON.
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

// option is something that works here or does not: an engine, an isolation level.
type option struct {
	Name string `json:"name"`
	OK   bool   `json:"ok"`
	Why  string `json:"why"` // why it does not work; "" where OK
}

// choice is what `take` does unless told otherwise.
type choice struct {
	Engine     string `json:"engine"`
	Isolation  string `json:"isolation"`
	MaxPauseNs int64  `json:"max_pause_ns"`
	Why        string `json:"why"` // why no better engine was chosen; "" where it is the best
	// Warnings that every file will hold, those about rights that this process lacks too.
	// What chose the engine is not among them: Why says that.
	Warnings []account.Warning `json:"warnings"`
}

// probe is a function or a type of program that the engines ask of the kernel.
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
	Cost    string `json:"cost"` // what a capture loses by it; "" where OK
}

// doctor reads files under a time limit, because /boot may be on a disk that hangs.
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
		Short: "Say what works on this machine, and what is lost by what does not",
		Long: "Try every engine and isolation level, say which of them auto takes, and list what\n" +
			"decides about them.\n\n" +
			"Exit code 0: the machine can be stopped (engine trap or pull, with SCHED_FIFO); 3: only\n" +
			"a lesser way works.",
		Args: takes(0, 0),
		RunE: func(*cobra.Command, []string) error {
			if err := liftLimits(); err != nil { // as take does
				return err
			}
			urgency.Limit(maxStop)
			d := newDoctor()
			defer d.proc.Readers.Close()
			d.examine()
			if err := d.write(os.Stdout, asJSON); err != nil {
				return err
			}
			return d.verdict()
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// examine finds out everything. The checks of the stop come after the engines: they compare the
// kernel's watchdogs with the pause and isolation that auto chose. What `arm` could hook comes last.
func (d *doctor) examine() {
	d.uname()
	d.run("kernel", kernelChecks)
	d.capabilities()
	d.cpus()
	d.run("machine", machineChecks)
	d.engines()
	d.run("machine", stopChecks)
	d.hooks()
	d.run("panic", panicChecks)
}

// verdict is an error where the machine cannot be stopped, or its CPUs may come late to
// the stop.
func (d *doctor) verdict() error {
	stops := works(d.Engines, snapshot.EngineTrap) || works(d.Engines, snapshot.EnginePull)
	if stops && works(d.Isolation, snapshot.IsolationFIFO) {
		return nil
	}
	return partial(errors.New("not the best way: engine " + d.Auto.Engine + ", isolation " + d.Auto.Isolation))
}

func works(list []option, name string) bool {
	return slices.ContainsFunc(list, func(o option) bool { return o.Name == name && o.OK })
}

func (d *doctor) write(w io.Writer, asJSON bool) error {
	if asJSON {
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", " ")
		return enc.Encode(d.diagnosis)
	}
	_, err := io.WriteString(w, d.text())
	return err
}
