package main

import (
	"fmt"
	"strings"
	"time"

	"stackshot/snapshot"
)

// text is the diagnosis for people.
func (d *doctor) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "stackshot doctor: %s, Linux %s %s\n", d.Host, d.Release, d.Arch)
	writeOptions(&b, "engines, best first", d.Engines)
	writeOptions(&b, "isolation levels, best first", d.Isolation)
	d.Auto.write(&b)
	if len(d.Missing) > 0 {
		writeOptions(&b, "programs that this kernel refuses", d.Missing)
	}
	var asked []option
	for _, p := range d.Probes {
		asked = append(asked, option{fmt.Sprintf("%s (Linux %s)", p.Name, p.Since), p.OK, p.Why})
	}
	writeOptions(&b, "what the engines ask of the kernel", asked)
	section := ""
	for _, f := range d.Facts {
		if f.Section != section {
			section = f.Section
			fmt.Fprintf(&b, "\n%s\n", section)
		}
		f.write(&b)
	}
	return b.String()
}

func writeOptions(b *strings.Builder, title string, list []option) {
	fmt.Fprintf(b, "\n%s\n", title)
	for _, o := range list {
		if o.OK {
			fmt.Fprintf(b, "  ok  %s\n", o.Name)
		} else {
			fmt.Fprintf(b, "  no  %s: %s\n", o.Name, o.Why)
		}
	}
}

func (c choice) write(b *strings.Builder) {
	bound := "nothing is stopped"
	if c.Engine != snapshot.EngineProcfs {
		bound = "stops for at most " + time.Duration(c.MaxPauseNs).String()
	}
	fmt.Fprintf(b, "\nauto takes: engine %s, isolation %s, %s\n", c.Engine, c.Isolation, bound)
	if c.Why != "" {
		fmt.Fprintf(b, "  because %s\n", c.Why)
	}
	for _, w := range c.Warnings {
		fmt.Fprintf(b, "  the file will say %s: %s\n", w.Code, w.Text)
	}
}

// write marks what costs something with an exclamation mark.
func (f fact) write(b *strings.Builder) {
	if f.OK {
		fmt.Fprintf(b, "    %-26s %s\n", f.Name, f.Value)
	} else {
		fmt.Fprintf(b, "!   %-26s %s: %s\n", f.Name, f.Value, f.Cost)
	}
}
