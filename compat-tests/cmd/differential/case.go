package main

import (
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Case is one way to ask one API. Ask prepares what it needs and sends its request, through s.at, in the version that
// is walked; what it returns is compared.
type Case struct {
	Name string
	Key  kmsg.Key
	// Good says that Kafka serves it without an error; a case that is not good must show one.
	Good bool
	// From and To bound the versions in which the case means something.
	From, To int16
	Ask      func(c *Case, s *side) (kmsg.Response, error)
	// Mask are fields that differ by nature, by their path without indexes.
	Mask []string
	// Unordered are arrays whose order means nothing, by their path without indexes.
	Unordered []string
	// Free says why the verdict of Good is not checked against the oracle's error codes.
	Free string
}

const newest = 1 << 14

func (c *Case) slug() string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' {
			return r
		}
		return '-'
	}, c.Name)
}

func (c *Case) masks(fields ...string) *Case { c.Mask = append(c.Mask, fields...); return c }

func (c *Case) unordered(fields ...string) *Case {
	c.Unordered = append(c.Unordered, fields...)
	return c
}

func (c *Case) from(v int16) *Case { c.From = v; return c }

func (c *Case) to(v int16) *Case { c.To = v; return c }

func (c *Case) free(why string) *Case { c.Free = why; return c }

// book collects cases.
type book struct{ cases []*Case }

func (b *book) good(key kmsg.Key, name string, ask func(*Case, *side) (kmsg.Response, error)) *Case {
	return b.add(key, name, true, ask)
}

func (b *book) bad(key kmsg.Key, name string, ask func(*Case, *side) (kmsg.Response, error)) *Case {
	return b.add(key, name, false, ask)
}

func (b *book) add(key kmsg.Key, name string, good bool, ask func(*Case, *side) (kmsg.Response, error)) *Case {
	c := &Case{Name: kmsg.NameForKey(int16(key)) + ": " + name, Key: key, Good: good, To: newest, Ask: ask}
	b.cases = append(b.cases, c)
	return c
}

// cases are all of them, by family, in the order of the families' files.
func cases() []*Case {
	b := &book{}
	for _, family := range []func(*book){
		produceCases, fetchCases, offsetCases, metadataCases, topicCases, configCases, groupCases, committedCases,
		consumerGroupCases, transactionCases, clusterCases, quotaCases, securityCases,
	} {
		family(b)
	}
	return b.cases
}
