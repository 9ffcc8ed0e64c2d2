package kgosuite

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/barnabas-mq/barnabas/compat-tests/harness"
)

const suite = "github.com/twmb/franz-go/pkg/kgo"

// total is how many tests the suite has in the version that go.mod names. A new version changes it by hand, so that no
// test goes missing unseen.
const total = 153

// skipped names every test, or part of one, that is not run, and why. Nothing else may be left out.
var skipped = map[string]string{
	"TestShareGroup":                           "needs share groups",
	"TestShareGroupETL":                        "needs share groups",
	"TestShareGroupAckOnClose":                 "needs share groups",
	"TestShareGroupOffsetsAdmin":               "needs share groups",
	"TestConsumeRegexShareSkipsInternal":       "needs share groups",
	"TestIssueProduceBrokerTooOldFailsRecords": "the suite leaves it out where Produce is advertised from version 0, as Apache Kafka 4 does",
	"TestSCRAMAuth":                            "needs a SASL listener",
	"TestSCRAMAuthBadCredentials":              "needs a SASL listener",
	"TestOAuthAuth":                            "needs a SASL listener",
}

func TestMain(m *testing.M) {
	harness.Describe("franz-go's kgo test suite", harness.ModuleVersion("github.com/twmb/franz-go"))
	harness.Main(m, nil)
}

// event is a line of go test -json.
type event struct {
	Action, Test, Output string
}

// TestSuite runs the suite and repeats each of its tests' outcomes as one of ours.
func TestSuite(t *testing.T) {
	records := os.Getenv("KGO_TEST_RECORDS")
	if records == "" {
		records = "50000"
	}
	args := []string{"test", "-json", "-count=1", "-timeout=25m"}
	var leftOut []string
	for name := range skipped {
		if strings.HasPrefix(name, "Test") && !strings.Contains(name, "/") {
			leftOut = append(leftOut, regexp.QuoteMeta(name))
		}
	}
	slices.Sort(leftOut)
	args = append(args, "-skip=^("+strings.Join(leftOut, "|")+")$")
	if only := os.Getenv("KGO_TEST_ONLY"); only != "" {
		args = append(args, "-run="+only)
	}
	cmd := exec.Command("go", append(args, suite)...)
	cmd.Dir = harness.Root()
	cmd.Env = append(os.Environ(), "KGO_SEEDS="+harness.Shared.Addr(), "KGO_TEST_RF=1", "KGO_TEST_RECORDS="+records, "KGO_LOG_LEVEL=none")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	outcome, output := collect(t, bufio.NewScanner(stdout))
	runErr := cmd.Wait()

	run := 0
	for _, name := range sortedNames(outcome) {
		action, text := outcome[name], output[name]
		if strings.HasPrefix(name, "Test") && !strings.Contains(name, "/") {
			run++
		}
		if strings.Contains(name, "/") && action != "skip" {
			continue // its parent speaks for it
		}
		t.Run(name, func(t *testing.T) { repeat(t, name, action, text) })
	}
	if runErr != nil && !t.Failed() {
		t.Errorf("the suite ended with %v: %s\n%s", runErr, stderr.String(), tail(output[""], 4000))
	}
	if os.Getenv("KGO_TEST_ONLY") == "" {
		if want := total - len(leftOut); run != want {
			t.Errorf("%d tests were run, want %d", run, want)
		}
	}
	for _, name := range leftOut {
		name = strings.ReplaceAll(name, `\`, "")
		t.Run(name, func(t *testing.T) { t.Skip(skipped[name]) })
	}
}

func collect(t *testing.T, lines *bufio.Scanner) (outcome, output map[string]string) {
	outcome, output = map[string]string{}, map[string]string{}
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			continue // what the suite's own process printed
		}
		switch e.Action {
		case "output":
			const keep = 1 << 20
			if len(output[e.Test]) < keep {
				output[e.Test] += e.Output
			}
		case "pass", "fail", "skip":
			if e.Test != "" {
				outcome[e.Test] = e.Action
			}
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return outcome, output
}

func sortedNames(outcome map[string]string) []string {
	names := make([]string, 0, len(outcome))
	for name := range outcome {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func repeat(t *testing.T, name, action, text string) {
	switch action {
	case "fail":
		t.Error(tail(text, 4000))
	case "skip":
		why, known := skipped[name]
		if !known {
			t.Fatalf("skipped itself, and is not among the tests that may: %s", text)
		}
		t.Skip(why)
	}
}

func tail(s string, limit int) string { return s[max(0, len(s)-limit):] }

// TestSkippedExist keeps the list of skipped tests from naming what the suite no longer has.
func TestSkippedExist(t *testing.T) {
	cmd := exec.Command("go", "test", "-list=.", suite)
	cmd.Dir = harness.Root()
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	names := strings.Fields(string(out))
	tests := 0
	for _, name := range names {
		if strings.HasPrefix(name, "Test") {
			tests++
		}
	}
	if tests != total {
		t.Errorf("the suite has %d tests, not %d", tests, total)
	}
	for name := range skipped {
		top, _, _ := strings.Cut(name, "/")
		if !slices.Contains(names, top) {
			t.Errorf("%s is no test of the suite", name)
		}
	}
}
