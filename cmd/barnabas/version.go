package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/urfave/cli/v2"
)

// version is set by the linker: -X main.version=v1.2.3.
var version = "unknown"

func init() {
	cli.VersionPrinter = func(c *cli.Context) { fmt.Fprintln(c.App.Writer, "barnabas "+c.App.Version) }
	// -v is short for --version; -h for --help comes with the library.
	cli.VersionFlag = &cli.BoolFlag{Name: "version", Aliases: []string{"v"}, Usage: "print the version", DisableDefaultText: true}
}

func versionCommand() *cli.Command {
	return &cli.Command{
		Name: "version", Usage: "print the version and what it was built with", Action: showVersion,
		Flags: []cli.Flag{outputFlag},
	}
}

// versionView is what `version -o json` prints.
type versionView struct {
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"`
	Go      string `json:"go"`
	System  string `json:"system"`
}

func showVersion(c *cli.Context) error {
	v := versionView{Version: version, Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				v.Commit = s.Value
			}
		}
	}
	return show(c, v, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "barnabas %s (%s, %s)\n", v.Version, v.Go, v.System)
		return err
	})
}
