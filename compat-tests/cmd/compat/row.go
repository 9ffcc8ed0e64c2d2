package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
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

func (r *Row) line() string {
	verdict := "ok    "
	if !r.ok() {
		verdict = "FAILED"
	}
	return fmt.Sprintf("%s  %-10s %-36s %-26s %4d passed %3d failed %3d not run  %4d s",
		verdict, r.Package, r.Client, r.Version, r.Passed, len(r.Failed), len(r.Skipped), r.Seconds)
}

// event is a line of go test -json.
type event struct{ Action, Test, Output string }

func runRow(name string, kind harness.Kind) (*Row, error) {
	args := []string{"go", "test", "-json", "-count=1", "-timeout=20m", "./clients/" + name}
	if ownNetwork() {
		args = append([]string{"unshare", "-n", "sh", "-c", `ip link set lo up && exec "$@"`, "sh"}, args...)
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = harness.Root()
	cmd.Env = append(os.Environ(), "BROKER_KIND="+string(kind))
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
	row := &Row{Package: name, Client: name}
	output := map[string]string{}
	scanner := bufio.NewScanner(stdout)
	scanner.Buffer(nil, 64<<20)
	parents := map[string]bool{}
	type outcome struct{ test, action string }
	var outcomes []outcome
	for scanner.Scan() {
		var e event
		if json.Unmarshal(scanner.Bytes(), &e) != nil {
			output[""] += scanner.Text() + "\n"
			continue
		}
		if rest, ok := strings.CutPrefix(e.Output, harness.ClientMark); ok {
			row.Client, row.Version, _ = strings.Cut(strings.TrimSpace(rest), "\t")
		}
		if e.Action == "output" {
			output[e.Test] += e.Output
			continue
		}
		if e.Test == "" {
			continue
		}
		if i := strings.LastIndex(e.Test, "/"); i > 0 {
			parents[e.Test[:i]] = true
		}
		if e.Action == "pass" || e.Action == "fail" || e.Action == "skip" {
			outcomes = append(outcomes, outcome{e.Test, e.Action})
		}
	}
	if err := scanner.Err(); err != nil {
		return nil, err
	}
	waitErr := cmd.Wait()
	for _, o := range outcomes {
		why := reason(output[o.test])
		switch {
		case o.action == "skip":
			row.Skipped = append(row.Skipped, Remark{o.test, why})
		case o.action == "fail" && (!parents[o.test] || strings.Contains(output[o.test], "_test.go")):
			row.Failed = append(row.Failed, Remark{o.test, why})
		case o.action == "pass" && !parents[o.test]:
			row.Passed++
		}
	}
	if waitErr != nil && len(row.Failed) == 0 {
		row.Failed = append(row.Failed, Remark{"the whole program", fmt.Sprintf("%v\n%s%s", waitErr, stderr.String(), reason(output[""]))})
	}
	row.Seconds = int(time.Since(start).Seconds())
	return row, nil
}

// reason is a test's output without the lines that go test adds.
func reason(output string) string {
	var kept []string
	for _, line := range strings.Split(output, "\n") {
		text := strings.TrimSpace(line)
		if text == "" || strings.HasPrefix(text, "=== ") || strings.HasPrefix(text, "--- ") {
			continue
		}
		if strings.Contains(text, "_test.go:") {
			if _, after, ok := strings.Cut(text, ": "); ok {
				text = after
			}
		}
		kept = append(kept, text)
	}
	return strings.Join(kept, "\n")
}

// ownNetwork says whether a row can have a network of its own, where every port is free.
func ownNetwork() bool {
	return exec.Command("unshare", "-n", "ip", "link", "set", "lo", "up").Run() == nil
}
