package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"stackshot/internal/report"
	"stackshot/snapshot"
)

// layoutFlags are those that sort what the text form shows.
func (r *reporting) layoutFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar((*string)(&r.o.GroupBy), "group-by", string(report.ByState), "how the text sorts threads: "+either(report.Groupings)+
		" (stack: one entry for each stack, most threads first; wait: by what is waited for; task: each task with all its threads)")
	f.StringVar((*string)(&r.o.SortBy), "sort-by", "", "what stands first in a section of the text: "+either(report.Orders)+
		" (age: longest in its state; cpu: most CPU time); otherwise what is most interesting")
	completeWith(cmd, "group-by", report.Groupings...)
	completeWith(cmd, "sort-by", report.Orders...)
}

// checkLayout refuses values that there are not, and those that the format would ignore.
func (r *reporting) checkLayout() error {
	for _, flag := range []struct {
		name, value, normal string
		values              []string
	}{
		{"group-by", string(r.o.GroupBy), string(report.ByState), report.Groupings},
		{"sort-by", string(r.o.SortBy), "", report.Orders},
	} {
		switch {
		case flag.value == flag.normal:
		case !slices.Contains(flag.values, flag.value):
			return &snapshot.OptionError{Option: flag.name, Value: flag.value, Reason: "want " + either(flag.values)}
		case r.format != "text":
			return usage("--" + flag.name + " is for --format text, and the format is " + r.format)
		}
	}
	return nil
}

// either lists values: "a, b or c".
func either(values []string) string {
	last := len(values) - 1
	return strings.Join(values[:last], ", ") + " or " + values[last]
}
