package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"stackshot/internal/manual"
)

// sections are those of a command's man page that help has not.
func sections(cmd *cobra.Command) (list []manual.Section, also []string) {
	page := manual.Name(cmd)
	if cmd.Runnable() {
		list = append(list, manual.Section{Title: "EXIT STATUS", Entries: exitStatus(cmd.Name())})
	}
	if env := environment(cmd); len(env) > 0 {
		list = append(list, manual.Section{Title: "ENVIRONMENT", Entries: env})
	}
	if entries := manFiles[cmd.Name()]; entries != nil {
		list = append(list, manual.Section{Title: "FILES", Entries: entries})
	}
	for _, c := range manual.Pages(cmd.Root()) {
		if manual.Name(c) != page {
			also = append(also, manual.Name(c)+"("+manual.SectionOf(c)+")")
		}
	}
	return list, append(also, manAlso[cmd.Name()]...)
}

// manAlso are pages of others.
var manAlso = map[string][]string{
	"stackshot": {"proc(5)", "capabilities(7)"}, "hang": {"proc(5)"}, "list": {"ls(1)"}, "dump": {"od(1)"}, "arm": {"crash(8)", "kexec(8)", "proc(5)"}, "extract": {"crash(8)", "makedumpfile(8)"},
}

// exitStatus is the exit codes of a command, by its name.
func exitStatus(name string) (list [][2]string) {
	partial := "Partial: the result is incomplete. A message says why."
	switch name {
	case "report", "latency":
		partial = "Partial: the result is incomplete, or no thread of the file matches --where. A message says which."
	case "stackshot", "take", "hang":
		partial = "Partial: the result is incomplete, or was saved somewhere else, or nothing was stopped though --engine procfs was not given. A message says which."
		if name != "take" {
			partial = strings.Replace(partial, ". ", ", or no thread of a file matches --where. ", 1)
		}
	case "arm":
		partial = "Partial: it ended in order, and a capture is lost, incomplete or saved somewhere else, or a request came while the last one was not saved. A message said which."
	case "extract":
		partial = "Partial: a file is written, and lacks something: the kernel did not come to the end of its threads, or the dump is damaged. A message says what."
	case "doctor":
		partial = "The machine can be stopped only in a lesser way, or not at all."
	case "list":
		partial = "A file could not be read, or not to its end. It is listed with the reason."
	}
	list = [][2]string{
		{"0", "Success: the result is whole."}, {"1", "Failed: there is no result."},
		{"2", "The command line has an error, and nothing was done."},
	}
	if name != "version" {
		list = append(list, [2]string{"3", partial})
	}
	if name == "hang" || name == "stackshot" {
		list = append(list, [2]string{"4", "Of stackshot hang: something hangs. It goes before 3."})
	}
	return list
}

// environment is the variables that a command reads.
func environment(cmd *cobra.Command) (list [][2]string) {
	if cmd.Flags().Lookup("no-pager") != nil {
		list = append(list,
			[2]string{"STACKSHOT_PAGER, PAGER", "The pager for output to a terminal; the first that is set. Empty or cat: none. If neither is set, it is less."},
			[2]string{"LESS", "Options of less. If it is not set, the pager gets FRX: it ends at once if all fits on the screen, and shows colours."},
			[2]string{"TERM", "If it is dumb or empty, nothing is paged or coloured."})
	}
	if slices.Contains([]string{"stackshot", "take", "report", "hang", "arm"}, cmd.Name()) {
		list = append(list, [2]string{"NO_COLOR", "If it is set and not empty, there are no colours."})
	}
	if f := cmd.Flags().Lookup("lines"); f != nil {
		list = append(list, [2]string{"DEBUGINFOD_URLS", "Servers that are asked for debug files, as of debuginfod."})
	}
	return list
}

// manFiles are the files that a command uses beside those of its arguments.
var manFiles = map[string][][2]string{
	"stackshot": captureFiles, "take": captureFiles, "hang": captureFiles,
	"arm": {
		{"DIR/stackshot-HOST-TIME.kcdata.zst", "A snapshot, of mode 0600. TIME is in UTC."},
		{"DIR/stackshot-HOST-BOOT.frames", "Where the memory lies into which the kernel records, for extract --frames. A clean end removes it."},
		{"/run/stackshot.armed", "Who has armed the machine: there is one at a time."},
		{"/dev/shm", "Where a snapshot goes if its target cannot be written. A message names the file."},
	},
}

var captureFiles = [][2]string{
	{"./stackshot-HOST-TIME.kcdata.zst", "The snapshot, of mode 0600, unless -o names another file. TIME is in UTC."},
	{"/dev/shm", "Where the snapshot goes if its target cannot be written. A message names the file."},
	{"/run/stackshot.lock", "Keeps captures at the same time apart. If /run/stackshot is a directory of root, it is the file lock in it."},
	{"/sys/kernel/btf/vmlinux", "The kernel's types, without which nothing can be stopped."},
}
