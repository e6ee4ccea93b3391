package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"stackshot/snapshot"
)

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Show the version",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Printf("stackshot %s (%s, %s/%s)\n", snapshot.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}
