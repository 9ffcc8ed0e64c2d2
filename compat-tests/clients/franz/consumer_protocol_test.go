//go:build !old

package franz

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/barnabas-mq/barnabas/compat-tests/harness"
)

// TestConsumerProtocolThroughKills has members of the new group protocol (KIP-848) come and go while the broker is killed
// and started again. Every record is delivered, and the group's epoch never goes back.
func TestConsumerProtocolThroughKills(t *testing.T) {
	const partitions, count = 6, 1200
	ctx := harness.Context(t, 3*time.Minute)
	options := harness.Options{Dir: t.TempDir(), Properties: map[string]string{
		"group.consumer.min.heartbeat.interval.ms": "200", "group.consumer.heartbeat.interval.ms": "200",
	}}
	broker, err := harness.Start(ctx, options)
	if err != nil {
		t.Fatal(err)
	}
	options = broker.Options
	defer func() { broker.Kill() }()
	connect := func(opts ...kgo.Opt) *kgo.Client {
		cl, err := kgo.NewClient(append(opts, kgo.SeedBrokers(broker.Addr()))...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(cl.Close)
		return cl
	}
	adm := kadm.NewClient(connect())
	if _, err := adm.CreateTopic(ctx, partitions, 1, nil, "t"); err != nil {
		t.Fatal(err)
	}
	seen := &tally{seen: map[uint64]int{}}
	var wg sync.WaitGroup
	member := func() (leave func()) {
		cl := connect(kgo.ConsumerGroup("g"), kgo.ConsumeTopics("t"), kgo.ServerSideBalancer(), kgo.Balancers(kgo.StickyBalancer()),
			kgo.AutoCommitMarks(), kgo.AutoCommitInterval(100*time.Millisecond), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
		mctx, cancel := context.WithCancel(ctx)
		wg.Go(func() {
			for mctx.Err() == nil {
				// Errors are those of a broker that is away.
				fetches := cl.PollFetches(mctx)
				seen.add(fetches)
				cl.MarkCommitRecords(fetches.Records()...)
			}
			if err := commitMarked(ctx, cl); err != nil {
				t.Errorf("commit: %v", err)
			}
			cl.Close()
		})
		return cancel
	}
	var leaves []func()
	epoch := int32(0)
	prod := connect(kgo.DefaultProduceTopic("t"), kgo.RecordPartitioner(kgo.RoundRobinPartitioner()))
	for i := range count {
		switch i {
		case 0, 200, 400:
			leaves = append(leaves, member())
		case 300, 600, 900:
			if now := consumerEpoch(t, ctx, adm); now < epoch {
				t.Fatalf("the group's epoch went from %d back to %d", epoch, now)
			} else {
				epoch = now
			}
			broker.Kill()
			if broker, err = harness.Start(ctx, options); err != nil {
				t.Fatal(err)
			}
		case 800:
			leaves[0]()
		}
		r := &kgo.Record{Value: binary.BigEndian.AppendUint64(nil, uint64(i))}
		if err := prod.ProduceSync(ctx, r).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	await(t, ctx, func() error {
		if got := seen.distinct(); got < count {
			return fmt.Errorf("%d of %d records", got, count)
		}
		return nil
	})
	await(t, ctx, func() error {
		d, err := adm.DescribeConsumerGroups(ctx, "g")
		if err != nil {
			return err
		}
		if g := d["g"]; g.State != "Stable" || len(g.Members) != 2 || g.Epoch < epoch {
			return fmt.Errorf("the group is %s with %d members at epoch %d", g.State, len(g.Members), g.Epoch)
		}
		return nil
	})
	for _, leave := range leaves {
		leave()
	}
	wg.Wait()
	committed, err := adm.FetchOffsets(ctx, "g")
	if err != nil {
		t.Fatal(err)
	}
	var total int64
	committed.Each(func(o kadm.OffsetResponse) { total += o.At })
	if total < count {
		t.Errorf("offsets of %d of %d records are committed", total, count)
	}
	if text := broker.Panics(); text != "" {
		t.Error(text)
	}
}

func consumerEpoch(t *testing.T, ctx context.Context, adm *kadm.Client) int32 {
	t.Helper()
	d, err := adm.DescribeConsumerGroups(ctx, "g")
	if err != nil {
		t.Fatal(err)
	}
	return d["g"].Epoch
}
