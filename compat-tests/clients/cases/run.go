package cases

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/compat-tests/harness"
)

const (
	partitions = 2
	count      = 300
	caseLimit  = 3 * time.Minute
)

// Common are the cases of every client; more are those that only some clients have.
func Common(more ...string) []string {
	return append([]string{"codec-none", "codec-gzip", "codec-snappy", "codec-lz4", "acks-0", "acks-1", "acks-all", "offsets-by-time"}, more...)
}

// Run runs the named cases of CASES.md, each as a test, but for those that the client lacks, with the reason.
func Run(t *testing.T, c Client, names []string, lacks map[string]string) {
	for _, name := range names {
		if lacks[name] != "" {
			continue
		}
		t.Run(name, func(t *testing.T) { run(t, harness.Context(t, caseLimit), c, name) })
	}
	for _, name := range slices.Sorted(maps.Keys(lacks)) {
		t.Run(name, func(t *testing.T) { t.Skip(lacks[name]) })
	}
}

func run(t *testing.T, ctx context.Context, c Client, name string) {
	kind, rest, _ := strings.Cut(name, "-")
	switch kind {
	case "codec":
		roundTrip(t, ctx, c, Settings{Codec: strings.TrimPrefix(rest, "none")})
	case "acks":
		roundTrip(t, ctx, c, Settings{Acks: rest})
	case "idempotent":
		roundTrip(t, ctx, c, Settings{Idempotent: true})
	case "group":
		group(t, ctx, c, rest)
	case "offsets":
		offsetsByTime(t, ctx, c)
	case "transaction":
		transaction(t, ctx, c.(Transactor))
	case "fencing":
		fencing(t, ctx, c.(Transactor))
	case "admin":
		admin(t, ctx, c, c.(Admin))
	default:
		t.Fatalf("there is no case %q", name)
	}
}

// newTopic makes a topic without the client, as some have no admin client.
func newTopic(t *testing.T, count int) string {
	t.Helper()
	topic := harness.Name(t, "cases")
	w, err := harness.Dial(harness.Shared.Addr(), 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	req := kmsg.NewPtrCreateTopicsRequest()
	req.Version, req.TimeoutMillis = 4, 10_000
	rt := kmsg.NewCreateTopicsRequestTopic()
	rt.Topic, rt.NumPartitions, rt.ReplicationFactor = topic, int32(count), 1
	req.Topics = append(req.Topics, rt)
	resp, err := w.Ask(req, 30*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if code := resp.(*kmsg.CreateTopicsResponse).Topics[0].ErrorCode; code != 0 {
		t.Fatalf("creating topic %s answers error %d", topic, code)
	}
	harness.Settle(t, topic, count)
	return topic
}

// readAll reads each partition up to the record "end", which sendEnd puts there, and leaves these out.
func readAll(t *testing.T, ctx context.Context, c Client, topic string, count int, level Isolation) []Record {
	t.Helper()
	var got []Record
	ended := 0
	err := c.Read(ctx, topic, count, level, func(r Record) bool {
		if string(r.Value) == "end" {
			ended++
		} else {
			got = append(got, r)
		}
		return ended < count
	})
	if err != nil {
		t.Fatalf("%s: after %d records and %d of %d ends: %v", level, len(got), ended, count, err)
	}
	return got
}

// ends are the records after which readAll stops.
func ends(count int) (records []Record) {
	for p := range count {
		records = append(records, Record{Partition: int32(p), Value: []byte("end")})
	}
	return records
}

// until asks until done says so.
func until(t *testing.T, ctx context.Context, done func() (bool, error), state func() string) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		switch ok, err := done(); {
		case err != nil:
			t.Fatalf("%v: %s", err, state())
		case ok:
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("it does not come to be: %s", state())
		case <-tick.C:
		}
	}
}

// send is Send that ends the test when it fails.
func send(t *testing.T, ctx context.Context, c Client, topic string, with Settings, records []Record) {
	t.Helper()
	if err := c.Send(ctx, topic, with, records); err != nil {
		t.Fatalf("send %d records: %v", len(records), err)
	}
}

// tallied counts the values of records.
func tallied(records []Record) map[string]int {
	counts := map[string]int{}
	for _, r := range records {
		counts[string(r.Value)]++
	}
	return counts
}

func values(prefix string, from, to int, topicPartitions int) (records []Record) {
	for i := from; i < to; i++ {
		records = append(records, Record{Partition: int32(i % topicPartitions), Value: fmt.Append(nil, prefix, i)})
	}
	return records
}
