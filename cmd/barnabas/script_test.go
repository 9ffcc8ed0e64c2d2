package main

import (
	"errors"
	"math"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/urfave/cli/v2"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"barnabas": main, "opentxn": openTransaction})
}

// TestScripts runs testdata/script: the command line as people use it.
func TestScripts(t *testing.T) {
	// Where nohup started the tests the scripts' brokers would ignore it as well: to be
	// told of a signal gives those that are started from here its default.
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	t.Cleanup(func() { signal.Stop(hangup) }) // after the scripts, which run in parallel
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"exit2": exit2, "json": jsonStyle},
		Setup: func(env *testscript.Env) error {
			port, err := freePort()
			if err != nil {
				return err
			}
			env.Setenv("PORT", strconv.Itoa(port))
			env.Setenv("BARNABAS_BROKER", "localhost:"+strconv.Itoa(port))
			env.Setenv("TMPDIR", env.WorkDir)
			// A data folder that Apache Kafka 4.4 has written; its metadata log's indexes are left out.
			kafka, err := filepath.Abs("testdata/kafka")
			if err != nil {
				return err
			}
			env.Setenv("KAFKA", kafka)
			return nil
		},
	})
}

// exit2 runs a command that must end with exit code 2.
func exit2(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: exit2 command...")
	}
	err := ts.Exec(args[0], args[1:]...)
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != exitUsage {
		ts.Fatalf("%v: got %v, want exit code %d", args, err, exitUsage)
	}
}

// nextPort begins somewhere below the ports that systems give to outgoing connections, of which one could take a
// script's port before its broker starts, or while it is away.
var nextPort = func() *atomic.Int64 {
	var n atomic.Int64
	n.Store(12000 + rand.Int64N(15000))
	return &n
}()

// freePort is a port on which nobody listens, another one at each call.
func freePort() (int, error) {
	for range 100 {
		port := int(nextPort.Add(1))
		l, err := net.Listen("tcp", ":"+strconv.Itoa(port))
		if err == nil {
			return port, l.Close()
		}
	}
	return 0, errors.New("a hundred ports in a row are in use")
}

// Every command has a place in the list, a name and words.
func TestCommands(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range commands() {
		if seen[c.Name] || c.Usage == "" || (c.Action == nil && len(c.Subcommands) == 0) {
			t.Errorf("command %q: twice, without words or without an action", c.Name)
		}
		seen[c.Name] = true
	}
	if code := run([]string{"barnabas", "version"}, os.Stdin, discard{}, discard{}); code != exitOK {
		t.Errorf("version exits with %d", code)
	}
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// Every flag that is a number says which numbers it takes.
func TestNumbersHaveBounds(t *testing.T) {
	var look func(list []*cli.Command)
	look = func(list []*cli.Command) {
		for _, c := range list {
			for _, f := range c.Flags {
				bounded := true
				switch f := f.(type) {
				case *cli.IntFlag:
					bounded = f.Action != nil
				case *cli.Int64Flag:
					bounded = f.Action != nil
				case *cli.DurationFlag:
					bounded = f.Action != nil
				case *cli.StringFlag, *cli.StringSliceFlag, *cli.BoolFlag:
				default:
					t.Errorf("%s %v: a flag of type %T", c.Name, f.Names(), f)
				}
				if !bounded {
					t.Errorf("%s %v takes any number", c.Name, f.Names())
				}
			}
			look(c.Subcommands)
		}
	}
	look(commands())
}

// A shift is a shift, however far.
func TestShiftBeyondTheEnds(t *testing.T) {
	for to, want := range map[string]int64{"+9223372036854775807": math.MaxInt64, "-9223372036854775808": math.MinInt64 + 15, "+3": 18, "-3": 12} {
		target, err := parseTarget(to)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := target.resolve(resetView{From: 15}, 10, 20, 0); err != nil || got != want {
			t.Errorf("%s: %d, %v, want %d", to, got, err, want)
		}
	}
}
