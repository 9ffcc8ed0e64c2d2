// Command crash kills the broker with SIGKILL in the middle of a produce load, again and again, and checks after each
// restart that nothing acknowledged is gone, doubled or out of order, that groups go on from where they committed, and
// that the broker acknowledges a produce soon.
package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"github.com/barnabas-mq/barnabas/compat-tests/harness"
)

// patience is after how long something is taken to hang: a busy machine does not.
const patience = 3 * time.Minute

type options struct {
	kills      int
	partitions int
	preloadMiB int
	seed       uint64
	kind       harness.Kind
	dir        string
	within     time.Duration
}

func main() {
	var o options
	var kind string
	flag.IntVar(&o.kills, "n", 100, "how often to kill")
	flag.IntVar(&o.partitions, "partitions", 100, "partitions of the topic under load")
	flag.IntVar(&o.preloadMiB, "preload", 2048, "MiB in unrolled segments before the first kill")
	flag.Uint64Var(&o.seed, "seed", uint64(time.Now().UnixNano()), "of when to kill and where to write")
	flag.StringVar(&kind, "broker", string(harness.Barnabas), "barnabas or kafka")
	flag.StringVar(&o.dir, "dir", "", "a folder to use and keep; without it a temporary one, kept on failure")
	flag.DurationVar(&o.within, "within", time.Second, "what a restart may take to its first acknowledged produce")
	flag.Parse()
	o.kind = harness.Kind(kind)
	keep := o.dir != ""
	if !keep {
		dir, err := os.MkdirTemp(os.Getenv("COMPAT_TMP"), "crash-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		o.dir = dir
	}
	fmt.Printf("crash: %d kills, %d partitions, %d MiB before, seed %d\n", o.kills, o.partitions, o.preloadMiB, o.seed)
	if err := run(context.Background(), o); err != nil {
		fmt.Fprintf(os.Stderr, "crash: FAILED: %v\nthe data folder and the broker's log are in %s; seed %d\n", err, o.dir, o.seed)
		os.Exit(1)
	}
	if !keep {
		_ = os.RemoveAll(o.dir)
	}
}

func run(ctx context.Context, o options) error {
	rnd := rand.New(rand.NewPCG(o.seed, 1))
	settings := harness.Options{Kind: o.kind, Dir: o.dir}
	b, err := start(ctx, settings)
	if err != nil {
		return err
	}
	defer func() { b.Kill() }()
	settings = b.Options // the same ports from now on
	state := newState(o.partitions)
	if err := prepare(ctx, b.Addr(), o, state); err != nil {
		return err
	}
	loads, err := startLoads(ctx, b.Addr(), o, state)
	if err != nil {
		return err
	}
	defer loads.close()
	var report figures
	for kill := 1; kill <= o.kills; kill++ {
		member, err := startMember(ctx, b.Addr(), state)
		if err != nil {
			return fmt.Errorf("kill %d: %w", kill, err)
		}
		if err := loads.awaitProgress(ctx, patience); err != nil {
			return fmt.Errorf("kill %d: %w; the broker's log ends:\n%s", kill, err, b.LogTail(3000))
		}
		time.Sleep(time.Duration(50+rnd.IntN(700)) * time.Millisecond) // the moment of the kill is the experiment
		b.Kill()
		member.close()
		acked := state.snapshot()
		begin := time.Now()
		if b, err = harness.Launch(settings); err != nil {
			return err
		}
		if _, err := harness.FirstAck(b.Addr(), topic, int32(rnd.IntN(o.partitions)), probeValue, patience); err != nil {
			return fmt.Errorf("kill %d: %w; the broker's log ends:\n%s", kill, err, b.LogTail(3000))
		}
		report.restarts = append(report.restarts, time.Since(begin))
		if err := verify(ctx, b.Addr(), state, acked); err != nil {
			return fmt.Errorf("kill %d: %w", kill, err)
		}
		if err := loads.err(); err != nil {
			return fmt.Errorf("kill %d: %w", kill, err)
		}
		if kill%10 == 0 || kill == o.kills {
			fmt.Printf("kill %3d: %s\n", kill, report.line(state))
		}
	}
	if err := loads.finish(ctx); err != nil {
		return err
	}
	if err := verifyAll(ctx, b.Addr(), state); err != nil {
		return err
	}
	report.print(state)
	stop, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := b.Stop(stop); err != nil {
		return err
	}
	if p := b.Panics(); p != "" && o.kind == harness.Barnabas {
		return fmt.Errorf("the broker's log has:\n%s", p)
	}
	if worst := report.worst(); worst > o.within {
		return fmt.Errorf("a restart took %v to its first acknowledged produce, more than %v", worst, o.within)
	}
	return nil
}

func start(ctx context.Context, o harness.Options) (*harness.Broker, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	return harness.Start(ctx, o)
}
