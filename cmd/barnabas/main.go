package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/barnabas-mq/barnabas/server/config"
)

func main() { os.Exit(run(os.Args, os.Stdin, os.Stdout, os.Stderr)) }

// run is the whole program: it answers with the process's exit code.
func run(args []string, in io.Reader, out, errOut io.Writer) int {
	app := newApp(in, out, errOut)
	err := app.Run(arrange(app, args))
	if err != nil {
		fmt.Fprintf(errOut, "barnabas: %v\n", err)
	}
	return exitCode(err)
}

// commands lists every command in the order of the help; each has a file.
func commands() []*cli.Command {
	return []*cli.Command{
		serveCommand(),
		topicCommand(),
		produceCommand(),
		consumeCommand(),
		groupCommand(),
		configCommand(),
		dumpCommand(),
		doctorCommand(),
		waitCommand(),
		versionCommand(),
	}
}

func newApp(in io.Reader, out, errOut io.Writer) *cli.App {
	app := &cli.App{
		Name:                 "barnabas",
		Usage:                "Apache Kafka in one small binary",
		Version:              version,
		Commands:             commands(),
		Flags:                serveFlags(),
		Action:               serveByDefault,
		Reader:               in,
		Writer:               out,
		ErrWriter:            errOut,
		HideHelpCommand:      true,
		EnableBashCompletion: true,
		// Values such as listeners have commas of their own.
		DisableSliceFlagSeparator: true,
		OnUsageError:              usageProblem,
		ExitErrHandler:            func(*cli.Context, error) {}, // run prints and exits
		CustomAppHelpTemplate:     appHelp,
	}
	refineCommands(app.Commands)
	return app
}

// refineCommands makes every command refuse wrong flags and names of
// subcommands in the same way.
func refineCommands(list []*cli.Command) {
	for _, c := range list {
		c.OnUsageError = usageProblem
		c.HideHelpCommand = true
		if len(c.Subcommands) > 0 && c.Action == nil {
			c.Action = subcommandMissing
		}
		refineCommands(c.Subcommands)
	}
}

// usageProblem is a wrong flag, in one sentence instead of a page of help.
func usageProblem(c *cli.Context, err error, _ bool) error {
	name := "barnabas"
	if c.Command != nil && c.Command.HelpName != "" {
		name = c.Command.HelpName
	}
	text := err.Error()
	if unknown, ok := strings.CutPrefix(text, "flag provided but not defined: "); ok {
		unknown = strings.TrimLeft(unknown, "-")
		text = "there is no flag " + dashed(unknown)
		if near := config.Nearest(unknown, flagNames(c)); near != "" && len(unknown) > 1 {
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

func flagNames(c *cli.Context) []string {
	flags := c.App.Flags
	if c.Command != nil && len(c.Command.Flags) > 0 {
		flags = c.Command.Flags
	}
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

// subcommandMissing answers `barnabas topic` and `barnabas topic lst`.
func subcommandMissing(c *cli.Context) error {
	var known []string
	for _, sub := range c.Command.Subcommands {
		if sub.Name != "help" {
			known = append(known, sub.Name)
		}
	}
	if !c.Args().Present() {
		return usagef("%s: say what to do: %s", c.Command.HelpName, strings.Join(known, ", "))
	}
	return notACommand(c.Command.HelpName+" "+c.Args().First(), c.Args().First(), known)
}

func notACommand(full, name string, known []string) error {
	if near := config.Nearest(name, known); near != "" {
		return usagef("%s is not a command; did you mean %s?", full, near)
	}
	return usagef("%s is not a command; there are %s", full, strings.Join(known, ", "))
}

// serveByDefault starts a broker for `barnabas` and `barnabas --flags`, and
// refuses a command that does not exist.
func serveByDefault(c *cli.Context) error {
	if c.Args().Present() {
		var known []string
		for _, command := range c.App.Commands {
			known = append(known, command.Name)
		}
		return notACommand(c.Args().First(), c.Args().First(), known)
	}
	return serve(c)
}

const appHelp = `{{.Name}}: {{.Usage}}

Usage:
  barnabas [flags]             start a broker; the same as barnabas serve
  barnabas COMMAND [flags]     "barnabas COMMAND --help" says more

Commands:{{range .VisibleCommands}}
  {{printf "%-10s" .Name}} {{.Usage}}{{end}}

Flags of the broker:
{{range .VisibleFlags}}  {{.}}
{{end}}
Every setting of Kafka can be given as --set KEY=VALUE, as an environment variable
(KAFKA_NUM_PARTITIONS is num.partitions) or in the file of --config.

Exit codes: 0 done, 1 it did not work, 2 a wrong flag, variable, setting or argument.
`
