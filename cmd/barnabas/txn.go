package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/urfave/cli/v2"
)

func txnCommand() *cli.Command {
	return &cli.Command{
		Name: "txn", Usage: "list, describe and abort transactions, find those that hang",
		Subcommands: []*cli.Command{
			{
				Name: "list", Usage: "list transactional ids", Action: txnList,
				Flags: clientFlags(
					&cli.StringSliceFlag{Name: "state", Usage: "only those in `STATE`, for example Ongoing; may be repeated"},
					&cli.DurationFlag{Name: "older", DefaultText: "any", Usage: "only those whose transaction is under way for longer than `DURATION`", Action: notNegative("older")},
					&cli.StringFlag{Name: "match", Usage: "only those that `PATTERN`, a regular expression, matches as a whole"},
				),
			},
			{Name: "describe", Usage: "show producers, time-outs and partitions of transactional ids", ArgsUsage: "ID...", Action: txnDescribe, Flags: clientFlags()},
			{Name: "producers", Usage: "show who has written to partitions, and open transactions", ArgsUsage: "TOPIC[:PARTITION]...", Action: txnProducers, Flags: clientFlags()},
			{
				Name: "find-hanging", Usage: "find transactions that no coordinator will ever end", ArgsUsage: "[TOPIC[:PARTITION]...]", Action: txnHanging,
				Description: "A transaction hangs when a partition has it open for longer than any may last, and its\n" +
					"coordinator knows nothing of it. Readers with read_committed wait for it for ever.",
				Flags: clientFlags(&cli.DurationFlag{Name: "max-timeout", Value: 15 * time.Minute, Usage: "the longest time a transaction may last, transaction.max.timeout.ms, is `DURATION`", Action: notNegative("max-timeout")}),
			},
			{
				Name: "abort", Usage: "abort the transaction of an id, or one that hangs in a partition", ArgsUsage: "[ID]", Action: txnAbort,
				Description: "With an ID its transaction is aborted and its producer fenced, as if another one had started.\n" +
					"With --partition and --start-offset or --producer-id a transaction that hangs there is aborted;\n" +
					"`barnabas txn find-hanging` finds those. One that its coordinator knows does not hang and is refused:\n" +
					"abort it by its ID; --force writes the marker into this partition alone all the same.",
				Flags: clientFlags(
					&cli.StringFlag{Name: "partition", Usage: "the partition in which a transaction hangs, `TOPIC:PARTITION`"},
					&cli.Int64Flag{Name: "start-offset", Value: -1, DefaultText: "any", Usage: "where the transaction that hangs begins, `OFFSET`", Action: within[int64]("start-offset", 0, math.MaxInt64)},
					&cli.Int64Flag{Name: "producer-id", Value: -1, DefaultText: "any", Usage: "the producer whose transaction hangs, `ID`", Action: within[int64]("producer-id", 0, math.MaxInt64)},
					&cli.BoolFlag{Name: "force", Usage: "with --partition: also a transaction that its coordinator knows"},
				),
			},
		},
	}
}

// maxListDetails bounds for how many transactions `txn list` asks for the start and
// the topics; the answer for one is some hundred bytes.
const maxListDetails = 1000

// txnRow is a transactional id in a list.
type txnRow struct {
	ID          string `json:"transactional_id"`
	State       string `json:"state"`
	ProducerID  int64  `json:"producer_id"`
	Coordinator int32  `json:"coordinator"`
	// StartedMs is when the transaction that is under way began, and OpenMs how long
	// ago that is; nil where none is, or where it is not known.
	StartedMs *int64 `json:"started_ms,omitempty"`
	OpenMs    *int64 `json:"open_ms,omitempty"`
	// Topics are those of its partitions.
	Topics []string `json:"topics"`
}

func txnList(c *cli.Context) error {
	req := kmsg.NewPtrListTransactionsRequest()
	req.StateFilters = c.StringSlice("state")
	if c.IsSet("older") {
		req.DurationFilterMillis = c.Duration("older").Milliseconds()
	}
	if pattern := c.String("match"); pattern != "" {
		req.TransactionalIDPattern = &pattern
	}
	return withClient(c, func(ctx context.Context, client *kgo.Client) error {
		rows, err := listTransactions(ctx, client, req)
		if err != nil {
			return fmt.Errorf("list transactions: %w", err)
		}
		addDetails(ctx, client, rows, time.Now())
		t := newTable("ID", "STATE", "PRODUCER", "COORDINATOR", "OPEN FOR", "TOPICS")
		for _, r := range rows {
			openFor := "-"
			if r.OpenMs != nil {
				openFor = ageText(*r.OpenMs)
			}
			t.add(r.ID, r.State, r.ProducerID, r.Coordinator, openFor, orDash(strings.Join(r.Topics, ",")))
		}
		return show(c, rows, func(w io.Writer) error {
			if len(rows) == 0 {
				_, err := fmt.Fprintln(w, "No transactions.")
				return err
			}
			return t.print(w)
		})
	})
}

// addDetails adds to rows of transactions under way when they began and where they
// write, for the first maxListDetails of them. The list is whole without that, so
// what can't be had is left out.
func addDetails(ctx context.Context, client *kgo.Client, rows []txnRow, now time.Time) {
	var open []string
	for _, r := range rows {
		if underWay := r.State == "Ongoing" || strings.HasPrefix(r.State, "Prepare"); underWay && len(open) < maxListDetails {
			open = append(open, r.ID)
		}
	}
	if len(open) == 0 {
		return
	}
	described, err := kadm.NewClient(client).DescribeTransactions(ctx, open...)
	if err != nil {
		return
	}
	for i := range rows {
		d, ok := described[rows[i].ID]
		if !ok || d.Err != nil {
			continue
		}
		if d.StartTimestamp >= 0 {
			openMs := max(now.UnixMilli()-d.StartTimestamp, 0)
			rows[i].StartedMs, rows[i].OpenMs = &d.StartTimestamp, &openMs
		}
		rows[i].Topics = sortedKeys(d.Topics)
	}
}

// listTransactions asks every broker. The library's own function has no filter by
// age.
func listTransactions(ctx context.Context, client *kgo.Client, req *kmsg.ListTransactionsRequest) ([]txnRow, error) {
	rows := []txnRow{}
	for _, shard := range client.RequestSharded(ctx, req) {
		if shard.Err != nil {
			return nil, shard.Err
		}
		resp := shard.Resp.(*kmsg.ListTransactionsResponse)
		if err := kerr.ErrorForCode(resp.ErrorCode); err != nil {
			if errors.Is(err, kerr.InvalidRegularExpression) && req.TransactionalIDPattern != nil {
				return nil, usagef("--match %q: want a regular expression, for example 'pay.*'", *req.TransactionalIDPattern)
			}
			return nil, errors.New(describeFailure(fmt.Sprintf("broker %d", shard.Meta.NodeID), err, ""))
		}
		if unknown := resp.UnknownStateFilters; len(unknown) > 0 {
			return nil, usagef("--state %s: there is no such state; there are Empty, Ongoing, PrepareCommit, PrepareAbort, CompleteCommit and CompleteAbort", unknown[0])
		}
		for _, s := range resp.TransactionStates {
			rows = append(rows, txnRow{ID: s.TransactionalID, State: s.TransactionState, ProducerID: s.ProducerID, Coordinator: shard.Meta.NodeID, Topics: []string{}})
		}
	}
	slices.SortFunc(rows, func(a, b txnRow) int { return strings.Compare(a.ID, b.ID) })
	return rows, nil
}

// txnView is what `txn describe` shows of one transactional id.
type txnView struct {
	ID            string             `json:"transactional_id"`
	State         string             `json:"state"`
	Coordinator   int32              `json:"coordinator"`
	ProducerID    int64              `json:"producer_id"`
	ProducerEpoch int16              `json:"producer_epoch"`
	TimeoutMs     int32              `json:"timeout_ms"`
	StartedMs     int64              `json:"started_ms"`
	Partitions    map[string][]int32 `json:"partitions"`
}

func txnDescribe(c *cli.Context) error {
	list, err := names(c, "transactional id")
	if err != nil {
		return err
	}
	return withAdmin(c, func(ctx context.Context, adm *kadm.Client) error {
		described, err := adm.DescribeTransactions(ctx, list...)
		if err != nil {
			return fmt.Errorf("describe transactions: %w", err)
		}
		views, failed := []txnView{}, []string{}
		for _, id := range list {
			d, ok := described[id]
			if !ok {
				continue
			}
			if d.Err != nil {
				failed = append(failed, describeFailure(d.TxnID, d.Err, ""))
				continue
			}
			views = append(views, viewOf(d))
		}
		if len(views) > 0 {
			if err := show(c, views, func(w io.Writer) error { return printTransactions(w, views) }); err != nil {
				return err
			}
		}
		return failures("describe", failed)
	})
}

func viewOf(d kadm.DescribedTransaction) txnView {
	v := txnView{
		ID: d.TxnID, State: d.State, Coordinator: d.Coordinator, ProducerID: d.ProducerID, ProducerEpoch: d.ProducerEpoch,
		TimeoutMs: d.TimeoutMillis, StartedMs: d.StartTimestamp, Partitions: map[string][]int32{},
	}
	for topic, partitions := range d.Topics {
		for p := range partitions {
			v.Partitions[topic] = append(v.Partitions[topic], p)
		}
		slices.Sort(v.Partitions[topic])
	}
	return v
}

func printTransactions(w io.Writer, views []txnView) error {
	t := newTable("ID", "STATE", "PRODUCER", "EPOCH", "TIME-OUT", "STARTED", "PARTITIONS")
	for _, v := range views {
		var partitions []string
		for _, topic := range sortedKeys(v.Partitions) {
			partitions = append(partitions, topic+":"+ids(v.Partitions[topic]))
		}
		t.add(v.ID, v.State, v.ProducerID, v.ProducerEpoch, time.Duration(v.TimeoutMs)*time.Millisecond, timeText(v.StartedMs), orDash(strings.Join(partitions, " ")))
	}
	return t.print(w)
}

// timeText is a time in the zone of whoever reads it, "-" for none.
func timeText(ms int64) string {
	if ms < 0 {
		return "-"
	}
	return time.UnixMilli(ms).Format("2006-01-02 15:04:05")
}

// ageText is a duration for people: milliseconds count below ten seconds only.
func ageText(ms int64) string {
	age := time.Duration(ms) * time.Millisecond
	if age >= 10*time.Second {
		age = age.Round(time.Second)
	}
	return age.String()
}
