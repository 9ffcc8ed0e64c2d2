// Command compaction is a rebuild of Apache Kafka's LogCompactionTester: it writes records with random keys and many
// duplicates, deletes among them and transactions of which some are aborted, remembers what has to come out, waits until
// the broker has cleaned its logs, consumes everything and compares. The broker may be killed meanwhile.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/barnabas-mq/barnabas/compat-tests/harness"
)

type options struct {
	kind                harness.Kind
	dir                 string
	messages            int
	topics, partitions  int
	keys                int
	deletes, transacted int
	kills               int
	seed                uint64
	limit               time.Duration
}

func main() {
	var o options
	kind := flag.String("broker", string(harness.Barnabas), "barnabas or kafka")
	flag.IntVar(&o.messages, "messages", 500_000, "records to write")
	flag.IntVar(&o.topics, "topics", 4, "topics, each with a codec of its own")
	flag.IntVar(&o.partitions, "partitions", 2, "partitions of each topic")
	flag.IntVar(&o.keys, "keys", 20_000, "distinct keys of a topic")
	flag.IntVar(&o.deletes, "deletes", 10, "percent of the records that delete")
	flag.IntVar(&o.transacted, "transactions", 30, "percent of the rounds that are a transaction, of which every third is aborted")
	flag.IntVar(&o.kills, "kills", 0, "how often to kill the broker while it is written to")
	flag.Uint64Var(&o.seed, "seed", uint64(time.Now().UnixNano()), "of keys, values and what happens to them")
	flag.DurationVar(&o.limit, "limit", 10*time.Minute, "what the whole may take")
	flag.StringVar(&o.dir, "dir", "", "a folder to use and keep; without it a temporary one, kept on failure")
	flag.Parse()
	o.kind = harness.Kind(*kind)
	keep := o.dir != ""
	if !keep {
		dir, err := os.MkdirTemp(os.Getenv("COMPAT_TMP"), "compaction-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		o.dir = dir
	}
	fmt.Printf("compaction: %d records of %d keys in %d topics, %d kills, seed %d\n", o.messages, o.keys, o.topics, o.kills, o.seed)
	ctx, cancel := context.WithTimeout(context.Background(), o.limit)
	defer cancel()
	if err := run(ctx, o); err != nil {
		fmt.Fprintf(os.Stderr, "compaction: FAILED: %v\nthe data folder and the broker's log are in %s; seed %d\n", err, o.dir, o.seed)
		os.Exit(1)
	}
	if !keep {
		_ = os.RemoveAll(o.dir)
	}
}

func run(ctx context.Context, o options) error {
	settings := harness.Options{Kind: o.kind, Dir: o.dir, Properties: map[string]string{
		"log.cleaner.backoff.ms": "200", "log.cleaner.threads": "2",
		// Room for 2 * 43690 keys at the default load factor: some rounds cover a part of the dirty segments only.
		"log.cleaner.dedupe.buffer.size": "2200000",
		"log.segment.bytes":              "1048576",
	}}
	b, err := harness.Start(ctx, settings)
	if err != nil {
		return err
	}
	l := &load{o: o, addr: b.Addr(), broker: b}
	defer func() { l.broker.Kill() }()
	began := time.Now()
	if err := l.run(ctx); err != nil {
		return fmt.Errorf("write: %w; the broker's log ends:\n%s", err, l.broker.LogTail(3000))
	}
	wrote := time.Since(began)
	began = time.Now()
	cleaned, err := l.broker.AwaitCleaned(ctx, l.names()...)
	if err != nil {
		return err
	}
	waited := time.Since(began)
	if err := verify(ctx, l, cleaned); err != nil {
		return err
	}
	// What was cleaned reads the same after a restart.
	if err := l.restart(ctx, false); err != nil {
		return err
	}
	if err := verify(ctx, l, cleaned); err != nil {
		return fmt.Errorf("after a restart: %w", err)
	}
	if p := l.broker.Panics(); p != "" {
		return errors.New(p)
	}
	fmt.Printf("compaction: ok: %d records written in %v, %d of them aborted, %d left after %v of cleaning, %d%% fewer; every key has its last value\n",
		l.written, wrote.Round(time.Millisecond), l.aborted, l.left, waited.Round(time.Millisecond), 100*(l.written-l.left)/max(l.written, 1))
	return nil
}
