package main

import (
	"github.com/spf13/cobra"

	"stackshot/snapshot"
)

// A reader process is this program again, as "stackshot __read", with a socket
// as file 0, shared memory as file 1, and no other file of ours (C6).
const readVerb = "__read"

var fileReader = []string{"/proc/self/exe", readVerb}

func readCommand() *cobra.Command {
	return &cobra.Command{
		Use:    readVerb,
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			nameThread("stackshot-read")
			return snapshot.ServeFiles()
		},
	}
}
