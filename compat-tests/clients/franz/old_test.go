//go:build old

package franz

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/barnabas-mq/barnabas/compat-tests/clients/cases"
	"github.com/barnabas-mq/barnabas/compat-tests/harness"
)

var lacks = map[string]string{
	"fencing":         "the client drops the error of EndTxn, from Apache Kafka as well",
	"offsets-by-time": "the client gives every record a time itself; TestOffsetsByTime asks for these",
}

// TestOffsetsByTime asks for the times that the records were given.
func TestOffsetsByTime(t *testing.T) {
	ctx := harness.Context(t, time.Minute)
	topic, c := harness.Name(t, "franz"), caseClient{}
	if err := c.CreateTopic(ctx, topic, 1); err != nil {
		t.Fatal(err)
	}
	harness.Settle(t, topic, 1)
	const count = 5
	for range count {
		if err := c.Send(ctx, topic, cases.Settings{}, []cases.Record{{Value: []byte("v")}}); err != nil {
			t.Fatal(err)
		}
	}
	var times []time.Time
	if err := c.Read(ctx, topic, 1, cases.ReadUncommitted, func(r cases.Record) bool {
		times = append(times, r.Time)
		return len(times) < count
	}); err != nil {
		t.Fatal(err)
	}
	for _, at := range append(times, times[0].Add(-time.Minute), times[0].Add(time.Minute)) {
		want := slices.IndexFunc(times, func(sent time.Time) bool { return !sent.Before(at) })
		if got, err := c.OffsetAt(ctx, topic, at); err != nil || got != int64(want) {
			t.Errorf("the offset at %v is %d, want %d of %v: %v", at, got, want, times, err)
		}
	}
}

func newOptions() []kgo.Opt { return nil }

// initialise leaves it to the first transaction to ask for a producer id.
func initialise(context.Context, *kgo.GroupTransactSession) error { return nil }
