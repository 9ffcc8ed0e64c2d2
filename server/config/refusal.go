package config

import (
	"fmt"
	"strings"
)

// Problem is one setting that is not taken.
type Problem struct {
	Setting
	// Why says what is wrong and what is allowed.
	Why string
}

// String is one line: key, value, where it came from, and why not.
func (p Problem) String() string {
	return fmt.Sprintf("%s: %s", p.Setting, p.Why)
}

// String is the setting with where it came from.
func (s Setting) String() string {
	value := s.Value
	if d := Broker(s.Key); d != nil && d.Sensitive() {
		value = "(hidden)"
	}
	return s.from(s.Key + "=" + value)
}

// name is the key with where it came from: the value of a key that nobody knows
// may be a secret.
func (s Setting) name() string { return s.from(s.Key) }

func (s Setting) from(text string) string {
	if s.Where == "" {
		return text
	}
	return text + " (" + s.Where + ")"
}

// Refusal is a configuration that the broker does not start with: every problem
// at once, so that they can be mended at once.
type Refusal struct{ Problems []Problem }

func (r *Refusal) Error() string {
	lines := make([]string, len(r.Problems))
	for i, p := range r.Problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}
