package harness

import (
	"encoding/json"
	"strings"
)

// ParseMocha reads the lines of mocha's json-stream reporter. Tests have their whole titles as names, without the link
// that some end with.
func ParseMocha(line string, report func(SuiteOutcome)) {
	var event []json.RawMessage
	if json.Unmarshal([]byte(line), &event) != nil || len(event) != 2 {
		return
	}
	var action string
	var test struct{ FullTitle, Err, Stack string }
	if json.Unmarshal(event[0], &action) != nil || json.Unmarshal(event[1], &test) != nil {
		return
	}
	if action == "pass" || action == "fail" {
		name, _, _ := strings.Cut(test.FullTitle, " (http")
		report(SuiteOutcome{strings.ReplaceAll(name, "/", "-"), action, test.Err + "\n" + test.Stack})
	}
}
