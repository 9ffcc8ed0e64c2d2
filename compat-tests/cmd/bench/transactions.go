package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/barnabas-mq/barnabas/compat-tests/harness"
)

// The sizes of the rows about transactions.
const (
	txnRecords  = 10
	txnSize     = 100
	txnWarm     = time.Second
	txnMeasured = 5 * time.Second
)

// transactionRows counts small transactions over two partitions, of one producer and of several.
func transactionRows(ctx context.Context, o options, b *harness.Broker, r *report) error {
	for _, producers := range []int{1, 8} {
		name := fmt.Sprintf("transactions of %d records, %d producers at a time", txnRecords, producers)
		if !strings.Contains(name, o.only) {
			continue
		}
		topic := fmt.Sprintf("bench-transactions-%d", producers)
		if err := createTopic(ctx, b.Addr(), topic, 2); err != nil {
			return err
		}
		n, err := commitMany(ctx, b.Addr(), topic, producers)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		r.add(b.Kind, name, "1/s", true, float64(n)/txnMeasured.Seconds())
	}
	return nil
}

// commitMany has producers commit one transaction after the other and counts those that ended in the measured time.
func commitMany(ctx context.Context, addr, topic string, producers int) (committed int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	from := time.Now().Add(txnWarm)
	until := from.Add(txnMeasured)
	var count atomic.Int64
	errs := make([]error, producers)
	var wg sync.WaitGroup
	for i := range producers {
		wg.Go(func() {
			errs[i] = commitUntil(ctx, addr, topic, i, until, func() {
				if now := time.Now(); now.After(from) && now.Before(until) {
					count.Add(1)
				}
			})
		})
	}
	wg.Wait()
	return count.Load(), errors.Join(errs...)
}

func commitUntil(ctx context.Context, addr, topic string, producer int, until time.Time, committed func()) error {
	cl, err := client(addr, kgo.TransactionalID(fmt.Sprintf("%s-%d", topic, producer)), kgo.ProducerLinger(0),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchCompression(kgo.NoCompression()))
	if err != nil {
		return err
	}
	defer cl.Close()
	records := make([]*kgo.Record, txnRecords)
	values := randomValues(txnSize)
	for time.Now().Before(until) {
		for i := range records {
			records[i] = &kgo.Record{Topic: topic, Partition: int32(i % 2), Value: values[i]}
		}
		err := errors.Join(cl.BeginTransaction(), cl.ProduceSync(ctx, records...).FirstErr(), cl.EndTransaction(ctx, kgo.TryCommit))
		if err != nil {
			return err
		}
		committed()
	}
	return nil
}
