package protocol

import (
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
)

// Error is an error that knows the Kafka code a client shall see. Whoever knows
// the context makes it; nobody translates one code into another.
type Error struct {
	Kafka *kerr.Error
	Msg   string
	Cause error
}

// Errorf makes an Error; %w in the format keeps the cause.
func Errorf(code *kerr.Error, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Kafka: code, Msg: err.Error(), Cause: errors.Unwrap(err)}
}

func (e *Error) Error() string { return e.Kafka.Message + ": " + e.Msg }

// Unwrap gives errors.Is both the Kafka error and the cause.
func (e *Error) Unwrap() []error {
	if e.Cause == nil {
		return []error{e.Kafka}
	}
	return []error{e.Kafka, e.Cause}
}

// Code is the Kafka error code of err: 0 for nil, UNKNOWN_SERVER_ERROR (-1) for
// an error that carries none.
func Code(err error) int16 {
	if err == nil {
		return 0
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Kafka.Code
	}
	var k *kerr.Error
	if errors.As(err, &k) {
		return k.Code
	}
	return kerr.UnknownServerError.Code
}

// Message is the text for a response's error message field: null for nil.
func Message(err error) *string {
	if err == nil {
		return nil
	}
	msg := err.Error()
	var e *Error
	if errors.As(err, &e) {
		msg = e.Msg
	}
	return &msg
}
