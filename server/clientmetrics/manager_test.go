package clientmetrics

import (
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/barnabas-mq/barnabas/cluster/metadata"
	"github.com/barnabas-mq/barnabas/internal/clock"
	"github.com/barnabas-mq/barnabas/internal/telemetry"
	"github.com/barnabas-mq/barnabas/protocol/batch"
)

// bench is a manager with a clock that stands still.
type bench struct {
	t     *testing.T
	m     *Manager
	clock *clock.Manual
	img   *metadata.Image
	ids   byte
}

func newBench(t *testing.T) *bench {
	b := &bench{t: t, clock: clock.NewManual(time.Unix(1_700_000_000, 0)), img: metadata.New("c")}
	b.m = New(Options{
		Clock: b.clock, Log: slog.New(slog.DiscardHandler), Metrics: telemetry.NewRegistry(), MaxBytes: 1 << 20,
		NewID: func() ID { b.ids++; return ID{0: 0xaa, 15: b.ids} },
	})
	return b
}

// subscribe sets keys of a subscription, written key=value; without any it goes.
func (b *bench) subscribe(name string, settings ...string) {
	b.t.Helper()
	r := metadata.ConfigResource{Type: metadata.ResourceClientMetrics, Name: name}
	var records []metadata.Record
	for key := range b.img.Config(r) {
		records = append(records, &metadata.ConfigRecord{Resource: r, Name: key})
	}
	for _, s := range settings {
		key, value, _ := strings.Cut(s, "=")
		records = append(records, &metadata.ConfigRecord{Resource: r, Name: key, Value: &value})
	}
	img, delta, err := b.img.Next(b.img.Offset+1, records)
	if err != nil {
		b.t.Fatal(err)
	}
	b.img = img
	b.m.OnMetadata(delta, img)
}

func name(err *kerr.Error) string {
	if err == nil {
		return "ok"
	}
	return err.Message
}

var someone = Client{ClientID: "app", SoftwareName: "soft", SoftwareVersion: "1.0", Address: "127.0.0.1", Port: "4000"}

// TestThrottling has Apache Kafka's own answers, in its order of checks.
func TestThrottling(t *testing.T) {
	b := newBench(t)
	b.subscribe("s", "interval.ms=1000", "metrics=a.")
	c := someone
	var told Subscription
	get := func(want string) {
		t.Helper()
		id, s, err := b.m.Get(c)
		if name(err) != want {
			t.Fatalf("get: %s, want %s", name(err), want)
		}
		if err == nil {
			c.ID, told = id, s
		}
	}
	push := func(p Push, want string) {
		t.Helper()
		if err := b.m.Push(c, p); name(err) != want {
			t.Fatalf("push: %s, want %s", name(err), want)
		}
	}
	get("ok")
	own := Push{SubscriptionID: told.ID}
	wrong := Push{SubscriptionID: told.ID + 1}
	const early, unknown = "THROTTLING_QUOTA_EXCEEDED", "UNKNOWN_SUBSCRIPTION_ID"
	get(early)
	push(own, "ok") // the first push may come at once
	push(own, early)
	push(wrong, early) // before anything else is looked at
	get(early)
	b.clock.Advance(time.Second)
	get("ok")
	push(wrong, unknown)
	get("ok") // who must ask again may
	push(own, early)
	b.clock.Advance(time.Second)
	push(Push{SubscriptionID: told.ID, Data: []byte("garbage")}, "INVALID_RECORD")
	b.clock.Advance(time.Second)
	push(Push{SubscriptionID: told.ID, Codec: 9, Data: []byte("x")}, "UNSUPPORTED_COMPRESSION_TYPE")
	get("ok")
	push(own, early)
	b.clock.Advance(time.Second)
	push(Push{SubscriptionID: told.ID, Codec: batch.Gzip, Data: []byte("x")}, "INVALID_RECORD")
	b.clock.Advance(time.Second)
	push(Push{SubscriptionID: told.ID, Data: make([]byte, 1<<20+1)}, "TELEMETRY_TOO_LARGE")
	end := own
	end.Terminating = true
	push(end, "ok") // a last push comes when it must
	push(end, "INVALID_REQUEST")
	push(own, "INVALID_REQUEST")
	b.clock.Advance(time.Second)
	get("ok")
	push(own, "ok")

	c.ID = ID{}
	push(own, "INVALID_REQUEST")
	c.ID = ID{15: 1}
	push(own, "INVALID_REQUEST")
	get("ok")
	c.ID = ID{1, 2, 3}
	push(own, unknown) // nobody has told it
	get("ok")
}

// A changed subscription is told at once, and pushes for the old one are refused.
func TestChangedSubscription(t *testing.T) {
	b := newBench(t)
	b.subscribe("s", "interval.ms=1000", "metrics=a.")
	c := someone
	id, old, _ := b.m.Get(c)
	c.ID = id
	b.subscribe("other", "interval.ms=500", "metrics=b.,a.")
	if err := b.m.Push(c, Push{SubscriptionID: old.ID}); err != kerr.UnknownSubscriptionID {
		t.Fatal(name(err))
	}
	_, now, err := b.m.Get(c)
	if err != nil || now.ID == old.ID || now.IntervalMs != 500 || fmt.Sprint(now.Metrics) != "[a. b.]" {
		t.Fatalf("%+v, %s", now, name(err))
	}
	b.clock.Advance(time.Second)
	if err := b.m.Push(c, Push{SubscriptionID: now.ID}); err != nil {
		t.Fatal(name(err))
	}
	b.subscribe("other")
	_, again, err := b.m.Get(c)
	if err != nil || again.ID != old.ID {
		t.Fatalf("the same subscription has another number: %+v, was %+v, %s", again, old, name(err))
	}
}

func TestMatching(t *testing.T) {
	for _, tc := range []struct{ match, want string }{
		{"", "[x] 300000"},
		{"client_id=app", "[x] 300000"},
		{"client_id=ap", "[] 300000"},
		{"client_id=ap.,client_source_address=127\\.0\\.0\\.1,client_source_port=[0-9]+", "[x] 300000"},
		{"client_id=app,client_software_name=other", "[] 300000"},
		{"client_software_name=soft,client_software_version=1\\..*", "[x] 300000"},
		{"client_instance_id=qg.*", "[x] 300000"},
		{"client_id=no,client_id=app", "[x] 300000"},
	} {
		b := newBench(t)
		b.subscribe("s", "metrics=x", "match="+tc.match)
		_, told, err := b.m.Get(someone)
		if got := fmt.Sprint(told.Metrics, told.IntervalMs); err != nil || got != tc.want {
			t.Errorf("%s: %s, want %s", tc.match, got, tc.want)
		}
	}
	b := newBench(t)
	b.subscribe("s", "metrics=z,*,a", "interval.ms=200")
	b.subscribe("t", "metrics=b", "interval.ms=100")
	if _, told, _ := b.m.Get(someone); fmt.Sprint(told.Metrics, told.IntervalMs) != "[*] 100" {
		t.Errorf("told %+v", told)
	}
	b = newBench(t)
	if _, told, _ := b.m.Get(someone); told.Metrics != nil || told.IntervalMs != 300_000 {
		t.Errorf("without subscriptions told %+v", told)
	}
}

// Instances are forgotten when they are silent, when their connection closes, and
// when there are too many.
func TestInstancesAreForgotten(t *testing.T) {
	b := newBench(t)
	b.subscribe("s", "metrics=*", "interval.ms=100")
	ask := func() ID {
		id, _, err := b.m.Get(someone)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	count := func(want int) {
		t.Helper()
		b.m.samples()
		if got := b.m.used.Len(); got != want || len(b.m.instances) != want {
			t.Fatalf("%d instances are known, want %d", got, want)
		}
	}
	first := ask()
	b.m.Disconnected(first)
	b.m.Disconnected(first)
	count(0)
	ask()
	b.clock.Advance(idleMin + time.Millisecond)
	second := ask()
	count(1)
	b.m.Push(Client{ID: second}, Push{Terminating: true})
	b.m.Disconnected(second)
	count(1) // its last values stay for a while
	b.clock.Advance(idleMin + sweepEvery)
	count(0)

	n := uint32(0)
	b.m.o.NewID = func() ID { n++; return ID{1, byte(n >> 16), byte(n >> 8), byte(n)} }
	oldest := ask()
	for range instancesMax {
		ask()
	}
	count(instancesMax)
	if b.m.instances[oldest] != nil {
		t.Error("the one that asked first is still known")
	}
}

// TestOnlyChangedSubscriptionsAreRead changes one of many subscriptions: the others'
// patterns are not compiled again.
func TestOnlyChangedSubscriptionsAreRead(t *testing.T) {
	const match = "match=client_id=[a-z]+x[0-9]+.*|app"
	b := newBench(t)
	b.subscribe("s0", match, "metrics=a.")
	bytesOf := func(interval int) uint64 {
		r := metadata.ConfigResource{Type: metadata.ResourceClientMetrics, Name: "s0"}
		img, delta, err := b.img.Next(b.img.Offset+1, []metadata.Record{
			&metadata.ConfigRecord{Resource: r, Name: "interval.ms", Value: new(fmt.Sprint(interval))},
		})
		if err != nil {
			t.Fatal(err)
		}
		b.img = img
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		b.m.OnMetadata(delta, img)
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	alone := bytesOf(1000)
	for i := range 300 {
		b.subscribe(fmt.Sprint("more", i), match, fmt.Sprintf("metrics=m%d.", i))
	}
	if among := bytesOf(2000); among > 3*alone {
		t.Errorf("one change takes %d bytes, and %d when there are 300 more subscriptions", alone, among)
	}
	_, told, _ := b.m.Get(someone)
	if len(told.Metrics) != 301 || told.IntervalMs != 2000 {
		t.Errorf("%d metrics each %d ms", len(told.Metrics), told.IntervalMs)
	}
	b.subscribe("more7")
	b.subscribe("more8", "match=client_id=(", "metrics=m8.")
	if _, told, _ = b.m.Get(someone); len(told.Metrics) != 299 {
		t.Errorf("%d metrics with one less and one that cannot be read", len(told.Metrics))
	}
}
