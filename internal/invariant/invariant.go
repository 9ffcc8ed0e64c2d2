// Package invariant panics when the program, not its input, is wrong.
//
// It is the only place that panics: a bad byte from disk or wire is an error.
package invariant

import "fmt"

// That panics with the formatted message unless ok holds.
func That(ok bool, format string, args ...any) {
	if !ok {
		panic("invariant broken: " + fmt.Sprintf(format, args...))
	}
}
