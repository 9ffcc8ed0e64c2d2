//go:build !old

package franz

import (
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/barnabas-mq/barnabas/compat-tests/harness"
)

func client(t testing.TB, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	all := append([]kgo.Opt{
		kgo.SeedBrokers(harness.Shared.Addr()),
		kgo.DisableClientMetrics(),
		kgo.MetadataMinAge(100 * time.Millisecond),
	}, opts...)
	cl, err := kgo.NewClient(all...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return cl
}

func admin(t testing.TB) *kadm.Client { return kadm.NewClient(client(t)) }

func topic(t testing.TB, partitions int32, configs map[string]*string) string {
	t.Helper()
	name := harness.Name(t, "franz")
	resp, err := admin(t).CreateTopic(harness.Context(t, 30*time.Second), partitions, 1, configs, name)
	if err != nil || resp.Err != nil {
		t.Fatalf("create topic %s: %v, %v", name, err, resp.Err)
	}
	harness.Settle(t, name, int(partitions))
	return name
}

// same compares what was sent with what came back.
func same(sent, got *kgo.Record) error {
	if string(sent.Key) != string(got.Key) || (sent.Key == nil) != (got.Key == nil) {
		return fmt.Errorf("key %q became %q", sent.Key, got.Key)
	}
	if string(sent.Value) != string(got.Value) || (sent.Value == nil) != (got.Value == nil) {
		return fmt.Errorf("value of %d bytes (null %t) became one of %d (null %t)", len(sent.Value), sent.Value == nil, len(got.Value), got.Value == nil)
	}
	if !sent.Timestamp.Equal(got.Timestamp) {
		return fmt.Errorf("timestamp %v became %v", sent.Timestamp, got.Timestamp)
	}
	if len(sent.Headers) != len(got.Headers) {
		return fmt.Errorf("%d headers became %d", len(sent.Headers), len(got.Headers))
	}
	for i, h := range sent.Headers {
		g := got.Headers[i]
		if h.Key != g.Key || string(h.Value) != string(g.Value) || (h.Value == nil) != (g.Value == nil) {
			return fmt.Errorf("header %s=%q became %s=%q", h.Key, h.Value, g.Key, g.Value)
		}
	}
	return nil
}
