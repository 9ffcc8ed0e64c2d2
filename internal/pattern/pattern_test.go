package pattern

import (
	"runtime"
	"strings"
	"testing"
)

func TestCompileMatchesTheWhole(t *testing.T) {
	p, err := Compile("a|bc")
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{"a": true, "bc": true, "ac": false, "a\n": false, "": false} {
		if p.MatchString(text) != want {
			t.Errorf("%q matches: %v", text, !want)
		}
	}
	if _, err := Compile("a)(?:b"); err == nil {
		t.Error("parentheses that only the anchors around them close")
	}
}

// What an expression opens ends with it, and what it sets counts for itself only.
func TestCompileWhatIsLeftOpen(t *testing.T) {
	for expr, matches := range map[string]string{`\Qa.b`: "a.b", `a\Q.*`: "a.*", `(?i)ab|c`: "AB", `(?U)a+`: "aaa", `\p{Greek}{2}`: "αβ", ``: ""} {
		p, err := Compile(expr)
		if err != nil {
			t.Errorf("%s: %v", expr, err)
			continue
		}
		if !p.MatchString(matches) || p.MatchString("axb") || p.MatchString(matches+"\n") {
			t.Errorf("%s, compiled to %s", expr, p)
		}
	}
}

// Each of these is small and would take hundreds of megabytes.
func TestCompileIsBounded(t *testing.T) {
	for name, expr := range map[string]string{
		"counted classes":     strings.Repeat(`\pL{1000}`, 3000),
		"one counted class":   `\pL{1000}`,
		"counted letters":     strings.Repeat(`y{1000}`, 40),
		"counted in counted":  strings.Repeat(`(a{30}){30}`, 40),
		"classes":             strings.Repeat(`\PL`, 10_000),
		"at least":            strings.Repeat(`x{1000,}`, 40),
		"a long text":         strings.Repeat("a", MaxSize+1),
		"many alternatives":   strings.Repeat("a|", MaxSize/2+1),
		"classes in brackets": "[" + strings.Repeat(`\pL`, 100) + "]",
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Compile(expr)
		runtime.ReadMemStats(&after)
		if err != ErrTooLarge {
			t.Errorf("%s: %v", name, err)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > 8<<20 {
			t.Errorf("%s: %d KiB to say so", name, took>>10)
		}
	}
}

func TestHundredsOfNamesCompile(t *testing.T) {
	expr := strings.Repeat("orders.of.a.long.name.that.people.give|", 500) + "last"
	if p, err := Compile(expr); err != nil || p.Size > MaxSize {
		t.Fatalf("size %d: %v", p.Size, err)
	}
}
