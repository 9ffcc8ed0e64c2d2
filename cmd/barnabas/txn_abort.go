package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/urfave/cli/v2"
)

func txnAbort(c *cli.Context) error {
	partition, id := c.String("partition"), c.Args().First()
	switch {
	case c.NArg() > 1:
		return usagef("txn abort: name one transactional id")
	case id == "" && partition == "":
		return usagef("txn abort: name a transactional id, or a partition with --partition TOPIC:PARTITION")
	case id != "" && partition != "":
		return usagef("txn abort: name a transactional id or a partition, not both")
	case id != "":
		return withClient(c, func(ctx context.Context, client *kgo.Client) error { return abortID(ctx, c, client, id) })
	}
	start, producer := c.Int64("start-offset"), c.Int64("producer-id")
	if (start < 0) == (producer < 0) {
		return usagef("txn abort --partition: say which transaction, with --start-offset or with --producer-id")
	}
	topic, number, err := onePartition(partition)
	if err != nil {
		return err
	}
	return withClient(c, func(ctx context.Context, client *kgo.Client) error {
		return abortHanging(ctx, c, client, topic, number, start, producer)
	})
}

func onePartition(name string) (topic string, partition int32, err error) {
	wanted, err := partitionFilter("--partition", []string{name})
	if err != nil {
		return "", 0, err
	}
	for topic, partitions := range wanted {
		for p := range partitions {
			return topic, p, nil
		}
	}
	return "", 0, usagef("--partition %q: want TOPIC:PARTITION, for example orders:0", name)
}

// abortID asks for the id as a new producer would, which aborts what is under way.
func abortID(ctx context.Context, c *cli.Context, client *kgo.Client, id string) error {
	described, err := kadm.NewClient(client).DescribeTransactions(ctx, id)
	if err != nil {
		return fmt.Errorf("describe transaction: %w", err)
	}
	d := described[id]
	if d.Err != nil {
		return errors.New(describeFailure(id, d.Err, ""))
	}
	if d.State != "Ongoing" {
		return fmt.Errorf("%s has no transaction under way: it is %s", id, d.State)
	}
	req := kmsg.NewPtrInitProducerIDRequest()
	req.TransactionalID, req.TransactionTimeoutMillis = &id, d.TimeoutMillis
	for {
		resp, err := req.RequestWith(ctx, client)
		if err == nil {
			err = kerr.ErrorForCode(resp.ErrorCode)
		}
		if err == nil {
			return show(c, map[string]any{"aborted": id}, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "Aborted the transaction of %s; its producer is fenced.\n", id)
				return err
			})
		}
		if !errors.Is(err, kerr.ConcurrentTransactions) {
			return errors.New(describeFailure(id, err, ""))
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: the transaction has been told to abort, but is not complete yet", id)
		case <-time.After(waitPoll):
		}
	}
}

// abortHanging writes the marker that no coordinator will write.
func abortHanging(ctx context.Context, c *cli.Context, client *kgo.Client, topic string, partition int32, start, producer int64) error {
	adm := kadm.NewClient(client)
	views, err := describeProducers(ctx, adm, []string{fmt.Sprintf("%s:%d", topic, partition)})
	if err != nil {
		return err
	}
	at := slices.IndexFunc(views, func(v producerView) bool {
		return v.StartOffset >= 0 && (start >= 0 && v.StartOffset == start || producer >= 0 && v.ProducerID == producer)
	})
	if at < 0 {
		return fmt.Errorf("%s partition %d has no such open transaction; `barnabas txn producers %s:%d` shows what it has", topic, partition, topic, partition)
	}
	v := views[at]
	if !c.Bool("force") {
		ids, err := coordinatedIDs(ctx, client, views[at:at+1])
		if err != nil {
			return err
		}
		if ids[0] != "" {
			return fmt.Errorf("this transaction does not hang: it is one of %s, whose coordinator will end it; `barnabas txn abort %s` aborts it in all its partitions, --force in this one alone", ids[0], ids[0])
		}
	}
	marker := kadm.TxnMarkers{
		ProducerID: v.ProducerID, ProducerEpoch: v.ProducerEpoch, CoordinatorEpoch: max(v.CoordinatorEpoch, 0), Topics: kadm.TopicsSet{},
	}
	marker.Topics.Add(topic, partition)
	responses, err := adm.WriteTxnMarkers(ctx, marker)
	if err != nil {
		return fmt.Errorf("write the marker: %w", err)
	}
	for _, r := range responses.SortedPartitions() {
		if r.Err != nil {
			return errors.New(describeFailure(fmt.Sprintf("%s partition %d", r.Topic, r.Partition), r.Err, ""))
		}
	}
	return show(c, v, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "Aborted the transaction of producer %d in %s partition %d, open since offset %d.\n", v.ProducerID, topic, partition, v.StartOffset)
		return err
	})
}
