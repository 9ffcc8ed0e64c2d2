package pattern

import (
	"errors"
	"regexp"
	"regexp/syntax"
	"strings"
)

const (
	// MaxSize bounds an expression, in characters and as compiled: counted
	// repetitions make large ones of short texts. A few hundred names in one
	// expression are far below it.
	MaxSize = 1 << 15
	// maxClasses bounds the classes of Unicode in one expression, each of which is a
	// table of a few KB as soon as it is read.
	maxClasses = 64
)

// ErrTooLarge says that an expression is beyond the bounds.
var ErrTooLarge = errors.New("the expression is too large")

// Pattern is an expression that has to match a whole text.
type Pattern struct {
	*regexp.Regexp
	// Size is about how many instructions it was compiled to, each some 50 bytes.
	Size int
}

// Compile compiles an expression of RE2, which Kafka's are and Go's too: without
// look-around and back references.
func Compile(expr string) (Pattern, error) {
	if len(expr) > MaxSize || strings.Count(expr, `\p`)+strings.Count(expr, `\P`) > maxClasses {
		return Pattern{}, ErrTooLarge
	}
	parsed, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return Pattern{}, err
	}
	n := size(parsed)
	if n > MaxSize {
		return Pattern{}, ErrTooLarge
	}
	// Not the text itself: a quotation that it leaves open would go on behind it.
	re, err := regexp.Compile(`\A(?:` + parsed.String() + `)\z`)
	return Pattern{re, n}, err
}

func size(re *syntax.Regexp) int {
	n := 1 + len(re.Rune)
	for _, sub := range re.Sub {
		n += size(sub)
	}
	if re.Op == syntax.OpRepeat {
		n *= max(re.Max, re.Min, 1)
	}
	return min(n, MaxSize+1)
}
