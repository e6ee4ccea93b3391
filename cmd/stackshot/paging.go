package main

import (
	"io"
	"os"

	"github.com/spf13/cobra"

	"stackshot/internal/pager"
)

// paging is how a command that reads files shows what it writes. A capture never pages: on a
// machine that hangs, the pager's program may be on the disk that does.
type paging struct{ off bool } // --no-pager

func (p *paging) flag(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&p.off, "no-pager", false, "on a terminal, do not page the output by $STACKSHOT_PAGER, $PAGER or less")
}

// run has write write to out, through a pager if out is a terminal. It returns when the pager
// has ended. Width and colours are the terminal's either way.
func (p *paging) run(out io.Writer, write func(out io.Writer) error) error {
	terminal, ok := out.(*os.File)
	if !ok || p.off {
		return write(out)
	}
	command, asked := pager.Command(terminal)
	if command == "" {
		return write(out)
	}
	w := pager.New(terminal, command, asked, func(text string) { say(os.Stderr, "%s", text) })
	err := write(w)
	w.Close()
	return err
}

// unlessGone is the outcome of writing: it is no error that the reader left early.
func unlessGone(err error) error {
	if err != nil && readerGone(err) {
		return nil
	}
	return err
}
