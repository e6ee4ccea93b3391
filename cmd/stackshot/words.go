package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"stackshot/internal/filter"
	"stackshot/snapshot"
)

// withReport puts `report` before the words of a command line that name a file and no command.
func withReport(args []string) []string {
	if len(args) == 0 || strings.HasPrefix(args[0], "__") { // a command that help does not list
		return args
	}
	root := newRoot() // to look at the words alone
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	word := args[0]
	if strings.HasPrefix(word, "-") && word != stdoutName {
		report, _, _ := root.Find([]string{"report"})
		root.Flags().AddFlagSet(report.Flags())
		root.FParseErrWhitelist.UnknownFlags = true
		if root.ParseFlags(args) != nil || root.Flags().NArg() == 0 {
			return args
		}
		word = root.Flags().Arg(0)
	}
	if c, _, _ := root.Find([]string{word}); c != root {
		return args
	}
	if _, err := os.Stat(word); word != stdoutName && errors.Is(err, fs.ErrNotExist) {
		return args
	}
	return append([]string{"report"}, args...)
}

// noCommand refuses a word that is no command of root, nor whatever else was wanted.
func noCommand(root *cobra.Command, word, other string) error {
	return usage(fmt.Sprintf("%q is neither a command nor a %s%s", word, other, didYouMean("", root.SuggestionsFor(word))))
}

// suggestionDistance is how many letters a word may be from the one that was meant.
const suggestionDistance = 2

// didYouMean ends a message with words that are near, if there are any.
func didYouMean(before string, near []string) string {
	if len(near) == 0 {
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

// flagError is an error of the flags in the words of this program.
func flagError(cmd *cobra.Command, err error) error {
	if bad, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		reason := wanted[bad.GetFlag().Value.Type()]
		switch {
		case reason == "":
			reason = bad.Unwrap().Error()
		case errors.Is(err, strconv.ErrRange):
			reason = "the number is too large"
		}
		return &snapshot.OptionError{Option: bad.GetFlag().Name, Value: strconv.Quote(bad.GetValue()), Reason: reason}
	}
	if bad, ok := errors.AsType[*pflag.NotExistError](err); ok && bad.GetSpecifiedShortnames() == "" {
		flags := &cobra.Command{SuggestionsMinimumDistance: suggestionDistance} // cobra knows what is near
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			flags.AddCommand(&cobra.Command{Use: f.Name, Run: func(*cobra.Command, []string) {}})
		})
		return fmt.Errorf("%w%s", err, didYouMean("--", flags.SuggestionsFor(bad.GetSpecifiedName())))
	}
	return err
}

// bareWords checks the arguments of the program itself, which withReport did not take for files.
func bareWords(root *cobra.Command, args []string) error {
	if len(args) > 0 {
		return noCommand(root, args[0], "file")
	}
	return nil
}

// mendHelp has cobra's command help refuse topics that there are not.
func mendHelp(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	help, _, _ := root.Find([]string{"help"})
	help.Use, help.Short, help.Long = "help [COMMAND]", "Show the help of a command, or of a topic", ""
	help.Args = func(_ *cobra.Command, args []string) error {
		if c, rest, _ := root.Find(args); c == root && len(rest) > 0 {
			return noCommand(root, rest[0], "topic")
		}
		return nil
	}
}

// whereTopic is a page of help.
func whereTopic() *cobra.Command {
	return &cobra.Command{Use: "where", Short: "How to choose threads: the language of --where", Long: filter.Help()}
}
