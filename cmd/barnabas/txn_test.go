package main

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/protocol/batch"
)

// openTransaction is a program for scripts: `opentxn begin ID TOPIC` leaves a
// transaction open as a client does that has died; `opentxn hang TOPIC` leaves
// records in a transaction that no coordinator knows.
func openTransaction() {
	if err := leaveOpen(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "opentxn:", err)
		os.Exit(1)
	}
}

func leaveOpen(args []string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	opts := []kgo.Opt{kgo.SeedBrokers(os.Getenv("BARNABAS_BROKER"))}
	if args[0] == "begin" {
		// Open for longer than any script takes.
		cl, err := kgo.NewClient(append(opts, kgo.TransactionalID(args[1]), kgo.TransactionTimeout(10*time.Minute))...)
		if err != nil {
			return err
		}
		if err := cl.BeginTransaction(); err != nil {
			return err
		}
		return cl.ProduceSync(ctx, &kgo.Record{Topic: args[2], Value: []byte("open")}).FirstErr()
	}
	cl, err := kgo.NewClient(opts...)
	if err != nil {
		return err
	}
	if err := verification(ctx, cl, "false"); err != nil {
		return err
	}
	b := batch.NewBuilder(batch.BuilderOptions{Transactional: true, Producer: &batch.ProducerStamp{ID: 4711, Epoch: 3}})
	b.Add(time.Now().UnixMilli(), nil, []byte("hangs"))
	req := kmsg.NewPtrProduceRequest()
	id := "nobody"
	req.TransactionID, req.Acks, req.TimeoutMillis = &id, -1, 10_000
	req.Topics = []kmsg.ProduceRequestTopic{{Topic: args[1], Partitions: []kmsg.ProduceRequestTopicPartition{{Records: b.Build()}}}}
	// A version before transactions v2, which would be added to a transaction.
	req.SetVersion(9)
	resp, err := cl.Broker(1).Request(ctx, pinned{req})
	if err != nil {
		return err
	}
	if err := kerr.ErrorForCode(resp.(*kmsg.ProduceResponse).Topics[0].Partitions[0].ErrorCode); err != nil {
		return err
	}
	return verification(ctx, cl, "true")
}

// pinned keeps a request at its version.
type pinned struct{ *kmsg.ProduceRequest }

func (pinned) MaxVersion() int16 { return 9 }

// verification turns on or off that the broker asks before an append to a
// transaction.
func verification(ctx context.Context, cl *kgo.Client, value string) error {
	_, err := kadm.NewClient(cl).AlterBrokerConfigs(ctx, []kadm.AlterConfig{{Name: "transaction.partition.verification.enable", Value: &value}})
	return err
}

// Without a limit every open transaction counts, also one whose producer's clock is
// ahead of ours.
func TestHangingByAge(t *testing.T) {
	now := time.UnixMilli(1_000_000)
	open := []producerView{{LastWriteMs: 1_002_000}, {LastWriteMs: 1_000_000}, {LastWriteMs: 400_000}}
	for maxTimeout, want := range map[time.Duration]int{0: 3, 5 * time.Minute: 1, time.Hour: 0} {
		hanging, young := byAge(open, now, maxTimeout)
		if len(hanging) != want || len(young) != len(open)-want {
			t.Errorf("%v: %d hang, %d are young", maxTimeout, len(hanging), len(young))
		}
	}
}
