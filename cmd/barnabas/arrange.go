package main

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// arrange puts each command's flags before its arguments, where the library looks
// for them, and "--" between the two: people write `consume hello --count 1` as
// often as the other order, and a value may begin with a dash. A flag before the
// command that it belongs to, as in `barnabas -o json topic list`, moves behind it.
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
	// command is the subcommand that follows, and rest what is for it: first the flags
	// that stood before it.
	command *cli.Command
	rest    []string
}

// ownOfAll are the flags that every level has for itself.
var ownOfAll = []string{"help", "h", "version", "v"}

func splitLevel(flags []cli.Flag, commands []*cli.Command, args []string) levelArgs {
	var l levelArgs
	var given []string // the flags of this level or, when one follows, of the command
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case a == "--":
			l.arguments = append(l.arguments, args[i+1:]...)
			l.flags = append(l.flags, given...)
			return l
		case len(a) > 1 && a[0] == '-':
			name, value, joined := strings.Cut(strings.TrimLeft(a, "-"), "=")
			if slices.Contains(ownOfAll, name) {
				l.flags, l.bare = append(l.flags, a), l.bare || name[0] == 'h'
				continue
			}
			f := flagAhead(commands, args[i+1:], name)
			if f == nil {
				f = flagNamed(flags, name)
			}
			given = append(given, canonical(f, a, value, joined))
			if !takesValue(f) || joined {
				continue
			}
			if i++; i < len(args) {
				given[len(given)-1] += "=" + args[i] // stays whole wherever it goes
			} else {
				l.bare = true
			}
		default:
			if c := commandNamed(commands, a); c != nil && len(l.arguments) == 0 {
				l.command, l.rest = c, append(given, args[i+1:]...)
				return l
			}
			l.arguments = append(l.arguments, a)
		}
	}
	l.flags = append(l.flags, given...)
	return l
}

// flagAhead is the flag of this name of the command that follows in args, or of one of
// its subcommands; nil when that has none.
func flagAhead(commands []*cli.Command, args []string, name string) cli.Flag {
	for _, a := range args {
		if c := commandNamed(commands, a); c != nil {
			f, _ := flagBelow([]*cli.Command{c}, name)
			return f
		}
	}
	return nil
}

// flagBelow is the first flag of this name of commands and their subcommands, and the
// path of the command that has it.
func flagBelow(commands []*cli.Command, name string) (f cli.Flag, path string) {
	for _, c := range commands {
		if f := flagNamed(c.Flags, name); f != nil {
			return f, c.Name
		}
		if f, below := flagBelow(c.Subcommands, name); f != nil {
			return f, c.Name + " " + below
		}
	}
	return nil, ""
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
