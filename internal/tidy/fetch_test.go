package tidy

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// runs finds a Go command that takes a package: one that is not of this repository, and so has a version, makes it ask the
// module proxy even where it has been run before.
var runs = regexp.MustCompile(`(?:\$\(GO\)|\bgo) (?:-C \S+ )?(?:run|install|get) (\S+)`)

// TestFetchedByDownload keeps what the targets fetch in `make download`, the one that is tried again after a failure:
// what checks and tests must not fail because a proxy did.
func TestFetchedByDownload(t *testing.T) {
	for _, name := range []string{"Makefile", "compat-tests/Makefile", ".ci/run"} {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		target := ""
		for i, line := range strings.Split(string(text), "\n") {
			if !strings.HasPrefix(line, "\t") {
				target, _, _ = strings.Cut(line, ":")
			}
			m := runs.FindStringSubmatch(line)
			if m != nil && !strings.HasPrefix(m[1], "./") && target != "$(STATICCHECK)" && target != "download" {
				t.Errorf("%s:%d: %s goes to the proxy each time it runs: build it into bin, by make download", name, i+1, strings.TrimSpace(line))
			}
		}
	}
}
