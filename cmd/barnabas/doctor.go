package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/urfave/cli/v2"

	"github.com/barnabas-mq/barnabas/server/config"
)

func doctorCommand() *cli.Command {
	return &cli.Command{
		Name: "doctor", Usage: "say in words what is wrong with a running or would-be broker", Action: doctor,
		Description: "A broker that answers at --broker is asked. If none does, or anything of a start is given, what a start\n" +
			"with these flags, environment and --config would meet is checked: settings, ports, data folder, disk,\n" +
			"limits. Nothing is changed.\n" +
			"Exit code 1 when something is wrong.",
		Flags: append(clientFlags(), serveFlags()...),
	}
}

// level is how bad a finding is.
type level string

const (
	levelOK   level = "ok"
	levelNote level = "note" // works, but worth knowing
	levelBad  level = "bad"
)

// finding is one thing that was looked at.
type finding struct {
	Level level  `json:"level"`
	Check string `json:"check"`
	Text  string `json:"text"`
	// Advice is what to do about it.
	Advice string `json:"advice,omitempty"`
}

// examination collects findings.
type examination struct{ findings []finding }

func (e *examination) ok(check, format string, args ...any) {
	e.findings = append(e.findings, finding{Level: levelOK, Check: check, Text: fmt.Sprintf(format, args...)})
}

func (e *examination) note(check, advice, format string, args ...any) {
	e.findings = append(e.findings, finding{levelNote, check, fmt.Sprintf(format, args...), advice})
}

func (e *examination) bad(check, advice, format string, args ...any) {
	e.findings = append(e.findings, finding{levelBad, check, fmt.Sprintf(format, args...), advice})
}

func (e *examination) failed() int {
	n := 0
	for _, f := range e.findings {
		if f.Level == levelBad {
			n++
		}
	}
	return n
}

func (e *examination) print(w io.Writer) error {
	width := 0
	for _, f := range e.findings {
		width = max(width, len(f.Check))
	}
	for _, f := range e.findings {
		fmt.Fprintf(w, "%-4s  %-*s  %s\n", f.Level, width, f.Check, f.Text)
		if f.Advice != "" {
			fmt.Fprintf(w, "      %-*s  -> %s\n", width, "", f.Advice)
		}
	}
	return nil
}

func doctor(c *cli.Context) error {
	if _, err := asJSON(c); err != nil {
		return err
	}
	if err := oneFolder(c); err != nil {
		return err
	}
	seeds, err := seedAddresses(c.String("broker"))
	if err != nil {
		return err
	}
	e := &examination{}
	client, err := answering(c.Context, seeds)
	switch {
	case err == nil:
		defer client.Close()
		e.running(c.Context, client)
		if !startGiven(c, os.Environ()) {
			return e.report(c)
		}
		e.note("start", "", "a start with what is given would meet this:")
	case c.IsSet("broker"):
		e.bad("broker", "start it with `barnabas serve`, or correct the address", "nothing answers at %s: %v", c.String("broker"), noAnswer(seeds, err))
		e.note("start", "", "a start would meet this:")
	default:
		e.note("broker", "", "none runs at %s; a start would meet this:", c.String("broker"))
	}
	if err := e.wouldBe(c, os.Environ()); err != nil {
		return err
	}
	return e.report(c)
}

// startGiven says whether anything of a start was given.
func startGiven(c *cli.Context, environ []string) bool {
	for _, f := range serveFlags() {
		if c.IsSet(f.Names()[0]) {
			return true
		}
	}
	return config.AnyEnv(environ)
}

// report prints the findings; the error says how many are bad.
func (e *examination) report(c *cli.Context) error {
	if err := show(c, e.findings, e.print); err != nil {
		return err
	}
	if n := e.failed(); n > 0 {
		return errors.New("doctor: " + plural(n, "problem") + " found")
	}
	return nil
}

// answering is a client of the broker that runs at seeds.
func answering(ctx context.Context, seeds []string) (*kgo.Client, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(seeds...), kgo.ClientID("barnabas-doctor"), kgo.DialTimeout(2*time.Second), kgo.RetryTimeout(3*time.Second))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	if err := client.Ping(ctx); err != nil {
		client.Close()
		return nil, err
	}
	return client, nil
}
