package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/barnabas-mq/barnabas/compat-tests/harness"
)

// Report is what results/compat.json holds.
type Report struct {
	Broker string
	Rows   []*Row
}

// Row is one client's outcome.
type Row struct {
	Package string
	Client  string
	Version string
	Passed  int
	Failed  []Remark `json:",omitempty"`
	Skipped []Remark `json:",omitempty"`
	Seconds int
}

// Remark says why a test was skipped or how it failed.
type Remark struct{ Test, Why string }

func (r *Row) ok() bool { return len(r.Failed) == 0 && r.Passed > 0 }

// title is the client's name and version.
func (r *Row) title() string {
	version, _, _ := strings.Cut(r.Version, ",")
	return r.Client + " " + version
}

func (r *Row) line() string {
	verdict := "ok    "
	if !r.ok() {
		verdict = "FAILED"
	}
	return fmt.Sprintf("%s  %-13s %-36s %-26s %4d passed %3d failed %3d not run  %4d s",
		verdict, r.Package, r.Client, r.Version, r.Passed, len(r.Failed), len(r.Skipped), r.Seconds)
}

// event is a line of go test -json.
type event struct{ Action, Test, Output string }

// runRow runs a client's package. Most drive one client; one that drives several gives a row for each.
func runRow(name string, kind harness.Kind) ([]*Row, error) {
	folder, variant, _ := strings.Cut(name, "@")
	cmd := exec.Command("go", "test", "-json", "-count=1", "-timeout=30m", "./clients/"+folder)
	cmd.Dir = harness.Root()
	cmd.Env = append(os.Environ(), "BROKER_KIND="+string(kind))
	if variant != "" { // in the environment, so that the tests' own go list sees the same versions
		modules := filepath.Join(cmd.Dir, "clients", folder, variant+".mod")
		cmd.Env = append(cmd.Env, fmt.Sprintf("GOFLAGS=%s -modfile=%s -tags=%s", os.Getenv("GOFLAGS"), modules, variant))
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("run %s: %w", name, err)
	}
	s, err := summarize(name, bufio.NewScanner(stdout))
	if err != nil {
		return nil, err
	}
	waitErr := cmd.Wait()
	rows := s.rows()
	failed := 0
	for _, r := range rows {
		failed += len(r.Failed)
		r.Seconds = int(time.Since(start).Seconds())
	}
	if waitErr != nil && failed == 0 {
		rows[0].Failed = append(rows[0].Failed, Remark{"the whole program", fmt.Sprintf("%v\n%s%s", waitErr, stderr.String(), reason(s.output[""]))})
	}
	return rows, nil
}

// summary is what a program's lines say.
type summary struct {
	outcomes []outcome
	output   map[string]string
	parents  map[string]bool // tests that have parts, which speak for them
	clients  []clientOf
}

type outcome struct{ test, action string }

// clientOf is a row, and the test whose parts are its own; all tests when that is empty.
type clientOf struct {
	row  *Row
	test string
}

func summarize(name string, lines *bufio.Scanner) (*summary, error) {
	s := &summary{output: map[string]string{}, parents: map[string]bool{}}
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			s.output[""] += lines.Text() + "\n"
			continue
		}
		if e.Action == "output" {
			if _, rest, ok := strings.Cut(e.Output, harness.ClientMark); ok {
				fields := append(strings.Split(strings.TrimSpace(rest), "\t"), "", "")
				s.describe(clientOf{&Row{Package: name, Client: fields[0], Version: fields[1]}, fields[2]})
			}
			s.output[e.Test] += e.Output
			continue
		}
		if e.Test == "" {
			continue
		}
		for i, c := range e.Test {
			if c == '/' {
				s.parents[e.Test[:i]] = true
			}
		}
		if e.Action == "pass" || e.Action == "fail" || e.Action == "skip" {
			s.outcomes = append(s.outcomes, outcome{e.Test, e.Action})
		}
	}
	return s, lines.Err()
}

// describe takes a client once: a program that starts itself again says what it drives once more.
func (s *summary) describe(c clientOf) {
	if !slices.ContainsFunc(s.clients, func(o clientOf) bool { return o.test == c.test && o.row.Client == c.row.Client }) {
		s.clients = append(s.clients, c)
	}
}

// rows adds each outcome to its client's row. What is no client's goes to the first.
func (s *summary) rows() []*Row {
	if len(s.clients) == 0 {
		s.clients = []clientOf{{row: &Row{Client: "a program that did not start"}}}
	}
	slices.SortStableFunc(s.clients, func(a, b clientOf) int { return strings.Compare(a.row.Client, b.row.Client) })
	of := func(test string) *Row {
		for _, c := range s.clients {
			if c.test != "" && (test == c.test || strings.HasPrefix(test, c.test+"/")) {
				return c.row
			}
		}
		return s.clients[0].row
	}
	for _, o := range s.outcomes {
		why, row := reason(s.output[o.test]), of(o.test)
		switch {
		case o.action == "skip":
			row.Skipped = append(row.Skipped, Remark{o.test, why})
		case o.action == "fail" && (!s.parents[o.test] || strings.Contains(s.output[o.test], ".go:")):
			row.Failed = append(row.Failed, Remark{o.test, why})
		case o.action == "pass" && !s.parents[o.test]:
			row.Passed++
		}
	}
	rows := make([]*Row, 0, len(s.clients))
	for _, c := range s.clients {
		rows = append(rows, c.row)
	}
	return rows
}

// reason is a test's output without the lines that go test adds.
func reason(output string) string {
	var kept []string
	for _, line := range strings.Split(output, "\n") {
		text := strings.TrimSpace(line)
		if text == "" || strings.HasPrefix(text, "=== ") || strings.HasPrefix(text, "--- ") || strings.HasPrefix(text, harness.ClientMark) {
			continue
		}
		if mark := strings.Index(text, ".go:"); mark > 0 && !strings.Contains(text[:mark], " ") {
			if _, after, ok := strings.Cut(text, ": "); ok {
				text = after
			}
		}
		kept = append(kept, text)
	}
	return strings.Join(kept, "\n")
}
