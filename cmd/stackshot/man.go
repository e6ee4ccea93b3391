package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"stackshot/internal/manual"
	"stackshot/internal/show"
	"stackshot/snapshot"
)

// manCommand writes the man pages: `make install` runs it, and who has only the binary may.
func manCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "man DIR",
		Short:  "Write the man pages into a directory",
		Hidden: true,
		Args:   takes(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			book := &manual.Book{Version: "stackshot " + snapshot.Version(), Date: published().Format("2006-01-02"), Sections: sections}
			for _, c := range manual.Pages(cmd.Root()) {
				if err := writePage(book, c, args[0]); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

func writePage(book *manual.Book, cmd *cobra.Command, dir string) error {
	path := filepath.Join(dir, manual.Name(cmd)+"."+manual.SectionOf(cmd))
	f, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("%s: %w", path, show.WithoutPath(err))
	}
	if err := errors.Join(book.Page(f, cmd), f.Close()); err != nil {
		return fmt.Errorf("%s: %w", path, show.WithoutPath(err))
	}
	return nil
}

// published is the date of the pages: $SOURCE_DATE_EPOCH, or that of the commit, or today.
func published() time.Time {
	if s, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64); err == nil {
		return time.Unix(s, 0).UTC()
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if t, err := time.Parse(time.RFC3339, s.Value); s.Key == "vcs.time" && err == nil {
				return t
			}
		}
	}
	return time.Now().UTC()
}
