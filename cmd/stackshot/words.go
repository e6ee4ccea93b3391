package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"stackshot/internal/filter"
	"stackshot/snapshot"
)

// wordsOf gives the words of a command line with the command first: cobra does not find it behind
// all options. It is `report` if they name a file and no command.
func wordsOf(root *cobra.Command, args []string) ([]string, error) {
	if len(args) == 0 || isCommand(root, args[0]) { // each helper process begins here
		return args, nil
	}
	if n := len(args) - 1; n > 0 && (args[0] == cobra.ShellCompRequestCmd || args[0] == cobra.ShellCompNoDescRequestCmd) {
		if before, err := wordsOf(root, args[1:n]); err == nil { // the shell asks how the last one goes on
			return slices.Concat(args[:1], before, args[n:]), nil
		}
		return args, nil
	}
	look := newRoot() // its flags get values, and those of root none
	report, _, _ := look.Find([]string{"report"})
	report.InitDefaultHelpFlag()
	flags := look.Flags()
	flags.AddFlagSet(report.Flags())
	flags.SetInterspersed(false) // up to the first word
	look.FParseErrWhitelist.UnknownFlags = true
	_ = look.ParseFlags(args) // what is wrong is said where the words are read in earnest
	if flags.NArg() == 0 {
		return args, nil
	}
	word, rest, file := flags.Arg(0), flags.Args()[1:], flags.ArgsLenAtDash() >= 0
	if isCommand(root, word) && !file {
		return slices.Concat([]string{word}, args[:len(args)-len(rest)-1], rest), nil
	}
	if _, err := os.Stat(word); err != nil && word != stdoutName && !file && !strings.Contains(word, "/") {
		return nil, noCommand(root, word, "file")
	}
	var err error
	flags.Visit(func(f *pflag.Flag) {
		if report.Flags().Lookup(f.Name) == nil {
			err = usage(fmt.Sprintf("--%s does not go with a file to read: %q", f.Name, word))
		}
	})
	return append([]string{"report"}, args...), err
}

func isCommand(root *cobra.Command, word string) bool {
	c, _, _ := root.Find([]string{word})
	return c != root
}

// noCommand refuses a word that is no command of root, nor whatever else was wanted.
func noCommand(root *cobra.Command, word, other string) error {
	var names []string
	for _, c := range root.Commands() {
		if !c.Hidden {
			names = append(names, c.Name())
		}
	}
	hint := didYouMean("", word, names)
	if _, err := strconv.ParseUint(word, 10, 32); err == nil {
		hint = ": did you mean --pid " + word + "?"
	}
	return usage(fmt.Sprintf("%q is neither a command nor a %s%s", word, other, hint))
}

// didYouMean ends a message with those names that are near a word. before stands before each.
func didYouMean(before, word string, names []string) string {
	c := &cobra.Command{SuggestionsMinimumDistance: min(2, len(word)/2)} // letters; cobra knows what is near
	for _, name := range names {
		c.AddCommand(&cobra.Command{Use: name, Run: func(*cobra.Command, []string) {}})
	}
	near := c.SuggestionsFor(word)
	if len(near) == 0 || word == "" {
		return ""
	}
	return ": did you mean " + before + strings.Join(near, " or "+before) + "?"
}

// takes is a check of how many arguments a command has.
func takes(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return usage("an argument is missing: " + cmd.UseLine())
		case len(args) > most:
			return usage(fmt.Sprintf("%q is an argument too many: %s", args[most], cmd.UseLine()))
		}
		return nil
	}
}

// wanted says what a flag wants, by the type of its values.
var wanted = map[string]string{"int": "want a whole number", "intSlice": "want a whole number", "bool": "want true or false", "duration": "want a time, as in 250ms, 10s or 1h30m"}

// flagError is an error of the flags of cmd in the words of this program.
func flagError(cmd *cobra.Command, err error) error {
	if bad, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		reason := wanted[bad.GetFlag().Value.Type()]
		switch {
		case reason == "":
			reason = bad.Unwrap().Error()
		case errors.Is(err, strconv.ErrRange):
			reason = "out of range"
		}
		return &snapshot.OptionError{Option: bad.GetFlag().Name, Value: strconv.Quote(bad.GetValue()), Reason: reason}
	}
	if bad, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		return usage("--" + bad.GetFlag().Name + ": a value is missing")
	}
	if bad, ok := errors.AsType[*pflag.NotExistError](err); ok {
		name := bad.GetSpecifiedName()
		var names, owners []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		for _, c := range cmd.Commands() {
			if c.Flags().Lookup(name) != nil {
				owners = append(owners, "'"+c.CommandPath()+"'")
			}
		}
		if len(owners) > 0 {
			return fmt.Errorf("%w: it is of %s", err, strings.Join(owners, ", "))
		}
		return fmt.Errorf("%w%s", err, didYouMean("--", name, names))
	}
	return err
}

// mendHelp has cobra's command help refuse topics that there are not. root has its commands.
func mendHelp(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	help, _, _ := root.Find([]string{"help"})
	help.Use, help.Short, help.Long = "help [COMMAND]", "Show the help of a command, or of a topic", ""
	help.Args = func(_ *cobra.Command, args []string) error {
		c, rest, _ := root.Find(args)
		if c == root && len(rest) > 0 {
			return noCommand(root, rest[0], "topic")
		}
		return takes(0, len(args)-len(rest))(help, args)
	}
}

// whereTopic is a page of help.
func whereTopic() *cobra.Command {
	return &cobra.Command{Use: "where", Short: "How to choose threads: the language of --where", Long: filter.Help()}
}
