package main

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// jsonName is how -o json names things; the keys of settings have dots.
var jsonName = regexp.MustCompile(`^[a-z][a-z0-9_.]*$`)

// nullable are the names whose value may be none: all others are left out or empty.
var nullable = []string{"key", "value", "instance_id"}

// jsonStyle checks that the last standard output is JSON in the one style of the
// command line.
func jsonStyle(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: json")
	}
	in := json.NewDecoder(strings.NewReader(ts.ReadFile("stdout")))
	for n := 0; ; n++ {
		var v any
		err := in.Decode(&v)
		if errors.Is(err, io.EOF) && n > 0 {
			return
		}
		if err != nil {
			ts.Fatalf("no JSON: %v", err)
		}
		checkStyle(ts, "", v)
	}
}

func checkStyle(ts *testscript.TestScript, name string, v any) {
	switch v := v.(type) {
	case nil:
		if !slices.Contains(nullable, name) {
			ts.Fatalf("%q is null", name)
		}
	case []any:
		for _, e := range v {
			checkStyle(ts, name, e)
		}
	case map[string]any:
		for k, e := range v {
			if !jsonName.MatchString(k) {
				ts.Fatalf("%q is no name in snake_case", k)
			}
			checkStyle(ts, k, e)
		}
	}
}

// A list or map that is empty is printed as such: leaving it out would have programs
// ask twice.
func TestListsAreNotLeftOut(t *testing.T) {
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	fields := 0
	for _, name := range names {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			field, ok := n.(*ast.Field)
			if !ok || field.Tag == nil || !strings.Contains(field.Tag.Value, "json:") {
				return true
			}
			fields++
			switch field.Type.(type) {
			case *ast.ArrayType, *ast.MapType:
				if strings.Contains(field.Tag.Value, ",omitempty") {
					t.Errorf("%s: %v %s", name, field.Names, field.Tag.Value)
				}
			}
			return true
		})
	}
	if fields == 0 {
		t.Fatal("no field was looked at")
	}
}
