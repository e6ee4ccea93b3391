package main

import (
	"os"
	"time"

	"github.com/spf13/cobra"

	"stackshot/internal/publish"
	"stackshot/snapshot"
)

// Helper processes are this program again, by a hidden command: with a socket as file 0,
// which requests and answers go through (internal/spawn), and no other file of ours but
// what they work on, so whoever waits for our output does not wait for them.
const (
	saveVerb = "__save" // writes a file, C2; its one argument is for people
	readVerb = "__read" // reads program files, C6
)

// saveName is the writer's name in the kernel, where it may show in a snapshot: 15
// bytes at most.
const saveName = "stackshot-save"

var fileReader = []string{"/proc/self/exe", readVerb}

// fileWriter writes files within --write-timeout.
func fileWriter(timeout time.Duration) publish.Writer {
	return publish.Writer{
		Command: []string{"/proc/self/exe", saveVerb}, Timeout: timeout,
		Warn: func(text string) { say(os.Stderr, "%s", text) },
	}
}

func saveCommand() *cobra.Command {
	return helperCommand(saveVerb, saveName, cobra.ExactArgs(1), func() error {
		if isUrgent() { // as is who asks: with a budget of its own
			var u urgency
			u.begin()
		}
		return publish.Serve(os.Stdin, os.Stdout)
	})
}

func readCommand() *cobra.Command {
	return helperCommand(readVerb, "stackshot-read", cobra.NoArgs, snapshot.ServeFiles)
}

func helperCommand(verb, name string, args cobra.PositionalArgs, serve func() error) *cobra.Command {
	return &cobra.Command{
		Use:    verb,
		Hidden: true,
		Args:   args,
		RunE: func(*cobra.Command, []string) error {
			os.WriteFile("/proc/self/comm", []byte(name), 0) // of the main thread: tasks are listed by it
			return serve()
		},
	}
}
