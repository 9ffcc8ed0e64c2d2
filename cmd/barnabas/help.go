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

func helpCommand() *cli.Command {
	return &cli.Command{
		Name: "help", Usage: "say more about a command", ArgsUsage: "[COMMAND]", Action: help,
		Description: "`barnabas help topic create` is `barnabas topic create --help`.",
	}
}

// help is --help behind the command that is named; a wrong name is refused as
// without it.
func help(c *cli.Context) error {
	app := newApp(c.App.Reader, c.App.Writer, c.App.ErrWriter)
	args := append([]string{app.Name}, c.Args().Slice()...)
	list := app.Commands
	for _, name := range args[1:] {
		command := commandNamed(list, name)
		if command == nil {
			return app.Run(args)
		}
		list = command.Subcommands
	}
	return app.Run(append(args, "--help"))
}
