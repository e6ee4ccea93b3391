package main

import (
	"errors"

	"stackshot/internal/topology"
	"stackshot/snapshot"
)

// Exit codes.
const (
	exitWhole      = 0
	exitFailed     = 1
	exitUsage      = 2
	exitIncomplete = 3
)

// exitError is an error that leads to an exit code of its own.
type exitError struct {
	error
	code int
}

func (e *exitError) Unwrap() error { return e.error }

// partial is an error that says what is missing from a result that is there.
func partial(err error) error { return &exitError{err, exitIncomplete} }

// usage is an error about the command line.
func usage(text string) error { return &exitError{errors.New(text), exitUsage} }

func exitCode(err error) int {
	var coded *exitError
	switch {
	case err == nil:
		return exitWhole
	case isUsage(err):
		return exitUsage
	case errors.As(err, &coded):
		return coded.code
	}
	return exitFailed
}

// isUsage reports whether an error of a package below is about a flag's value.
func isUsage(err error) bool {
	var (
		option *snapshot.OptionError
		cpu    *topology.CPUError
	)
	return errors.As(err, &option) || errors.As(err, &cpu) ||
		errors.Is(err, topology.ErrBadList) || errors.Is(err, topology.ErrBadClass) || errors.Is(err, topology.ErrNoneToStop)
}
