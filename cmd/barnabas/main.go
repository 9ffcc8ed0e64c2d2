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
		txnCommand(),
		configCommand(),
		importCommand(),
		dumpCommand(),
		doctorCommand(),
		waitCommand(),
		versionCommand(),
		helpCommand(),
	}
}

func newApp(in io.Reader, out, errOut io.Writer) *cli.App {
	app := &cli.App{
		Name:                 "barnabas",
		Usage:                "Apache Kafka in one small binary",
		Version:              version,
		Commands:             commands(),
		Flags:                append(serveFlags(), cli.HelpFlag), // which the library leaves out beside a help command
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
		switch {
		case len(c.Subcommands) > 0 && c.Action == nil:
			c.Action = subcommandMissing
		case c.ArgsUsage == "":
			c.Action = withoutArguments(c.Action)
		}
		refineCommands(c.Subcommands)
	}
}

// withoutArguments refuses arguments of a command that takes none.
func withoutArguments(action cli.ActionFunc) cli.ActionFunc {
	return func(c *cli.Context) error {
		if c.Args().Present() {
			return usagef("%s takes no arguments, only flags; %q is one", strings.TrimPrefix(c.Command.HelpName, "barnabas "), c.Args().First())
		}
		return action(c)
	}
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
		return usagef("%s: say what to do: %s\n`%s --help` says more", c.Command.HelpName, strings.Join(known, ", "), c.Command.HelpName)
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
