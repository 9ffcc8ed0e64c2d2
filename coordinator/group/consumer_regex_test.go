package group

import (
	"fmt"
	"strings"
	"testing"

	"github.com/barnabas-mq/barnabas/internal/pattern"
)

// Whatever members subscribe by, the compiled expressions that are kept stay small.
func TestKeptExpressionsAreBounded(t *testing.T) {
	s := &step{Machine: New(Config{}, nil)}
	for i := range 200 {
		if _, err := s.regex(fmt.Sprintf("x%d", i) + strings.Repeat("y{1000}", 10)); err != nil {
			t.Fatal(err)
		}
		size := 0
		for _, re := range s.soft.regexes.byText {
			size += re.Size
		}
		if size > maxRegexesSize {
			t.Fatalf("%d expressions of %d instructions are kept", len(s.soft.regexes.byText), size)
		}
	}
	for range 3 * pattern.MaxSize {
		if _, err := s.regex(strings.Repeat("y{1000}", 10)); err != nil {
			t.Fatal(err)
		}
	}
	if len(s.soft.regexes.byText) == 0 || s.soft.regexes.size > maxRegexesSize {
		t.Fatalf("%d expressions are kept, %d instructions", len(s.soft.regexes.byText), s.soft.regexes.size)
	}
	if _, err := s.regex("("); err == nil {
		t.Fatal("an expression that is none")
	}
}
