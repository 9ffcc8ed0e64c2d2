package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/urfave/cli/v2"
)

// The pages are written here and not by the library's templates: a template calls
// methods by name, for which the linker must keep every method of every type, and
// that makes the binary a fifth larger (docs/decisions/0004-binary-size.md).
func init() {
	cli.HelpPrinter = func(out io.Writer, _ string, subject any) { writeHelp(out, subject) }
	cli.HelpPrinterCustom = func(out io.Writer, _ string, subject any, _ map[string]any) { writeHelp(out, subject) }
}

func writeHelp(out io.Writer, subject any) {
	w := tabwriter.NewWriter(out, 1, 8, 2, ' ', 0)
	switch s := subject.(type) {
	case *cli.App:
		appPage(w, s)
	case *cli.Command:
		commandPage(w, s)
	}
	w.Flush() //nolint:errcheck // help on a closed output is nobody's loss
}

func appPage(w io.Writer, app *cli.App) {
	fmt.Fprintf(w, `%s: %s

Usage:
  barnabas [flags]             start a broker; the same as barnabas serve
  barnabas COMMAND [flags]     "barnabas help COMMAND" says more

Commands:
`, app.Name, app.Usage)
	for _, c := range app.VisibleCommands() {
		fmt.Fprintf(w, "  %-10s %s\n", c.Name, c.Usage)
	}
	fmt.Fprint(w, "\nFlags of the broker:\n")
	for _, f := range app.VisibleFlags() {
		fmt.Fprintf(w, "  %s\n", f)
	}
	fmt.Fprint(w, `
Every setting of Kafka can be given as --set KEY=VALUE, as an environment variable
(KAFKA_NUM_PARTITIONS is num.partitions) or in the file of --config.

-o json prints for programs: names in snake_case, with the unit at the end, and an empty list as [].
Exit codes: 0 done, 1 it did not work, 2 a wrong flag, variable, setting or argument.
`)
}

func commandPage(w io.Writer, c *cli.Command) {
	fmt.Fprintf(w, "NAME:\n   %s", c.HelpName)
	if c.Usage != "" {
		fmt.Fprintf(w, " - %s", c.Usage)
	}
	fmt.Fprintf(w, "\n\nUSAGE:\n   %s", c.HelpName)
	flags := c.VisibleFlags()
	if len(flags) > 0 {
		fmt.Fprint(w, " [command options]")
	}
	if c.ArgsUsage != "" {
		fmt.Fprintf(w, " %s", c.ArgsUsage)
	}
	fmt.Fprintln(w)
	if c.Description != "" {
		fmt.Fprintf(w, "\nDESCRIPTION:\n   %s\n", strings.ReplaceAll(c.Description, "\n", "\n   "))
	}
	if subs := c.VisibleCommands(); len(subs) > 0 {
		fmt.Fprint(w, "\nCOMMANDS:\n")
		width := 0
		for _, sub := range subs {
			width = max(width, len(strings.Join(sub.Names(), ", ")))
		}
		for _, sub := range subs {
			fmt.Fprintf(w, "   %-*s  %s\n", width, strings.Join(sub.Names(), ", "), sub.Usage)
		}
	}
	if len(flags) == 0 {
		return
	}
	fmt.Fprint(w, "\nOPTIONS:\n")
	for _, f := range flags {
		fmt.Fprintf(w, "   %s\n", f)
	}
}
