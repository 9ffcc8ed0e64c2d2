package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/urfave/cli/v2"
)

// waitPoll is how often `wait` looks again.
const waitPoll = 50 * time.Millisecond

func waitCommand() *cli.Command {
	return &cli.Command{
		Name: "wait", Usage: "exit 0 as soon as the broker, topics or groups are ready", Action: wait,
		Description: "For scripts, health checks and CI. Exit code 1 when the time is over: the last line says what was missing.",
		Flags: clientFlags(
			&cli.StringSliceFlag{Name: "topic", Aliases: []string{"t"}, Usage: "wait until `TOPIC` exists and every partition has a leader; may be repeated"},
			&cli.StringSliceFlag{Name: "group", Aliases: []string{"g"}, Usage: "wait until `GROUP` has members and is balanced; may be repeated"},
			&cli.BoolFlag{Name: "no-lag", Usage: "with --group: wait until the group has read everything"},
			&cli.DurationFlag{Name: "timeout", Value: 30 * time.Second, Usage: "give up after `DURATION`", Action: notNegative("timeout")},
		),
	}
}

func wait(c *cli.Context) error {
	if _, err := asJSON(c); err != nil {
		return err
	}
	if c.Bool("no-lag") && len(c.StringSlice("group")) == 0 {
		return usagef("wait --no-lag: name the group with --group")
	}
	seeds, err := seedAddresses(c.String("broker"))
	if err != nil {
		return err
	}
	ctx, stop := untilInterrupted(c.Context)
	defer stop()
	started := time.Now()
	deadline := started.Add(c.Duration("timeout"))
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	client, err := kgo.NewClient(kgo.SeedBrokers(seeds...), kgo.ClientID("barnabas-cli"),
		kgo.MetadataMinAge(waitPoll), kgo.RetryTimeout(time.Second), kgo.DialTimeout(time.Second))
	if err != nil {
		return fmt.Errorf("wait: set up the client: %w", err)
	}
	defer client.Close()
	w := &waiter{c: c, adm: kadm.NewClient(client), client: client, seeds: seeds}
	var missing error
	for {
		err := w.missing(ctx)
		if err == nil {
			break
		}
		// The end of the time cuts the last question short: an earlier answer says more.
		if missing == nil || time.Now().Before(deadline) {
			missing = err
		}
		select {
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.Canceled) {
				return errors.New("wait: interrupted")
			}
			return notReady(c, missing)
		case <-time.After(waitPoll):
		}
	}
	took := time.Since(started).Round(time.Millisecond)
	return show(c, map[string]any{"ready": true, "waited_ms": took.Milliseconds()}, func(out io.Writer) error {
		_, err := fmt.Fprintf(out, "Ready after %v.\n", took)
		return err
	})
}

// notReady is the failure, and on standard output the same for programs.
func notReady(c *cli.Context, missing error) error {
	if js, err := asJSON(c); err == nil && js {
		if err := printJSON(c.App.Writer, map[string]any{"ready": false, "missing": missing.Error()}); err != nil {
			return err
		}
	}
	return fmt.Errorf("wait: not ready after %v: %w", c.Duration("timeout"), missing)
}

// waiter asks one round of questions.
type waiter struct {
	c      *cli.Context
	adm    *kadm.Client
	client *kgo.Client
	seeds  []string
}

// missing is nil when everything that was asked for is there, else what is not.
func (w *waiter) missing(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	if err := w.client.Ping(ctx); err != nil {
		return nobodyAt(w.seeds, err)
	}
	if topics := w.c.StringSlice("topic"); len(topics) > 0 {
		if err := w.missingTopics(ctx, topics); err != nil {
			return err
		}
	}
	if groups := w.c.StringSlice("group"); len(groups) > 0 {
		return w.missingGroups(ctx, groups)
	}
	return nil
}

func (w *waiter) missingTopics(ctx context.Context, topics []string) error {
	details, err := w.adm.ListTopicsWithInternal(ctx, topics...)
	if err != nil {
		return fmt.Errorf("list topics: %w", err)
	}
	for _, name := range topics {
		d, ok := details[name]
		if !ok || d.Err != nil {
			return fmt.Errorf("topic %s does not exist", name)
		}
		for _, p := range d.Partitions.Sorted() {
			if p.Err != nil || p.Leader < 0 {
				return fmt.Errorf("topic %s partition %d has no leader", name, p.Partition)
			}
		}
	}
	return nil
}

func (w *waiter) missingGroups(ctx context.Context, groups []string) error {
	found, _, err := lookAtGroups(ctx, w.adm, groups)
	if err != nil {
		return fmt.Errorf("describe groups: %w", err)
	}
	for _, name := range groups {
		g, ok := found[name]
		switch {
		case !ok:
			return fmt.Errorf("group %s does not exist", name)
		case !strings.EqualFold(g.State, "Stable"):
			return fmt.Errorf("group %s is %s", name, g.State)
		case w.c.Bool("no-lag") && g.TotalLag != 0:
			return fmt.Errorf("group %s lags by %d", name, g.TotalLag)
		}
	}
	return nil
}
