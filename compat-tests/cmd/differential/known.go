package main

import (
	"path"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// known is a difference that is meant. Case and Path are patterns as of path.Match, with ** for anything.
type known struct {
	Case string
	Path string
	Why  string
}

func (k *known) covers(d difference) bool {
	return matches(k.Case, d.Case) && matches(k.Path, d.Path)
}

func matches(pattern, s string) bool {
	if pattern == "**" {
		return true
	}
	ok, err := path.Match(pattern, s)
	return err == nil && ok
}

var knownDifferences = []known{}

// onlyBad are APIs that no single broker without security can serve well; onlyGood those that know no error.
var (
	onlyBad  = []only{}
	onlyGood = []only{}
)

var _ = kmsg.Produce
