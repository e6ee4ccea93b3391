package main

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"stackshot/internal/report"
	"stackshot/kcdata"
	"stackshot/snapshot"
)

// maxPlain bounds what a file may unpack to, so that a small one cannot take
// all memory.
const maxPlain = 1 << 30

// readFile reads and unpacks a snapshot; "-" is standard input.
func readFile(name string) ([]byte, error) {
	data, err := readAll(name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, bare(err))
	}
	plain, _, err := kcdata.Unwrap(data, maxPlain)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return plain, nil
}

func readAll(name string) ([]byte, error) {
	in := os.Stdin
	if name != stdoutName {
		var err error
		if in, err = os.Open(name); err != nil {
			return nil, err
		}
		defer in.Close()
	}
	b, err := io.ReadAll(io.LimitReader(in, maxPlain+1))
	if err != nil {
		return nil, fmt.Errorf("read at offset %#x: %w", len(b), bare(err))
	}
	if len(b) == 0 {
		return nil, fmt.Errorf("offset 0x0: %w: the file is empty", kcdata.ErrTruncated)
	}
	return b, nil
}

func reportCommand() *cobra.Command {
	var (
		format string
		o      report.Options
	)
	cmd := &cobra.Command{
		Use:   "report FILE",
		Short: "Show the report of a snapshot file (- for standard input)",
		Args:  cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			return showFile(os.Stdout, args[0], format, o)
		},
	}
	cmd.Flags().StringVar(&format, "format", "text", "text or json")
	cmd.Flags().IntSliceVar(&o.Pids, "pid", nil, "only this task; may be repeated")
	cmd.Flags().BoolVar(&o.ShowSelf, "self", false, "show the snapshotter's own threads")
	completeWith(cmd, "format", "text", "json")
	return cmd
}

// showFile writes a file's report. Of a plain file that breaks off it shows
// what there is, and fails.
func showFile(w io.Writer, name, format string, o report.Options) error {
	write := report.Text
	switch format {
	case "text":
		term := terminalOptions(os.Stdout)
		o.Width, o.Color = term.Width, term.Color
	case "json":
		write = report.JSON
	default:
		return &snapshot.OptionError{Option: "format", Value: format, Reason: "want text or json"}
	}
	for _, pid := range o.Pids {
		if pid < 0 {
			return &snapshot.OptionError{Option: "pid", Value: fmt.Sprint(pid), Reason: "want a task's id"}
		}
	}
	done := progress(false, "reading "+name)
	plain, err := readFile(name)
	if err != nil {
		done()
		return err
	}
	s, broken := kcdata.ParseSnapshot(plain)
	done()
	if s != nil && (broken == nil || len(s.Tasks) > 0) {
		if err := write(w, s, o); err != nil {
			return fmt.Errorf("write the report: %w", bare(err))
		}
	}
	if broken != nil {
		return fmt.Errorf("%s: %w", name, broken)
	}
	return nil
}

func dumpCommand() *cobra.Command {
	trace := false
	cmd := &cobra.Command{
		Use:   "dump FILE",
		Short: "Show every item of a snapshot, or of any KCData file (- for standard input)",
		Args:  cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if trace {
				return showTrace(os.Stdout, args[0])
			}
			done := progress(false, "reading "+args[0])
			plain, err := readFile(args[0])
			done()
			if err != nil {
				return err
			}
			if err := kcdata.Text(os.Stdout, plain); err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&trace, "trace", false, "show the snapshotter's own last events instead (take --trace keeps them)")
	return cmd
}
