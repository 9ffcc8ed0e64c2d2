package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/urfave/cli/v2"
)

// producerView is a producer that a partition knows; -1 stands for none.
type producerView struct {
	Topic            string `json:"topic"`
	Partition        int32  `json:"partition"`
	ProducerID       int64  `json:"producer_id"`
	ProducerEpoch    int16  `json:"producer_epoch"`
	CoordinatorEpoch int32  `json:"coordinator_epoch"`
	LastSequence     int32  `json:"last_sequence"`
	LastWriteMs      int64  `json:"last_write_ms"`
	// StartOffset is where the producer's open transaction begins.
	StartOffset int64 `json:"transaction_start_offset"`
}

func txnProducers(c *cli.Context) error {
	list, err := names(c, "topic")
	if err != nil {
		return err
	}
	return withAdmin(c, func(ctx context.Context, adm *kadm.Client) error {
		views, err := describeProducers(ctx, adm, list)
		if err != nil {
			return err
		}
		return show(c, views, func(w io.Writer) error { return printProducers(w, views, "Nobody has written there lately.") })
	})
}

func printProducers(w io.Writer, views []producerView, none string) error {
	if len(views) == 0 {
		_, err := fmt.Fprintln(w, none)
		return err
	}
	t := newTable("TOPIC", "PARTITION", "PRODUCER", "EPOCH", "LAST WRITE", "OPEN SINCE OFFSET")
	for _, v := range views {
		t.add(v.Topic, v.Partition, v.ProducerID, v.ProducerEpoch, timeText(v.LastWriteMs), orUnknown(v.StartOffset))
	}
	return t.print(w)
}

// describeProducers asks for the producers of TOPIC or TOPIC:PARTITION, of all
// topics, internal ones too, when none is named.
func describeProducers(ctx context.Context, adm *kadm.Client, list []string) ([]producerView, error) {
	set, err := partitionsNamed(ctx, adm, list)
	if err != nil {
		return nil, err
	}
	views := []producerView{}
	if len(set) == 0 {
		return views, nil
	}
	described, err := adm.DescribeProducers(ctx, set)
	if err != nil {
		return nil, fmt.Errorf("describe producers: %w", err)
	}
	var failed []string
	for _, p := range described.SortedPartitions() {
		if p.Err != nil {
			failed = append(failed, describeFailure(fmt.Sprintf("%s partition %d", p.Topic, p.Partition), p.Err, p.ErrMessage))
			continue
		}
		for _, r := range p.ActiveProducers.Sorted() {
			views = append(views, producerView{
				Topic: r.Topic, Partition: r.Partition, ProducerID: r.ProducerID, ProducerEpoch: r.ProducerEpoch,
				CoordinatorEpoch: r.CoordinatorEpoch, LastSequence: r.LastSequence, LastWriteMs: r.LastTimestamp,
				StartOffset: r.CurrentTxnStartOffset,
			})
		}
	}
	return views, failures("describe producers", failed)
}

// partitionsNamed are the partitions that the arguments name.
func partitionsNamed(ctx context.Context, adm *kadm.Client, list []string) (kadm.TopicsSet, error) {
	wanted, err := partitionFilter("topic", list)
	if err != nil {
		return nil, err
	}
	topics, err := adm.ListTopicsWithInternal(ctx, sortedKeys(wanted)...)
	if err != nil {
		return nil, fmt.Errorf("list topics: %w", err)
	}
	set := kadm.TopicsSet{}
	for name, t := range topics {
		if t.Err != nil {
			return nil, errors.New(describeFailure(name, t.Err, ""))
		}
		for p := range t.Partitions {
			if only := wanted[name]; len(only) == 0 || only[p] {
				set.Add(name, p)
			}
		}
		for p := range wanted[name] {
			if _, ok := t.Partitions[p]; !ok {
				return nil, fmt.Errorf("%s has no partition %d", name, p)
			}
		}
	}
	return set, nil
}

func txnHanging(c *cli.Context) error {
	maxTimeout := c.Duration("max-timeout")
	return withClient(c, func(ctx context.Context, client *kgo.Client) error {
		open, err := uncoordinated(ctx, client, c.Args().Slice())
		if err != nil {
			return err
		}
		now := time.Now()
		hanging, young := byAge(open, now, maxTimeout)
		return show(c, hanging, func(w io.Writer) error {
			if err := printProducers(w, hanging, "No transaction hangs."+youngText(young, now, maxTimeout)); err != nil || len(hanging) == 0 {
				return err
			}
			v := hanging[0]
			_, err := fmt.Fprintf(w, "`barnabas txn abort --partition %s:%d --start-offset %d` aborts the first.\n", v.Topic, v.Partition, v.StartOffset)
			return err
		})
	})
}

// uncoordinated are the transactions that a partition has open and of which its
// coordinator does not know.
func uncoordinated(ctx context.Context, client *kgo.Client, list []string) ([]producerView, error) {
	open, err := describeProducers(ctx, kadm.NewClient(client), list)
	if err != nil {
		return nil, err
	}
	open = slices.DeleteFunc(open, func(v producerView) bool { return v.StartOffset < 0 })
	if len(open) == 0 {
		return open, nil
	}
	ids, err := coordinatedIDs(ctx, client, open)
	if err != nil {
		return nil, err
	}
	unknown := []producerView{}
	for i, v := range open {
		if ids[i] == "" {
			unknown = append(unknown, v)
		}
	}
	return unknown, nil
}

// byAge divides open transactions into those last written to before maxTimeout ago,
// which nobody will end any more, and the younger ones. With 0 none is young, wherever
// the clock of its producer stood.
func byAge(open []producerView, now time.Time, maxTimeout time.Duration) (hanging, young []producerView) {
	hanging = []producerView{}
	before := now.Add(-maxTimeout).UnixMilli()
	for _, v := range open {
		if maxTimeout > 0 && v.LastWriteMs >= before {
			young = append(young, v)
			continue
		}
		hanging = append(hanging, v)
	}
	return hanging, young
}

// youngText says what may come to hang; "" for nothing.
func youngText(young []producerView, now time.Time, maxTimeout time.Duration) string {
	if len(young) == 0 {
		return ""
	}
	oldest := young[0].LastWriteMs
	for _, v := range young {
		oldest = min(oldest, v.LastWriteMs)
	}
	return fmt.Sprintf(" %s open that no coordinator knows, last written to %s ago: younger than %v (--max-timeout).\n--max-timeout 0 lists all.",
		areSome(len(young)), ageText(max(now.UnixMilli()-oldest, 0)), maxTimeout)
}

// areSome is "1 is" or "2 are".
func areSome(n int) string {
	if n == 1 {
		return "1 is"
	}
	return fmt.Sprintf("%d are", n)
}

// coordinatedIDs are, for each open transaction, the transactional id whose
// coordinator knows of it, "" for none.
func coordinatedIDs(ctx context.Context, client *kgo.Client, views []producerView) ([]string, error) {
	ids := make([]string, len(views))
	req := kmsg.NewPtrListTransactionsRequest()
	for _, v := range views {
		req.ProducerIDFilters = append(req.ProducerIDFilters, v.ProducerID)
	}
	rows, err := listTransactions(ctx, client, req)
	if err != nil {
		return nil, fmt.Errorf("list transactions: %w", err)
	}
	var known []string
	for _, r := range rows {
		known = append(known, r.ID)
	}
	if len(known) == 0 {
		return ids, nil
	}
	described, err := kadm.NewClient(client).DescribeTransactions(ctx, known...)
	if err != nil {
		return nil, fmt.Errorf("describe transactions: %w", err)
	}
	for i, v := range views {
		for _, d := range described {
			if d.Err == nil && d.ProducerID == v.ProducerID && d.Topics.Lookup(v.Topic, v.Partition) {
				ids[i] = d.TxnID
			}
		}
	}
	return ids, nil
}
