// Package manual makes man pages out of the texts that --help shows, so that both say the same.
// A pure function of a command and a few sections that help has not.
package manual

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Book is what all pages share.
type Book struct {
	Version string // of the program
	Date    string // as 2026-11-23
	// Sections gives those that a command has beside its help, in order, and the names of the
	// pages to see also, as "stackshot(1)".
	Sections func(cmd *cobra.Command) (sections []Section, also []string)
}

// Section is a heading and its text: paragraphs with an empty line between them. Lines that
// begin with two spaces stand as they are.
type Section struct {
	Title   string
	Text    string
	Entries [][2]string // a term, and what it means
}

// Name is the name of a command's page.
func Name(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// SectionOf is the section of the manual that has the page: 1 of a command, 7 of a topic of help.
func SectionOf(cmd *cobra.Command) string {
	if cmd.Runnable() {
		return "1"
	}
	return "7"
}

// Pages are the commands and topics that have a page: cmd and all below it that help lists, but for
// those that cobra adds.
func Pages(cmd *cobra.Command) []*cobra.Command {
	list := []*cobra.Command{cmd}
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() && c.Name() != "help" && c.Name() != "completion" || c.IsAdditionalHelpTopicCommand() {
			list = append(list, Pages(c)...)
		}
	}
	return list
}

// Page writes the man page of a command.
func (b *Book) Page(w io.Writer, cmd *cobra.Command) error {
	r := &roff{}
	r.raw(fmt.Sprintf(`.TH "%s" "%s" "%s" "%s" "%s"`, escape(strings.ToUpper(Name(cmd))), SectionOf(cmd), b.Date, escape(b.Version), volumes[SectionOf(cmd)]))
	r.macro("SH", "NAME")
	r.raw(escape(Name(cmd)) + ` \- ` + escape(cmd.Short))
	if cmd.Runnable() {
		r.macro("SH", "SYNOPSIS")
		r.synopsis(cmd)
	}
	r.macro("SH", "DESCRIPTION")
	r.text(long(cmd))
	if cmd.HasAvailableSubCommands() {
		r.commands(cmd)
	}
	if cmd.Runnable() {
		cmd.InitDefaultHelpFlag()
		r.options(cmd.LocalFlags())
	}
	sections, also := b.Sections(cmd)
	for _, s := range sections {
		r.macro("SH", s.Title)
		r.text(s.Text)
		r.entries(s.Entries)
	}
	if cmd.Example != "" {
		r.macro("SH", "EXAMPLES")
		r.text(cmd.Example)
	}
	r.macro("SH", "SEE ALSO")
	for i, name := range also {
		page, section, _ := strings.Cut(strings.TrimSuffix(name, ")"), "(")
		end := ","
		if i == len(also)-1 {
			end = ""
		}
		r.raw(fmt.Sprintf(".BR %s (%s)%s", escape(page), section, end))
	}
	_, err := io.WriteString(w, r.String())
	return err
}

// volumes are the titles of the manual's sections.
var volumes = map[string]string{"1": "User Commands", "7": "Miscellaneous"}

func long(cmd *cobra.Command) string {
	if cmd.Long != "" {
		return cmd.Long
	}
	return cmd.Short + "."
}

// synopsis has the command in bold and what is to be put in its place in italics.
func (r *roff) synopsis(cmd *cobra.Command) {
	line := bold(cmd.CommandPath())
	if cmd.HasAvailableLocalFlags() {
		line += " [" + italic("OPTION") + "]..."
	}
	_, args, _ := strings.Cut(cmd.Use, " ")
	for _, word := range strings.Fields(args) {
		line += " " + upper.ReplaceAllStringFunc(escape(word), italicEscaped)
	}
	r.raw(line)
	if cmd.HasAvailableSubCommands() {
		r.raw(".br")
		r.raw(bold(cmd.CommandPath()) + " " + italic("COMMAND") + " ...")
	}
}

// commands lists what is below a command.
func (r *roff) commands(cmd *cobra.Command) {
	r.macro("SH", "COMMANDS")
	for _, c := range Pages(cmd)[1:] {
		r.macro("TP")
		r.raw(fmt.Sprintf(`%s(%s)`, bold(Name(c)), SectionOf(c)))
		r.fill(c.Short + ".")
	}
}

func (r *roff) options(flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	r.macro("SH", "OPTIONS")
	flags.VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && f.Deprecated == "" {
			r.option(f)
		}
	})
}

func (r *roff) option(f *pflag.Flag) {
	value, usage := pflag.UnquoteUsage(f)
	tag := bold("--" + f.Name)
	if f.Shorthand != "" {
		tag = bold("-"+f.Shorthand) + ", " + tag
	}
	if word, ok := words[value]; ok {
		value = word
	}
	if value != "" {
		tag += " " + italic(strings.ToUpper(value))
	}
	r.macro("TP")
	r.raw(tag)
	if !zero[f.DefValue] {
		usage += " (default: " + f.DefValue + ")"
	}
	r.fill(strings.ReplaceAll(usage, "\n", " "))
}

// words are what stands for a value, by pflag's word for its type.
var words = map[string]string{"string": "word", "strings": "word", "int": "number", "ints": "number"}

// zero are the values that help does not call a default.
var zero = map[string]bool{"": true, "0": true, "false": true, "[]": true, "0s": true}
