package main

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// arrange puts each command's flags before its arguments, where the library looks
// for them, and "--" between the two: people write `consume hello --count 1` as
// often as the other order, and a value may begin with a dash.
func arrange(app *cli.App, args []string) []string {
	if len(args) == 0 || args[len(args)-1] == "--generate-bash-completion" {
		return args
	}
	out := args[:1:1]
	flags, commands, rest := app.Flags, app.Commands, args[1:]
	for {
		l := splitLevel(flags, commands, rest)
		out = append(out, l.flags...)
		if l.command == nil {
			if len(l.arguments) > 0 && !l.bare {
				out = append(append(out, "--"), l.arguments...)
			}
			return out
		}
		out = append(out, l.command.Name)
		flags, commands, rest = l.command.Flags, l.command.Subcommands, l.rest
	}
}

// levelArgs is what belongs to one command of the line.
type levelArgs struct {
	flags, arguments []string
	// bare leaves the arguments out: help is asked for, or a last flag has no
	// value and would take one of them.
	bare bool
	// command is the subcommand that follows, and rest what is for it.
	command *cli.Command
	rest    []string
}

func splitLevel(flags []cli.Flag, commands []*cli.Command, args []string) levelArgs {
	var l levelArgs
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case a == "--":
			l.arguments = append(l.arguments, args[i+1:]...)
			return l
		case len(a) > 1 && a[0] == '-':
			name, value, joined := strings.Cut(strings.TrimLeft(a, "-"), "=")
			f := flagNamed(flags, name)
			l.flags = append(l.flags, canonical(f, a, value, joined))
			l.bare = l.bare || name == "help" || name == "h"
			if !takesValue(f) || joined {
				continue
			}
			if i++; i < len(args) {
				l.flags = append(l.flags, args[i])
			} else {
				l.bare = true
			}
		default:
			if c := commandNamed(commands, a); c != nil && len(l.arguments) == 0 {
				l.command, l.rest = c, args[i+1:]
				return l
			}
			l.arguments = append(l.arguments, a)
		}
	}
	return l
}

// canonical gives a flag that may be repeated its first name, so that it can be
// repeated in both forms.
func canonical(f cli.Flag, given, value string, joined bool) string {
	if _, repeats := f.(*cli.StringSliceFlag); !repeats {
		return given
	}
	if joined {
		return "--" + f.Names()[0] + "=" + value
	}
	return "--" + f.Names()[0]
}

func takesValue(f cli.Flag) bool {
	doc, ok := f.(cli.DocGenerationFlag)
	return ok && doc.TakesValue()
}

func flagNamed(flags []cli.Flag, name string) cli.Flag {
	for _, f := range flags {
		if slices.Contains(f.Names(), name) {
			return f
		}
	}
	return nil
}

func commandNamed(commands []*cli.Command, name string) *cli.Command {
	for _, c := range commands {
		if c.HasName(name) {
			return c
		}
	}
	return nil
}
