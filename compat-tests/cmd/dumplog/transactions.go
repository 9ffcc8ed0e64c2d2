package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	txnTopic = "dump-txn"
	txnState = "__transaction_state"
)

// transact has three producers write to the same partitions in transactions that overlap, of which they abort most; the
// last life ends with one that is open, as long as the whole run may take.
func transact(ctx context.Context, addr string, life int) error {
	cl, err := client(addr)
	if err != nil {
		return err
	}
	defer cl.Close()
	if resp, err := kadm.NewClient(cl).CreateTopic(ctx, 2, 1, nil, txnTopic); err != nil && life == 0 && resp.ErrMessage == "" {
		return err
	}
	errs := make([]error, 3)
	var wait sync.WaitGroup
	for i := range errs {
		wait.Go(func() { errs[i] = transactAs(ctx, addr, fmt.Sprintf("dump-%d", i), life, i) })
	}
	wait.Wait()
	return errors.Join(errs...)
}

func transactAs(ctx context.Context, addr, id string, life, producer int) error {
	cl, err := client(addr, kgo.TransactionalID(id), kgo.TransactionTimeout(10*time.Minute), kgo.DefaultProduceTopic(txnTopic), kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		return err
	}
	defer cl.Close()
	for round := range 40 {
		if err := cl.BeginTransaction(); err != nil {
			return err
		}
		for i := range 6 {
			r := &kgo.Record{Partition: int32(i % 2), Key: fmt.Appendf(nil, "%s-%d", id, i), Value: make([]byte, 9000)}
			cl.Produce(ctx, r, nil)
		}
		if err := cl.Flush(ctx); err != nil {
			return err
		}
		if life == 2 && producer == 0 && round == 39 {
			return nil // it stays open
		}
		if err := cl.EndTransaction(ctx, kgo.TransactionEndTry(round%4 == producer)); err != nil {
			return fmt.Errorf("%s, round %d: %w", id, round, err)
		}
	}
	return nil
}

var (
	abortedEntry = regexp.MustCompile(`(?m)^version: 0 producerId: \d+ firstOffset: \d+ lastOffset: \d+ lastStableOffset: \d+`)
	marker       = regexp.MustCompile(`(?m)isTransactional: true isControl: true`)
	openEntry    = regexp.MustCompile(`(?m)^producerId: \d+ .*currentTxnFirstOffset: Optional(Long)?\[\d+\]`)
)

// transactional wants the folder to have had transactions of every kind in it.
func transactional(deep, state string, files *fileSet) error {
	if len(files.txns) < 4 {
		return fmt.Errorf("only %d transaction indexes", len(files.txns))
	}
	for what, want := range map[*regexp.Regexp]int{abortedEntry: 300, marker: 600, openEntry: 2} {
		if n := len(what.FindAllString(deep, -1)); n < want {
			return fmt.Errorf("only %d lines like %s, fewer than %d", n, what, want)
		}
	}
	for i := range 3 {
		if id := fmt.Sprintf("dump-%d", i); !regexp.MustCompile(id + `.*(?i)CompleteAbort`).MatchString(state) {
			return fmt.Errorf("the decoded %s lacks %s", txnState, id)
		}
	}
	return nil
}
