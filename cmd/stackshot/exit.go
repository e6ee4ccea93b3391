package main

import (
	"errors"
	"io"

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

// incompleteError says what is missing from a result that is there.
type incompleteError struct{ what error }

func (e *incompleteError) Error() string { return e.what.Error() }
func (e *incompleteError) Unwrap() error { return e.what }

// usageError is a value that cannot be used.
type usageError struct{ what error }

func (e *usageError) Error() string { return e.what.Error() }
func (e *usageError) Unwrap() error { return e.what }

func exitCode(err error) int {
	var incomplete *incompleteError
	switch {
	case err == nil:
		return exitWhole
	case isUsage(err):
		return exitUsage
	case errors.As(err, &incomplete):
		return exitIncomplete
	}
	return exitFailed
}

// isUsage tells the errors of packages below that are about a flag's value.
func isUsage(err error) bool {
	var (
		usage  *usageError
		option *snapshot.OptionError
		cpu    *topology.CPUError
	)
	return errors.As(err, &usage) || errors.As(err, &option) || errors.As(err, &cpu) ||
		errors.Is(err, topology.ErrBadList) || errors.Is(err, topology.ErrBadClass) || errors.Is(err, topology.ErrNoneToStop)
}

// complain writes an error, one line for each that was joined into it.
func complain(w io.Writer, err error) { say(w, "%v", err) }
