// Command transactions is Kafka's own system test of transactions against the built binary: numbered messages go into
// a topic, one of Kafka's TransactionalMessageCopiers per partition copies them to another in transactions, some of
// which it aborts, while the broker and the copiers are killed every few seconds. The output, read with read_committed,
// must have each number exactly once.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"github.com/barnabas-mq/barnabas/compat-tests/harness"
)

type options struct {
	kind       harness.Kind
	dir, libs  string
	partitions int
	duration   time.Duration
	every      time.Duration
	rate       int
	seed       uint64
}

func main() {
	var o options
	var kind string
	flag.IntVar(&o.partitions, "partitions", 3, "input partitions, each with a copier")
	flag.DurationVar(&o.duration, "for", 2*time.Minute, "how long to kill")
	flag.DurationVar(&o.every, "every", 5*time.Second, "a kill comes after half to one and a half of this")
	flag.IntVar(&o.rate, "rate", 1500, "messages a second into the input topic")
	flag.Uint64Var(&o.seed, "seed", uint64(time.Now().UnixNano()), "of whom to kill and when")
	flag.StringVar(&kind, "broker", string(harness.Barnabas), "barnabas or kafka")
	flag.StringVar(&o.dir, "dir", "", "a folder to use and keep; without it a temporary one, kept on failure")
	flag.Parse()
	o.kind = harness.Kind(kind)
	var err error
	o.libs, err = harness.JavaLibs()
	if errors.Is(err, harness.ErrNoJVM) && os.Getenv("CI") == "" {
		fmt.Println("transactions: not run:", err)
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "transactions:", err)
		os.Exit(1)
	}
	keep := o.dir != ""
	if !keep {
		if o.dir, err = os.MkdirTemp(os.Getenv("COMPAT_TMP"), "transactions-"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
	}
	fmt.Printf("transactions: %d partitions, kills for %v, about every %v, seed %d\n", o.partitions, o.duration, o.every, o.seed)
	if err := run(context.Background(), o); err != nil {
		fmt.Fprintf(os.Stderr, "transactions: FAILED: %v\nthe data folder and the logs are in %s; seed %d\n", err, o.dir, o.seed)
		os.Exit(1)
	}
	if !keep {
		_ = os.RemoveAll(o.dir)
	}
}

// patience is after how long something is taken to hang: a busy machine does not.
const patience = 5 * time.Minute

const input, output = "input", "output"

func run(ctx context.Context, o options) error {
	settings := harness.Options{Kind: o.kind, Dir: o.dir}
	starting, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	b, err := harness.Start(starting, settings)
	if err != nil {
		return err
	}
	defer func() { b.Kill() }()
	settings = b.Options // the same ports from now on
	if err := makeTopics(ctx, b.Addr(), o.partitions); err != nil {
		return err
	}
	source, err := startSource(ctx, b.Addr(), o.rate)
	if err != nil {
		return err
	}
	defer source.close()
	copiers := newCopiers(o, b.Addr())
	defer copiers.kill()
	rnd := rand.New(rand.NewPCG(o.seed, 1))
	brokerKills := 0
	for end := time.Now().Add(o.duration); time.Now().Before(end); {
		time.Sleep(o.every/2 + time.Duration(rnd.Int64N(int64(o.every)))) // the moment of the kill is the experiment
		if rnd.IntN(2) == 0 {
			copiers.killOne(rnd.IntN(o.partitions))
			continue
		}
		b.Kill()
		brokerKills++
		if b, err = harness.Launch(settings); err != nil {
			return err
		}
		ready, cancel := context.WithTimeout(ctx, patience)
		err := b.WaitReady(ready)
		cancel()
		if err != nil {
			return fmt.Errorf("after kill %d: %w; the broker's log ends:\n%s", brokerKills, err, b.LogTail(3000))
		}
	}
	sent, err := source.finish(ctx)
	if err != nil {
		return err
	}
	if err := copiers.finish(ctx); err != nil {
		return err
	}
	fmt.Printf("transactions: %d kills of the broker, %d of copiers; %d messages in\n", brokerKills, copiers.killed(), sent)
	if err := verify(ctx, b.Addr(), sent); err != nil {
		return err
	}
	if p := b.Panics(); p != "" && o.kind == harness.Barnabas {
		return fmt.Errorf("the broker's log has:\n%s", p)
	}
	return nil
}
