package main

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

func init() { cli.FlagStringer = flagLine }

// flagLine is one flag in a help page: short names first, the placeholder once,
// then what it does.
func flagLine(f cli.Flag) string {
	doc, ok := f.(cli.DocGenerationFlag)
	if !ok {
		return "--" + f.Names()[0]
	}
	placeholder, usage := placeholderOf(doc.GetUsage())
	names := slices.Clone(f.Names())
	slices.SortStableFunc(names, func(a, b string) int { return min(len(a), 2) - min(len(b), 2) })
	for i, name := range names {
		names[i] = "--" + name
		if len(name) == 1 {
			names[i] = "-" + name
		}
	}
	left := strings.Join(names, ", ")
	if doc.TakesValue() {
		left += " " + placeholder
		if text := strings.Trim(doc.GetDefaultText(), `"`); text != "" {
			usage += " (default: " + text + ")"
		}
	}
	for _, name := range doc.GetEnvVars() {
		usage += " [$" + name + "]"
	}
	return left + "\t" + usage
}

// placeholderOf takes the name in back quotes out of a flag's words.
func placeholderOf(usage string) (placeholder, text string) {
	before, rest, ok := strings.Cut(usage, "`")
	if !ok {
		return "VALUE", usage
	}
	placeholder, after, ok := strings.Cut(rest, "`")
	if !ok {
		return "VALUE", usage
	}
	return placeholder, before + placeholder + after
}
