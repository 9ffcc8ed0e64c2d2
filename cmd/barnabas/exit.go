package main

import (
	"errors"
	"fmt"
)

// Exit codes, as documented in `barnabas --help`.
const (
	exitOK      = 0
	exitFailure = 1 // the command was right, but it did not work
	exitUsage   = 2 // a wrong flag, environment value, config line or argument
)

// usageError is a mistake in how the command was called.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }

func (e *usageError) Unwrap() error { return e.err }

// usagef makes a usageError: it says what was wrong and what would be right.
func usagef(format string, args ...any) error {
	return &usageError{fmt.Errorf(format, args...)}
}

// exitCode is the process's exit code for the error that a command returned.
func exitCode(err error) int {
	if err == nil {
		return exitOK
	}
	var usage *usageError
	if errors.As(err, &usage) {
		return exitUsage
	}
	return exitFailure
}
