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
		text = "there is no flag " + dashed(unknown) + insteadOf(c, unknown)
	}
	return usagef("%s\n`%s --help` lists what there is", text, name)
}

// insteadOf is what else an unknown flag may have been meant to be; "" when nothing
// suggests itself.
func insteadOf(c *cli.Context, unknown string) string {
	name, below := "barnabas", c.App.Commands
	if at := c.Command; at != nil && at.HelpName != "" && at.HelpName != c.App.HelpName {
		name, below = at.HelpName, at.Subcommands
	}
	if near := config.Nearest(unknown, flagNames(flagsOf(c))); near != "" && len(unknown) > 1 {
		return fmt.Sprintf("; did you mean %s?", dashed(near))
	}
	if f, path := flagBelow(below, unknown); f != nil {
		return fmt.Sprintf("; commands have it, such as `%s %s`", name, path)
	}
	if c.Command != nil && takesFreeText(c.Command.ArgsUsage) {
		return "; after -- everything is an argument"
	}
	return ""
}

// takesFreeText says whether an argument may well begin with a dash: values and names
// that people choose for records, groups and transactions do, topics and files hardly.
func takesFreeText(argsUsage string) bool {
	for _, word := range []string{" [VALUE...]", "GROUP", "ID"} {
		if strings.Contains(argsUsage, word) {
			return true
		}
	}
	return false
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
