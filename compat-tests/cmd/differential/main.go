// Command differential sends the same requests to the broker under test and to Apache Kafka, version by version, and
// compares what they answer and what they have stored. Kafka of the newest version judges what it serves; an older
// Kafka judges the versions and message formats that newer ones dropped.
//
// Every API and version that the broker advertises must have a case that goes well and one that does not. A difference
// is a failure unless known.go names it with its reason; a name there that no longer differs is a failure too.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"github.com/barnabas-mq/barnabas/compat-tests/harness"
)

func main() {
	var o options
	flag.StringVar(&o.ours, "ours", "", "address of a broker under test that runs already")
	flag.StringVar(&o.newest, "newest", "", "address of an Apache Kafka of the newest version that runs already")
	flag.StringVar(&o.older, "older", "", "address of an Apache Kafka 3.9 that runs already")
	run := flag.String("run", "", "only the cases whose name matches, without the check that all are covered")
	flag.BoolVar(&o.verbose, "v", false, "print each case")
	flag.BoolVar(&o.write, "write", false, "record the outcome in results/differential.json and docs/compat.md")
	flag.Parse()
	if *run != "" {
		o.only = regexp.MustCompile(*run)
	}
	err := differential(o)
	if errors.Is(err, harness.ErrNoJVM) && os.Getenv("CI") == "" {
		fmt.Println("differential: not run:", err)
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "differential:", err)
		os.Exit(1)
	}
}

type options struct {
	ours, newest, older string
	only                *regexp.Regexp
	verbose, write      bool
}

func differential(o options) error {
	dir, err := os.MkdirTemp(os.Getenv("COMPAT_TMP"), "differential-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	brokers, err := startAll(o, dir)
	if err != nil {
		return err
	}
	defer brokers.stop()
	r := newRun(o, brokers)
	for _, c := range cases() {
		if o.only == nil || o.only.MatchString(c.Name) {
			r.walk(c)
		}
	}
	if o.only == nil || o.only.MatchString("stored") {
		r.compareStored()
	}
	if o.only == nil {
		r.checkCoverage()
		r.checkKnown()
	}
	r.print()
	if o.write {
		if err := writeOutcome(filepath.Join(harness.Root(), "results", "differential.json"), r.outcome()); err != nil {
			return err
		}
	}
	return r.verdict()
}
