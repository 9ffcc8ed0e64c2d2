package harness

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Client is a client library driven by a program in its own language. The program is started with the broker's address
// and the names of cases, and prints a line of JSON (Outcome) for each case that it has run. What the cases do is said
// in clients/CASES.md, the same for every language.
type Client struct {
	Name, Version string
	// Install makes the client ready and returns the command that runs the program. It is called with the network,
	// and once more without it, when all must be there.
	Install func() (*exec.Cmd, error)
	Cases   []string
	// Lacks names cases that the client cannot run, each with the reason. They are reported as not run.
	Lacks map[string]string
	// Limit is what all the cases together may take; 5 minutes when 0.
	Limit time.Duration

	command *exec.Cmd
	err     error
}

// Outcome is what a program prints of a case.
type Outcome struct {
	Case string
	OK   bool
	Why  string
}

// ID is the client's name and version as the name of a test.
func (c *Client) ID() string {
	return strings.NewReplacer("/", "-", "@", "").Replace(c.Name + "-" + c.Version)
}

// Err is why the client cannot be run, nil when it can.
func (c *Client) Err() error { return c.err }

// Clients are the clients of a test program; MainOf fills it.
var Clients []*Client

// MainOf is Main for a row of programs: it installs the clients first, while there is a network. For a look at one of
// them COMPAT_CLIENT names it, as its ID begins.
func MainOf(m *testing.M, props map[string]string, clients ...*Client) {
	Clients = slices.DeleteFunc(clients, func(c *Client) bool { return !strings.HasPrefix(c.ID(), os.Getenv("COMPAT_CLIENT")) })
	for _, c := range Clients {
		if c.command, c.err = c.Install(); c.err != nil && os.Getenv(isolated) == "" {
			fmt.Fprintf(os.Stderr, "compat: %s %s cannot be run: %v\n", c.Name, c.Version, c.err)
		}
	}
	Main(m, props)
}

// RunClients is the test of a row of programs.
func RunClients(t *testing.T) {
	for _, c := range Clients {
		t.Run(c.ID(), func(t *testing.T) {
			DescribePart(c.Name, c.Version, t.Name()) // in this order
			t.Parallel()
			c.run(t)
		})
	}
}

func (c *Client) run(t *testing.T) {
	if c.err != nil {
		for _, name := range c.Cases {
			t.Run(name, func(t *testing.T) { Skip(t, "%v", c.err) })
		}
		return
	}
	cases := c.Cases
	if only := os.Getenv("COMPAT_CASES"); only != "" {
		cases = strings.Split(only, ",")
	}
	limit := c.Limit
	if limit == 0 {
		limit = 5 * time.Minute
	}
	outcomes, output, err := drive(c.command, append([]string{Shared.Addr()}, cases...), limit)
	if err != nil && len(outcomes) == 0 {
		t.Errorf("%v:\n%s", err, output)
	}
	for _, name := range cases {
		t.Run(name, func(t *testing.T) {
			i := slices.IndexFunc(outcomes, func(o Outcome) bool { return o.Case == name })
			switch {
			case i < 0:
				t.Errorf("the program said nothing of it: %v\n%s", err, tail(output, 3000))
			case !outcomes[i].OK:
				t.Error(outcomes[i].Why)
			}
		})
	}
	for _, name := range sortedKeys(c.Lacks) {
		t.Run(name, func(t *testing.T) { t.Skip(c.Lacks[name]) })
	}
}

// drive runs the program and gathers what it says; output is everything else that it printed.
func drive(command *exec.Cmd, args []string, limit time.Duration) (outcomes []Outcome, output string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, command.Path, append(slices.Clone(command.Args[1:]), args...)...)
	cmd.Dir, cmd.Env = command.Dir, append(os.Environ(), command.Env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	read, write := io.Pipe()
	cmd.Stdout, cmd.Stderr = write, write
	done := make(chan struct{})
	var rest bytes.Buffer
	go func() {
		defer close(done)
		lines := bufio.NewReader(read)
		for {
			line, err := lines.ReadString('\n')
			var o Outcome
			if strings.HasPrefix(line, "{") && json.Unmarshal([]byte(line), &o) == nil && o.Case != "" {
				outcomes = append(outcomes, o)
			} else if rest.Len() < 1<<20 {
				rest.WriteString(line)
			}
			if err != nil {
				return
			}
		}
	}()
	err = cmd.Run()
	write.Close()
	<-done
	if ctx.Err() != nil {
		err = fmt.Errorf("not done after %s: %w", limit, ctx.Err())
	}
	return outcomes, rest.String(), err
}

func sortedKeys(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func tail(s string, limit int) string { return s[max(0, len(s)-limit):] }
