package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// ValueError is a value that its key does not take. Its text is Kafka's.
type ValueError struct {
	Key, Value string
	// Problem is what is wrong, in Kafka's words.
	Problem string
	// Allowed says in words what the key takes.
	Allowed string
	// whole says that Problem is the whole text.
	whole bool
}

func (e *ValueError) Error() string {
	if e.whole {
		return e.Problem
	}
	return fmt.Sprintf("Invalid value %s for configuration %s: %s", e.Value, e.Key, e.Problem)
}

// Parse reads text as the key's value: bool, string, int16, int32, int64,
// float64 or []string by its type, checked against what the key allows. The
// error is a *ValueError.
func (d *Decl) Parse(text string) (any, error) {
	trimmed := strings.TrimSpace(text)
	v, problem := parseAs(d.Type, text, trimmed)
	if problem != "" {
		return nil, &ValueError{Key: d.Name, Value: text, Problem: problem, Allowed: d.Allowed()}
	}
	if d.Check.problem != nil {
		if bad := d.Check.problem(d.Name, v); bad != nil {
			bad.Key, bad.Allowed = d.Name, d.Allowed()
			return nil, bad
		}
	}
	return v, nil
}

// Allowed says in words what the key takes.
func (d *Decl) Allowed() string {
	if d.Check.allowed == "" {
		return d.Type.words()
	}
	switch d.Type {
	case TypeInt, TypeShort, TypeLong, TypeDouble:
		if d.Check.complete {
			return d.Check.allowed
		}
		if d.Type == TypeDouble {
			return "a number " + d.Check.allowed
		}
		return "a whole number " + d.Check.allowed
	}
	return d.Check.allowed
}

// parseAs parses as Kafka's ConfigDef does; problem is Kafka's text.
func parseAs(t Type, text, trimmed string) (v any, problem string) {
	switch t {
	case TypeBoolean:
		switch {
		case strings.EqualFold(trimmed, "true"):
			return true, ""
		case strings.EqualFold(trimmed, "false"):
			return false, ""
		}
		return nil, "Expected value to be either true or false"
	case TypeInt, TypeShort, TypeLong:
		return parseWhole(t, trimmed)
	case TypeDouble:
		f, ok := parseJavaDouble(trimmed)
		if !ok {
			return nil, "Not a number of type DOUBLE"
		}
		return f, ""
	case TypeList:
		return splitList(trimmed)
	case TypePassword:
		return text, ""
	}
	if len(trimmed) > maxTextLen {
		return nil, fmt.Sprintf("Value must be at most %d characters", maxTextLen)
	}
	return trimmed, ""
}

func parseWhole(t Type, trimmed string) (any, string) {
	bits := map[Type]int{TypeInt: 32, TypeShort: 16, TypeLong: 64}[t]
	n, err := strconv.ParseInt(trimmed, 10, bits)
	if err != nil {
		return nil, "Not a number of type " + t.String()
	}
	switch t {
	case TypeInt:
		return int32(n), ""
	case TypeShort:
		return int16(n), ""
	}
	return n, ""
}

// parseJavaDouble reads what Java's Double.parseDouble reads, but for
// hexadecimal numbers: a trailing f or d is allowed, words like "inf" are not.
func parseJavaDouble(s string) (float64, bool) {
	body, sign := strings.TrimLeft(s, "+-"), 1.0
	if len(s)-len(body) > 1 {
		return 0, false
	}
	if strings.HasPrefix(s, "-") {
		sign = -1
	}
	switch body {
	case "NaN":
		return math.NaN(), true
	case "Infinity":
		return math.Inf(int(sign)), true
	}
	body = strings.TrimRight(body, "fFdD")
	if len(s)-len(body) > 2 || body == "" || strings.Trim(body, "0123456789.eE+-") != "" {
		return 0, false
	}
	f, err := strconv.ParseFloat(body, 64)
	if err != nil && !math.IsInf(f, 0) {
		return 0, false
	}
	return sign * f, true
}

// splitList splits at commas and trims each element, as Kafka does.
func splitList(trimmed string) (any, string) {
	if trimmed == "" {
		return []string{}, ""
	}
	if n := strings.Count(trimmed, ",") + 1; n > maxListLen {
		return nil, fmt.Sprintf("List of %d elements; at most %d are allowed", n, maxListLen)
	}
	parts := strings.Split(trimmed, ",")
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	return parts, ""
}

// Format shows a parsed value as Kafka does; ok is false for null.
func Format(v any) (text string, ok bool) {
	switch v := v.(type) {
	case nil:
		return "", false
	case bool:
		return strconv.FormatBool(v), true
	case string:
		return v, true
	case int16:
		return strconv.FormatInt(int64(v), 10), true
	case int32:
		return strconv.FormatInt(int64(v), 10), true
	case int64:
		return strconv.FormatInt(v, 10), true
	case float64:
		return formatJavaDouble(v), true
	case []string:
		return strings.Join(v, ","), true
	}
	return fmt.Sprint(v), true
}

// formatJavaDouble is Java's Double.toString.
func formatJavaDouble(f float64) string {
	abs := math.Abs(f)
	switch {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	case f == 0 || (abs >= 1e-3 && abs < 1e7):
		s := strconv.FormatFloat(f, 'f', -1, 64)
		if !strings.Contains(s, ".") {
			s += ".0"
		}
		return s
	}
	mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(f, 'e', -1, 64), "e")
	if !strings.Contains(mantissa, ".") {
		mantissa += ".0"
	}
	sign := ""
	if strings.HasPrefix(exponent, "-") {
		sign = "-"
	}
	return mantissa + "E" + sign + strings.TrimLeft(exponent, "+-0")
}
