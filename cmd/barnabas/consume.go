package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/urfave/cli/v2"
)

// The isolation levels, as Kafka's isolation.level names them.
const (
	readCommitted   = "read_committed"
	readUncommitted = "read_uncommitted"
)

func consumeCommand() *cli.Command {
	return &cli.Command{
		Name: "consume", Usage: "print records as they come", ArgsUsage: "TOPIC...", Action: consume,
		Description: "Prints values, one a line, until interrupted. -o json prints whole records, one JSON object a line.\n" +
			"A value that is none, a tombstone, and with --keys a key that is none are printed as null.\n" +
			"A broker that goes away is waited for; standard error tells it.\n" +
			"Records of transactions that are open or were aborted are printed too, unless --isolation read_committed is given.",
		Flags: clientFlags(
			&cli.StringFlag{Name: "from", Aliases: []string{"f"}, Value: "start", Usage: "where to begin without a group: start, end, an `OFFSET`, or @TIME (RFC 3339 or Unix ms)"},
			&cli.IntFlag{Name: "partition", Aliases: []string{"p"}, Value: -1, DefaultText: "all", Usage: "only partition `NUMBER`", Action: within("partition", 0, mostPartitions, -1)},
			&cli.StringFlag{Name: "group", Aliases: []string{"g"}, Usage: "consume as a member of group `NAME` and commit what was printed"},
			&cli.StringFlag{Name: "protocol", Value: typeClassic, Usage: "with --group: the group `PROTOCOL`, classic or consumer (KIP-848)"},
			&cli.StringFlag{Name: "isolation", Value: readUncommitted, Usage: "`LEVEL`: read_committed leaves out what transactions have aborted or not ended"},
			&cli.IntFlag{Name: "count", Aliases: []string{"n"}, Usage: "stop after `N` records", Action: within("count", 1, math.MaxInt)},
			&cli.BoolFlag{Name: "exit-at-end", Aliases: []string{"e"}, Usage: "stop once everything that was there at the start is printed"},
			&cli.DurationFlag{Name: "timeout", Usage: "stop, with exit code 1 when --count was not reached, after `DURATION`", Action: notNegative("timeout")},
			&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "do not tell when a broker is lost and when it is back"},
			&cli.BoolFlag{Name: "keys", Usage: "print the key and a tab before the value"},
			&cli.BoolFlag{Name: "offsets", Usage: "print topic, partition and offset before the value"},
			&cli.BoolFlag{Name: "headers", Usage: "print the headers before the value"},
		),
	}
}

func consume(c *cli.Context) error {
	topics, err := names(c, "topic")
	if err != nil {
		return err
	}
	js, err := asJSON(c)
	if err != nil {
		return err
	}
	opts, err := consumeOptions(c, topics)
	if err != nil {
		return err
	}
	lost := newWatch(c.App.ErrWriter, c.String("group"), c.Bool("quiet"))
	client, err := newClient(c, append(opts, kgo.WithHooks(lost))...)
	if err != nil {
		return err
	}
	defer client.Close()
	if err := toldReachable(c.Context, client); err != nil {
		return fmt.Errorf("consume: %w", err)
	}
	only := int32(c.Int("partition"))
	if err := requireTopics(c.Context, client, topics, only); err != nil {
		return err
	}
	ctx, stop := untilInterrupted(c.Context)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	if d := c.Duration("timeout"); d > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d)
		defer cancel()
	}
	p := &printer{w: bufio.NewWriter(c.App.Writer), json: js, keys: c.Bool("keys"), offsets: c.Bool("offsets"), headers: c.Bool("headers"),
		limit: c.Int("count"), isolation: c.String("isolation")}
	if c.Bool("exit-at-end") {
		var held string
		if p.ends, held, err = endsNow(ctx, client, topics, only, c.String("from"), p.isolation); err != nil {
			return err
		}
		if from := c.String("from"); len(p.ends) == 0 && from != "start" && from != "end" {
			fmt.Fprintf(c.App.ErrWriter, "Nothing is there from %s on; `barnabas topic describe %s` shows where partitions end.\n", from, topics[0])
		}
		if held != "" {
			defer fmt.Fprintln(c.App.ErrWriter, held)
		}
	}
	return consumeLoop(ctx, client, p, lost)
}

func consumeOptions(c *cli.Context, topics []string) ([]kgo.Opt, error) {
	from, err := startOffset(c.String("from"))
	if err != nil {
		return nil, err
	}
	opts := []kgo.Opt{kgo.ConsumeResetOffset(from), kgo.FetchMaxWait(500 * time.Millisecond)}
	if only := int32(c.Int("partition")); only >= 0 {
		opts = append(opts, kgo.ConsumePartitions(onePartitionOf(topics, only, from)))
	} else {
		opts = append(opts, kgo.ConsumeTopics(topics...))
	}
	if c.Bool("exit-at-end") {
		opts = append(opts, kgo.KeepControlRecords()) // the last offset may be one's
	}
	if g := c.String("group"); g != "" {
		if c.Bool("exit-at-end") {
			return nil, usagef("consume: --exit-at-end reads every partition and so cannot go with --group; use --count or --timeout")
		}
		if c.Int("partition") >= 0 {
			return nil, usagef("consume: --partition cannot go with --group, which assigns the partitions to its members")
		}
		opts = append(opts, kgo.ConsumerGroup(g), kgo.AutoCommitMarks())
	} else if c.IsSet("protocol") {
		return nil, usagef("consume: --protocol is the protocol of a group; name the group with --group")
	}
	switch level := c.String("isolation"); level {
	case readUncommitted:
	case readCommitted:
		opts = append(opts, kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	default:
		return nil, usagef("consume --isolation %q: want %s or %s", level, readCommitted, readUncommitted)
	}
	switch c.String("protocol") {
	case typeClassic:
	case typeConsumer:
		opts = append(opts, kgo.ServerSideBalancer(), kgo.Balancers(kgo.StickyBalancer()))
	default:
		return nil, usagef("consume --protocol %q: want %s or %s", c.String("protocol"), typeClassic, typeConsumer)
	}
	return opts, nil
}

func startOffset(from string) (kgo.Offset, error) {
	o := kgo.NewOffset()
	switch {
	case from == "start":
		return o.AtStart(), nil
	case from == "end":
		return o.AtEnd(), nil
	case strings.HasPrefix(from, "@"):
		ms, err := parseTimeMs(from[1:])
		if err != nil {
			return o, usagef("--from %q: %v", from, err)
		}
		return o.AfterMilli(ms), nil
	}
	n, ok := parseOffset(from)
	if !ok {
		return o, usagef("--from %q: want start, end, an offset, or @TIME", from)
	}
	return o.At(n), nil
}

// parseTimeMs reads RFC 3339 or Unix milliseconds.
func parseTimeMs(s string) (int64, error) {
	ms, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		t, err := time.Parse(time.RFC3339, s)
		if err != nil {
			return 0, errors.New("want a time as 2026-01-31T12:00:00Z or as Unix milliseconds")
		}
		ms = t.UnixMilli()
	}
	if ms < 0 {
		// The protocol has other meanings for these.
		return 0, errors.New("want a time from 1970 on")
	}
	return ms, nil
}

func consumeLoop(ctx context.Context, client *kgo.Client, p *printer, lost *watch) error {
	group := lost.group != ""
	for !p.done() {
		fetches, err := poll(ctx, client, p)
		if ctx.Err() != nil {
			break
		}
		if err != nil {
			return err
		}
		if err := lost.fetchError(fetches); err != nil {
			return err
		}
		for it := fetches.RecordIter(); !it.Done() && !p.done(); {
			r := it.Next()
			if err := p.print(r); err != nil {
				return err
			}
			if group {
				client.MarkCommitRecords(r)
			}
		}
		if err := p.w.Flush(); err != nil {
			return err
		}
	}
	if group {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), commandTimeout)
		defer cancel()
		if err := client.CommitMarkedOffsets(end); err != nil {
			return fmt.Errorf("consume: commit: %w", err)
		}
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) && !p.done() && (p.limit > 0 || p.ends != nil) {
		return fmt.Errorf("consume: timed out after %s", plural(p.printed, "record"))
	}
	return nil
}
