package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Check is what a key allows beyond its type.
type Check struct {
	// allowed is said in refusals and in the documentation.
	allowed string
	// complete says that allowed needs no "a whole number" before it.
	complete bool
	// problem is nil when the value is allowed.
	problem func(key string, v any) *ValueError
}

// number reads any whole number or float for comparison.
func number(v any) (float64, string) {
	text, _ := Format(v)
	switch v := v.(type) {
	case int16:
		return float64(v), text
	case int32:
		return float64(v), text
	case int64:
		return float64(v), text
	case float64:
		return v, text
	}
	return 0, text
}

// AtLeast allows numbers from least on.
func AtLeast(least float64) Check {
	return Check{allowed: "of at least " + short(least), problem: func(_ string, v any) *ValueError {
		return outside(v, least, 0, false)
	}}
}

// Between allows numbers from least to most.
func Between(least, most float64) Check {
	return Check{allowed: fmt.Sprintf("from %s to %s", short(least), short(most)), problem: func(_ string, v any) *ValueError {
		return outside(v, least, most, true)
	}}
}

func outside(v any, least, most float64, bounded bool) *ValueError {
	n, text := number(v)
	switch {
	case n < least:
		return &ValueError{Value: text, Problem: "Value must be at least " + short(least)}
	case bounded && n > most:
		return &ValueError{Value: text, Problem: "Value must be no more than " + short(most)}
	}
	return nil
}

func short(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// GzipLevel allows gzip's levels and -1, the library's default.
func GzipLevel() Check {
	return Check{allowed: "from 1 to 9, or -1", problem: func(_ string, v any) *ValueError {
		if n, text := number(v); n != -1 && (n < 1 || n > 9) {
			return &ValueError{Value: text, Problem: "Value must be between 1 and 9 or equal to -1"}
		}
		return nil
	}}
}

// OneOf allows the given texts.
func OneOf(texts ...string) Check {
	return Check{allowed: orList(texts), problem: func(_ string, v any) *ValueError {
		if s, _ := v.(string); !slices.Contains(texts, s) {
			return &ValueError{Value: s, Problem: "String must be one of: " + strings.Join(texts, ", ")}
		}
		return nil
	}}
}

// OneOfFold allows the given texts in any case.
func OneOfFold(texts ...string) Check {
	return Check{allowed: orList(texts) + " (in any case)", problem: func(_ string, v any) *ValueError {
		s, _ := v.(string)
		if !slices.ContainsFunc(texts, func(t string) bool { return strings.EqualFold(t, s) }) {
			return &ValueError{Value: s, Problem: "String must be one of (case insensitive): " + strings.Join(texts, ", ")}
		}
		return nil
	}}
}

// EachOf allows lists of the given texts.
func EachOf(texts ...string) Check {
	return Check{allowed: "a list of " + orList(texts), problem: func(key string, v any) *ValueError {
		for _, s := range v.([]string) {
			if s == "" {
				return emptyElement(key)
			}
			if !slices.Contains(texts, s) {
				return &ValueError{Value: s, Problem: "String must be one of: " + strings.Join(texts, ", ")}
			}
		}
		return nil
	}}
}

// NoEmpty allows lists whose elements are not empty.
func NoEmpty() Check {
	return Check{problem: func(key string, v any) *ValueError {
		if slices.Contains(v.([]string), "") {
			return emptyElement(key)
		}
		return nil
	}}
}

func emptyElement(key string) *ValueError {
	return &ValueError{Problem: fmt.Sprintf("Configuration '%s' values must not be empty.", key), whole: true}
}

// NotEmpty allows texts that are not empty.
func NotEmpty() Check {
	return Check{allowed: "text that is not empty", problem: func(_ string, v any) *ValueError {
		if s, _ := v.(string); s == "" {
			return &ValueError{Problem: "String must be non-empty"}
		}
		return nil
	}}
}

// ThrottledReplicas allows '*' or a list of partition:broker, with empty elements as
// in Kafka.
func ThrottledReplicas() Check {
	return Check{allowed: "'*' or a list of partition:broker", problem: func(key string, v any) *ValueError {
		list := v.([]string)
		if len(list) == 1 && list[0] == "*" {
			return nil
		}
		for _, pair := range list {
			partition, broker, found := strings.Cut(pair, ":")
			if pair != "" && (!found || !digits(partition) || !digits(broker)) {
				return &ValueError{
					Value: "[" + strings.Join(list, ", ") + "]",
					Problem: key + " must be the literal '*' or a list of replicas in the following format: " +
						"[partitionId]:[brokerId],[partitionId]:[brokerId],...",
				}
			}
		}
		return nil
	}}
}

func digits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// orList joins texts as "a, b or c".
func orList(texts []string) string {
	if len(texts) < 2 {
		return strings.Join(texts, "")
	}
	return strings.Join(texts[:len(texts)-1], ", ") + " or " + texts[len(texts)-1]
}

// topicCheck makes a Check for Key.TopicCheck.
func topicCheck(c Check) *Check { return &c }

// shareOffsetReset allows what share.auto.offset.reset takes.
func shareOffsetReset() Check {
	const allowed = "latest, earliest or by_duration:PnDTnHnMn.nS"
	return Check{allowed: allowed, problem: func(_ string, v any) *ValueError {
		s, _ := v.(string)
		low := strings.ToLower(s)
		if low == "latest" || low == "earliest" || strings.HasPrefix(low, "by_duration:p") {
			return nil
		}
		return &ValueError{Value: s, Problem: "Invalid share auto offset reset strategy: " + s}
	}}
}
