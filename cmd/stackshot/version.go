package main

import (
	"fmt"
	"os"
	"runtime"

	"github.com/spf13/cobra"

	"stackshot/internal/licenses"
	"stackshot/snapshot"
)

func versionCommand() *cobra.Command {
	licences := false
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Show the version, or the licences of what is in this program",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if licences {
				_, err := os.Stdout.WriteString(licenses.Text)
				return err
			}
			_, err := fmt.Printf("stackshot %s (%s, %s/%s)\n", snapshot.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
	cmd.Flags().BoolVar(&licences, "licenses", false, "the licences of stackshot and of everything compiled into it")
	return cmd
}
