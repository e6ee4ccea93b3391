package main

import (
	"os"
	"time"

	"github.com/spf13/cobra"

	"stackshot/internal/publish"
	"stackshot/internal/urgency"
	"stackshot/snapshot"
)

// A helper process is this program again, under a hidden command. Its file 0 is a socket for
// requests and answers (internal/spawn). It has no other file of ours but those it works on,
// so whoever waits for the end of our output does not wait for the helper.
const (
	saveVerb = "__save" // writes a file, C2; its one argument is for people
	readVerb = "__read" // reads program files, C6
)

// saveName is the writer's name in the kernel, at most 15 bytes. A snapshot may show it.
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
	return helperCommand(saveVerb, saveName, takes(1, 1), func() error { return publish.Serve(os.Stdin, os.Stdout) })
}

func readCommand() *cobra.Command {
	return helperCommand(readVerb, "stackshot-read", takes(0, 0), snapshot.ServeFiles)
}

func helperCommand(verb, name string, args cobra.PositionalArgs, serve func() error) *cobra.Command {
	return &cobra.Command{
		Use:    verb,
		Hidden: true,
		Args:   args,
		RunE: func(*cobra.Command, []string) error {
			os.WriteFile("/proc/self/comm", []byte(name), 0) // the main thread's name is that of the task
			// It has a budget of its own.
			if urgency.Inherited() {
				urgency.Begin()
			}
			return serve()
		},
	}
}
