package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/compat-tests/harness"
)

// budgets gathers one line for each budget and how many were missed.
type budgets struct{ missed int }

func (b *budgets) hold(name string, got, limit float64, unit string) {
	verdict := "ok    "
	if got >= limit {
		verdict = "MISSED"
		b.missed++
	}
	fmt.Printf("%s  %-66s %10.2f of %8.2f %s\n", verdict, name, got, limit, unit)
}

// runBudgets takes each budget of the whole broker, with nothing else on the machine.
func runBudgets(ctx context.Context, o options) error {
	dir, err := os.MkdirTemp(o.dir, "budget-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var all budgets
	for _, step := range []func(context.Context, string, *budgets) error{startBudget, idleBudget, connectionBudget, partitionBudget} {
		if err := step(ctx, dir, &all); err != nil {
			return err
		}
	}
	size, err := installed(harness.Barnabas)
	if err != nil {
		return err
	}
	all.hold("the binary", size*mib/1e6, 30, "MB")
	if all.missed > 0 {
		return fmt.Errorf("%d budgets missed", all.missed)
	}
	return nil
}

// startBudget takes the best of five starts: the budget is about the broker, not about what else the machine does.
func startBudget(_ context.Context, dir string, all *budgets) error {
	best := time.Hour
	for i := range 5 {
		b, took, err := startTimed(harness.Options{Kind: harness.Barnabas, Dir: fmt.Sprintf("%s/start-%d", dir, i)})
		if err != nil {
			return err
		}
		b.Kill()
		best = min(best, took)
	}
	all.hold("start to the first acknowledged record of a new topic", best.Seconds()*1000, 50, "ms")
	return nil
}

func idleBudget(ctx context.Context, dir string, all *budgets) error {
	b, err := harness.Start(ctx, harness.Options{Kind: harness.Barnabas, Dir: dir + "/idle"})
	if err != nil {
		return err
	}
	defer b.Kill()
	const settle, span = 2 * time.Second, 10 * time.Second
	time.Sleep(settle)
	before, err := harness.CPU(b.PID())
	if err != nil {
		return err
	}
	time.Sleep(span)
	after, err := harness.CPU(b.PID())
	if err != nil {
		return err
	}
	rss, _, err := harness.Memory(b.PID())
	if err != nil {
		return err
	}
	all.hold("idle memory, VmRSS", float64(rss)/mib, 30, "MiB")
	all.hold("idle CPU", 100*(after-before).Seconds()/span.Seconds(), 0.5, "% of a core")
	return nil
}

func connectionBudget(ctx context.Context, dir string, all *budgets) error {
	const connections = 10_000
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return err
	}
	limit.Cur = limit.Max
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Cur < connections+200 {
		return fmt.Errorf("10,000 connections need more open files than %d: %w", limit.Cur, err)
	}
	b, err := harness.Start(ctx, harness.Options{Kind: harness.Barnabas, Dir: dir + "/connections"})
	if err != nil {
		return err
	}
	defer b.Kill()
	conns := make([]net.Conn, 0, connections)
	defer func() {
		for _, c := range conns {
			c.Close()
		}
	}()
	for range connections {
		c, err := net.DialTimeout("tcp", b.Addr(), 10*time.Second)
		if err != nil {
			return fmt.Errorf("after %d connections: %w", len(conns), err)
		}
		conns = append(conns, c)
	}
	if _, err := harness.FirstAck(b.Addr(), "among-many", 0, []byte("x"), 10*time.Second); err != nil {
		return err
	}
	rss, _, err := harness.Memory(b.PID())
	if err != nil {
		return err
	}
	all.hold("memory with 10,000 idle connections, VmRSS", float64(rss)/mib, 300, "MiB")
	return nil
}

// partitionBudget stops a broker of 10,000 partitions cleanly and times its next start to a fetch and a list of offsets
// of a hundred of them.
func partitionBudget(ctx context.Context, dir string, all *budgets) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	b, err := harness.Start(ctx, harness.Options{Kind: harness.Barnabas, Dir: dir + "/partitions"})
	if err != nil {
		return err
	}
	if err := makePartitions(ctx, b.Addr()); err != nil {
		b.Kill()
		return err
	}
	if err := b.Stop(ctx); err != nil {
		return err
	}
	begin := time.Now()
	b, err = harness.Launch(b.Options)
	if err != nil {
		return err
	}
	defer b.Kill()
	if err := b.WaitReady(ctx); err != nil {
		return err
	}
	if err := askHundred(b.Addr()); err != nil {
		return err
	}
	all.hold("10,000 partitions, clean stop, to Fetch and ListOffsets of 100", time.Since(begin).Seconds(), 1, "s")
	return nil
}

const (
	manyTopics     = 100
	manyPartitions = 100
)

func manyTopic(i int) string { return fmt.Sprintf("many-%03d", i) }

func makePartitions(ctx context.Context, addr string) error {
	cl, err := client(addr, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		return err
	}
	defer cl.Close()
	adm := kadm.NewClient(cl)
	for t := range manyTopics {
		if resp, err := adm.CreateTopic(ctx, manyPartitions, 1, nil, manyTopic(t)); err != nil || resp.Err != nil {
			return fmt.Errorf("create %s: %w, %w", manyTopic(t), err, resp.Err)
		}
		for p := range int32(manyPartitions) {
			cl.Produce(ctx, &kgo.Record{Topic: manyTopic(t), Partition: p, Value: []byte("one record")}, nil)
		}
	}
	return cl.Flush(ctx)
}

// askHundred fetches the one record of a hundred partitions at random, and lists their end offsets.
func askHundred(addr string) error {
	w, err := harness.Dial(addr, 5*time.Second)
	if err != nil {
		return err
	}
	defer w.Close()
	list := kmsg.NewPtrListOffsetsRequest()
	list.Version = 4
	fetch := kmsg.NewPtrFetchRequest()
	fetch.Version = 11
	fetch.MaxWaitMillis, fetch.MinBytes, fetch.MaxBytes = 1000, 1, 50<<20
	for _, i := range rand.Perm(manyTopics * manyPartitions)[:100] {
		topic, partition := manyTopic(i/manyPartitions), int32(i%manyPartitions)
		lt, lp := kmsg.NewListOffsetsRequestTopic(), kmsg.NewListOffsetsRequestTopicPartition()
		lt.Topic, lp.Partition, lp.Timestamp = topic, partition, -1
		lt.Partitions = append(lt.Partitions, lp)
		list.Topics = append(list.Topics, lt)
		ft, fp := kmsg.NewFetchRequestTopic(), kmsg.NewFetchRequestTopicPartition()
		ft.Topic, fp.Partition, fp.PartitionMaxBytes = topic, partition, 1<<20
		ft.Partitions = append(ft.Partitions, fp)
		fetch.Topics = append(fetch.Topics, ft)
	}
	listed, err := w.Ask(list, 10*time.Second)
	if err != nil {
		return err
	}
	for _, t := range listed.(*kmsg.ListOffsetsResponse).Topics {
		for _, p := range t.Partitions {
			if p.ErrorCode != 0 || p.Offset != 1 {
				return fmt.Errorf("%s-%d ends at %d, not at 1 (error %d)", t.Topic, p.Partition, p.Offset, p.ErrorCode)
			}
		}
	}
	fetched, err := w.Ask(fetch, 10*time.Second)
	if err != nil {
		return err
	}
	for _, t := range fetched.(*kmsg.FetchResponse).Topics {
		for _, p := range t.Partitions {
			if p.ErrorCode != 0 || len(p.RecordBatches) == 0 {
				return fmt.Errorf("%s-%d answers error %d and %d bytes", t.Topic, p.Partition, p.ErrorCode, len(p.RecordBatches))
			}
		}
	}
	return nil
}
