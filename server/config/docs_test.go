package config

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/config.md anew")

const docsFile = "../../docs/config.md"

func TestDocsAreFresh(t *testing.T) {
	want := Markdown()
	if *update {
		if err := os.WriteFile(docsFile, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(docsFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("docs/config.md does not match the declarations; make docs writes it anew")
	}
}

// Every key that has an effect is in the contents, and each link leads to one heading.
func TestDocsContents(t *testing.T) {
	text := string(Markdown())
	headings := map[string]int{}
	for _, m := range regexp.MustCompile(`(?m)^##+ (.+)$`).FindAllStringSubmatch(text, -1) {
		headings[anchor(m[1])]++
	}
	links := map[string]bool{}
	for _, m := range regexp.MustCompile(`\[([^\]]+)\]\(#([^)]+)\)`).FindAllStringSubmatch(text, -1) {
		links[m[1]] = true
		if headings[m[2]] == 0 || anchor(m[1]) != m[2] {
			t.Errorf("%s leads to #%s, of which there are %d", m[1], m[2], headings[m[2]])
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^### ([a-z.]+)$`).FindAllStringSubmatch(text, -1) {
		if !links[m[1]] || headings[anchor(m[1])] != 1 {
			t.Errorf("%s is not in the contents, or its anchor is another key's", m[1])
		}
	}
	if anchor("Barnabas's own") != "barnabass-own" || anchor("num.io.threads") != "numiothreads" {
		t.Error("anchors are not GitHub's")
	}
}

// A key that docs/config.md says has an effect is read by the program.
func TestDocsTellTheTruth(t *testing.T) {
	var sources, tables strings.Builder
	for _, folder := range []string{".", "..", "../api", "../admin", "../../cmd/barnabas"} {
		files, err := filepath.Glob(filepath.Join(folder, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			sources.Write(text)
			if strings.HasPrefix(file, "keys_") {
				tables.Write(text)
			}
		}
	}
	all := sources.String()
	declared := regexp.MustCompile(`(?m)^\t(\w+) += define(?:Topic)?\((?:\w+, )?Key\[[^{]*\{\n\t\tName: +"([^"]+)"(.*)`).FindAllStringSubmatch(tables.String(), -1)
	if len(declared) < 80 {
		t.Fatalf("found only %d declarations", len(declared))
	}
	for _, d := range declared {
		name, key, rest := d[1], d[2], d[3]
		read := strings.Contains(all, `{"`+key+`", `) // a fallback
		for _, use := range []string{".Get(", ".Lookup(", ".forTopic(", ".topic "} {
			read = read || strings.Contains(all, name+use)
		}
		if !read && !strings.Contains(rest, "NoEffect: true") {
			t.Errorf("%s is said to have an effect, and nothing reads %s", key, name)
		}
	}
}

// A heading is followed by something before the next one, and a table has rows.
func TestDocsHaveNoEmptySections(t *testing.T) {
	lines := strings.Split(strings.TrimSpace(string(Markdown())), "\n")
	last := ""
	for _, line := range append(lines, "## end") {
		switch {
		case line == "":
			continue
		case strings.HasPrefix(line, "#") && last == "|---|---|---|":
			t.Errorf("an empty table stands before %q", line)
		}
		last = line
	}
}
