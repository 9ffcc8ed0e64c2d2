package harness

import (
	"fmt"
	"os/exec"
	"strings"
)

// ClientMark starts the line in which a row's program says what client it drives: its name, its version and, where a
// program drives several, the test that is this client's.
const ClientMark = "compat-client: "

// Describe names the client of a row and its version, for docs/compat.md.
func Describe(name, version string) {
	fmt.Printf("%s%s\t%s\n", ClientMark, name, version)
}

// DescribePart is Describe for a program that drives several clients: the parts of the test are this one's.
func DescribePart(name, version, test string) {
	fmt.Printf("%s%s\t%s\t%s\n", ClientMark, name, version, test)
}

// ModuleVersion is the version of a Go module that these tests are built with: that of another module where one takes
// its place. Older versions are chosen by GOFLAGS, which this asks too.
func ModuleVersion(module string) string {
	cmd := exec.Command("go", "list", "-m", "-f", "{{if .Replace}}{{.Replace.Version}}{{else}}{{.Version}}{{end}}", module)
	cmd.Dir = Root()
	out, err := cmd.Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}
