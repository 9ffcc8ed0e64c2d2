package main

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// run is what one walk over the cases has seen.
type run struct {
	o        options
	b        *brokers
	compared int
	perAPI   map[int16]map[int16]*coverage
	found    []difference
	faults   []string
	used     map[*known]bool
}

// coverage tells whether a version of an API was asked well and badly.
type coverage struct{ good, bad bool }

// difference is one line in which two answers differ.
type difference struct {
	Case    string
	Version int16
	Judge   string
	Path    string
	Ours    string
	Theirs  string
	Why     string `json:",omitempty"` // the reason of known.go, empty when there is none
}

func newRun(o options, b *brokers) *run {
	return &run{o: o, b: b, perAPI: map[int16]map[int16]*coverage{}, used: map[*known]bool{}}
}

// walk asks one case in every version that the broker under test advertises and the codec knows.
func (r *run) walk(c *Case) {
	bounds, ok := r.b.ours.versions[int16(c.Key)]
	if !ok {
		r.faults = append(r.faults, fmt.Sprintf("%s: the API is not advertised", c.Name))
		return
	}
	codec := kmsg.RequestForKey(int16(c.Key)).MaxVersion()
	for v := max(bounds[0], c.From); v <= min(bounds[1], c.To, codec); v++ {
		judge := r.judge(int16(c.Key), v)
		if judge == nil {
			r.faults = append(r.faults, fmt.Sprintf("%s v%d: no Apache Kafka here serves it", c.Name, v))
			continue
		}
		r.compare(c, v, judge)
	}
}

// judge is the newest Kafka that serves a version. Kafka 4 lists Produce from 0 and serves it from 3.
func (r *run) judge(key, version int16) *side {
	for _, s := range []*side{r.b.newest, r.b.older} {
		if s != nil && s.serves(key, version) && !(s == r.b.newest && key == int16(kmsg.Produce) && version < 3) {
			return s
		}
	}
	return nil
}

func (r *run) compare(c *Case, v int16, judge *side) {
	theirs, respTheirs, err := ask(c, v, judge)
	if err != nil {
		r.faults = append(r.faults, fmt.Sprintf("%s v%d: %v", c.Name, v, err))
		return
	}
	ours, _, err := ask(c, v, r.b.ours)
	if err != nil {
		r.faults = append(r.faults, fmt.Sprintf("%s v%d: %v", c.Name, v, err))
		return
	}
	r.cover(c, v, theirs, respTheirs)
	r.compared++
	found := diff(ours, theirs)
	for _, d := range found {
		d.Case, d.Version, d.Judge = c.Name, v, string(judge.kind)
		r.note(d)
	}
	if r.o.verbose {
		fmt.Printf("%-70s v%-2d %s %d differences\n", c.Name, v, judge.kind, len(found))
	}
}

// ask runs a case on one side.
func ask(c *Case, v int16, s *side) (lines []string, resp kmsg.Response, err error) {
	defer func() {
		if p := recover(); p != nil {
			fault, ok := p.(caseFault)
			if !ok {
				panic(p)
			}
			err = fault.err
		}
	}()
	s.version = v
	resp, asked := c.Ask(c, s)
	var gone closed
	if asked != nil && !errors.As(asked, &gone) {
		return nil, nil, fmt.Errorf("%s: %w", s.kind, asked)
	}
	if asked != nil {
		resp = nil
	}
	return s.render(c, resp, asked), resp, nil
}

// cover notes that a version was asked, if the oracle took the case for what it says it is.
func (r *run) cover(c *Case, v int16, theirs []string, resp kmsg.Response) {
	failed := resp == nil
	var codes []int16
	if !failed {
		codes = errorCodes(reflect.ValueOf(resp))
		failed = len(codes) > 0
	}
	if c.Free == "" && failed == c.Good {
		r.faults = append(r.faults, fmt.Sprintf("%s v%d: good is %t, but Kafka answers %v\n\t%s", c.Name, v, c.Good, names(codes), strings.Join(theirs, "\n\t")))
	}
	if r.perAPI[int16(c.Key)] == nil {
		r.perAPI[int16(c.Key)] = map[int16]*coverage{}
	}
	of := r.perAPI[int16(c.Key)]
	if of[v] == nil {
		of[v] = &coverage{}
	}
	of[v].good = of[v].good || c.Good
	of[v].bad = of[v].bad || !c.Good
}

func names(codes []int16) (out []string) {
	for _, code := range codes {
		name := "?"
		if e := kerr.TypedErrorForCode(code); e != nil {
			name = e.Message
		}
		out = append(out, name)
	}
	return out
}

// diff pairs lines by path.
func diff(ours, theirs []string) []difference {
	if slices.Equal(ours, theirs) {
		return nil
	}
	if isError(ours) || isError(theirs) {
		return []difference{{Path: "answer", Ours: brief(ours), Theirs: brief(theirs)}}
	}
	split := func(lines []string) (paths []string, values map[string]string) {
		values = map[string]string{}
		for _, line := range lines {
			path, value, _ := strings.Cut(line, " = ")
			for values[path] != "" {
				path += "'"
			}
			paths, values[path] = append(paths, path), value
		}
		return paths, values
	}
	ourPaths, ourValues := split(ours)
	theirPaths, theirValues := split(theirs)
	var out []difference
	for _, path := range theirPaths {
		if ourValues[path] != theirValues[path] {
			out = append(out, difference{Path: path, Ours: orMissing(ourValues[path]), Theirs: theirValues[path]})
		}
	}
	for _, path := range ourPaths {
		if theirValues[path] == "" {
			out = append(out, difference{Path: path, Ours: ourValues[path], Theirs: orMissing("")})
		}
	}
	return out
}

func isError(lines []string) bool { return len(lines) == 1 && strings.HasPrefix(lines[0], "error = ") }

// brief is an answer beside which the other side has none.
func brief(lines []string) string {
	if isError(lines) {
		return lines[0]
	}
	var codes []string
	for _, line := range lines {
		if strings.Contains(line, "ErrorCode = ") {
			codes = append(codes, line)
		}
	}
	return "a response with " + strings.Join(codes, ", ")
}

func orMissing(value string) string {
	if value == "" {
		return "nothing"
	}
	return value
}

// note takes a difference, with the reason if it is known.
func (r *run) note(d difference) {
	for i := range knownDifferences {
		k := &knownDifferences[i]
		if k.covers(d) {
			r.used[k] = true
			d.Why = k.Why
			break
		}
	}
	r.found = append(r.found, d)
}
