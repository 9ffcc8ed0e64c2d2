package main

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/barnabas-mq/barnabas/server/config"
)

// usageProblem is a wrong flag, in one sentence instead of a page of help.
func usageProblem(c *cli.Context, err error, _ bool) error {
	name := "barnabas"
	if c.Command != nil && c.Command.HelpName != "" {
		name = c.Command.HelpName
	}
	text := badValue(c, err.Error())
	if unknown, ok := strings.CutPrefix(text, "flag provided but not defined: "); ok {
		unknown = strings.TrimLeft(unknown, "-")
		text = "there is no flag " + dashed(unknown)
		if near := config.Nearest(unknown, flagNames(flagsOf(c))); near != "" && len(unknown) > 1 {
			text += fmt.Sprintf("; did you mean %s?", dashed(near))
		} else {
			text += "; after -- everything is an argument"
		}
	}
	return usagef("%s\n`%s --help` lists what there is", text, name)
}

// dashed is a flag as people write it.
func dashed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

func flagsOf(c *cli.Context) []cli.Flag {
	if c.Command != nil && len(c.Command.Flags) > 0 {
		return c.Command.Flags
	}
	return c.App.Flags
}

func flagNames(flags []cli.Flag) []string {
	var all []string
	for _, f := range flags {
		for _, name := range f.Names() {
			if len(name) > 1 { // a letter is near to every other one
				all = append(all, name)
			}
		}
	}
	return all
}

// What the libraries say of values that they cannot read.
var (
	invalidValue = regexp.MustCompile(`^invalid (?:boolean )?value "(.*)" for (?:flag )?-(\S+): `)
	withoutValue = regexp.MustCompile(`^flag needs an argument: -(\S+)$`)
	twoForms     = regexp.MustCompile(`^Cannot use two forms of the same flag: (\S+) (\S+)$`)
)

// badValue says in our words what is wrong with a flag's value.
func badValue(c *cli.Context, text string) string {
	if m := invalidValue.FindStringSubmatch(text); m != nil {
		return fmt.Sprintf("%s %q: want %s", dashed(m[2]), m[1], wanted(flagNamed(flagsOf(c), m[2])))
	}
	if m := withoutValue.FindStringSubmatch(text); m != nil {
		return dashed(m[1]) + " needs a value"
	}
	if m := twoForms.FindStringSubmatch(text); m != nil {
		return fmt.Sprintf("%s and %s are the same flag; give one of the two", dashed(m[1]), dashed(m[2]))
	}
	return text
}

// wanted names the values that a kind of flag takes.
func wanted(f cli.Flag) string {
	switch f.(type) {
	case *cli.DurationFlag:
		return "a duration such as 5s, 500ms or 2m"
	case *cli.IntFlag:
		return "a whole number"
	case *cli.BoolFlag:
		return "true or false, or nothing"
	}
	return "another value"
}
