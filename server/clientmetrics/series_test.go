package clientmetrics

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/barnabas-mq/barnabas/protocol/batch"
)

// The messages of OTLP, built field by field.
type message []byte

func (m message) text(num protowire.Number, v string) message {
	return protowire.AppendString(protowire.AppendTag(m, num, protowire.BytesType), v)
}

func (m message) sub(num protowire.Number, v message) message {
	return protowire.AppendBytes(protowire.AppendTag(m, num, protowire.BytesType), v)
}

func (m message) varint(num protowire.Number, v uint64) message {
	return protowire.AppendVarint(protowire.AppendTag(m, num, protowire.VarintType), v)
}

func (m message) fixed(num protowire.Number, v uint64) message {
	return protowire.AppendFixed64(protowire.AppendTag(m, num, protowire.Fixed64Type), v)
}

func (m message) double(num protowire.Number, v float64) message {
	return m.fixed(num, math.Float64bits(v))
}

func pair(key, value string) message {
	return message(nil).text(pairKey, key).sub(pairValue, message(nil).text(valueString, value))
}

// number is a data point of a gauge or sum.
func number(v float64, attributes ...message) message {
	m := message(nil).fixed(3, 1_700_000_000).double(numberDouble, v)
	for _, a := range attributes {
		m = m.sub(numberAttributes, a)
	}
	return m
}

func gauge(name string, points ...message) message {
	var g message
	for _, p := range points {
		g = g.sub(listPoints, p)
	}
	return message(nil).text(metricName, name).text(2, "words").sub(metricGauge, g)
}

func sum(name string, temporality uint64, monotonic bool, points ...message) message {
	g := message(nil).varint(listTemporality, temporality)
	if monotonic {
		g = g.varint(sumMonotonic, 1)
	}
	for _, p := range points {
		g = g.sub(listPoints, p)
	}
	return message(nil).text(metricName, name).sub(metricSum, g)
}

// data is one MetricsData of one resource.
func data(attributes []message, metrics ...message) []byte {
	var resource, scope message
	for _, a := range attributes {
		resource = resource.sub(resourceAttributes, a)
	}
	scope = scope.sub(1, message(nil).text(1, "scope"))
	for _, m := range metrics {
		scope = scope.sub(scopeMetrics, m)
	}
	return message(nil).sub(dataResourceMetrics, message(nil).sub(resourceMetricsScopes, scope).sub(resourceMetricsResource, resource))
}

// page is what of the metrics page has a client's metrics.
func (b *bench) page() (lines []string) {
	b.t.Helper()
	w := httptest.NewRecorder()
	b.m.o.Metrics.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	text, err := io.ReadAll(w.Body)
	if err != nil || w.Code != 200 {
		b.t.Fatalf("status %d, %v: %s", w.Code, err, text)
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, clientPrefix) {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	slices.Sort(lines)
	return lines
}

func (b *bench) push(c Client, data []byte) {
	b.t.Helper()
	_, told, err := b.m.Get(c)
	if err == nil {
		err = b.m.Push(c, Push{SubscriptionID: told.ID, Data: data})
	}
	if err != nil {
		b.t.Fatal(err)
	}
	b.clock.Advance(100 * time.Millisecond) // the interval
}

const delta, cumulative = 1, 2

func TestValuesOnThePage(t *testing.T) {
	b := newBench(t)
	b.subscribe("s", "metrics=*", "interval.ms=100")
	c := someone
	c.ID = ID{0: 0xaa}
	histogram := message(nil).varint(listTemporality, delta).sub(listPoints,
		message(nil).fixed(histogramCount, 3).double(histogramSum, 1.5).sub(histogramAttributes, pair("q", "r")))
	push := data([]message{pair("group_id", "g"), pair("client_rack", "")},
		gauge("org.apache.kafka.consumer.lag", number(7, pair("topic", "t"), pair("partition", "0")), number(8, pair("topic", "t"), pair("partition", "1"))),
		sum("org.apache.kafka.consumer.bytes.total", delta, true, number(5)),
		sum("org.apache.kafka.consumer.seen.total", cumulative, true, number(40)),
		sum("own-thing", delta, false, number(-2, pair("client_id", "lies"), pair("7th", "x"), pair("__name__", "y"))),
		message(nil).text(metricName, "h").sub(metricHistogram, histogram),
		gauge("org.apache.kafka.whole", message(nil).fixed(numberInt, uint64(1<<64-5))),
	)
	b.push(c, push)
	b.push(c, push)
	const who = `client_id="app",client_instance_id="qgAAAAAAAAAAAAAAAAAAAA"`
	const soft = `client_software_name="soft",client_software_version="1.0",client_source_address="127.0.0.1"`
	label := func(more ...string) string {
		all := append(strings.Split(who+","+soft, ","), append(more, `group_id="g"`, `client_rack=""`)...)
		slices.Sort(all)
		return "{" + strings.Join(all, ",") + "}"
	}
	want := []string{
		"kafka_client_consumer_bytes_total" + label() + " 10",
		"kafka_client_consumer_lag" + label(`topic="t"`, `partition="0"`) + " 7",
		"kafka_client_consumer_lag" + label(`topic="t"`, `partition="1"`) + " 8",
		"kafka_client_consumer_seen_total" + label() + " 40",
		"kafka_client_h_count" + label(`q="r"`) + " 6",
		"kafka_client_h_sum" + label(`q="r"`) + " 3",
		"kafka_client_own_thing" + label(`label_7th="x"`, `label___name__="y"`) + " -4",
		"kafka_client_whole" + label() + " -5",
	}
	if got := b.page(); !slices.Equal(got, want) {
		t.Errorf("page\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	b.m.Disconnected(c.ID)
	if got := b.page(); len(got) != 0 || b.m.series.count != 0 || b.m.series.bytes != 0 || len(b.m.series.kinds) != 0 {
		t.Errorf("left are %q, %+v", got, b.m.series)
	}
}

// A consumer's member id comes and changes while its counts go on; a mean of nothing
// is no value.
func TestResourceChanges(t *testing.T) {
	b := newBench(t)
	b.subscribe("s", "metrics=*", "interval.ms=100")
	c := someone
	c.ID = ID{0: 0xaa}
	counts, mean := sum("n", delta, true, number(5)), func(v float64) message { return gauge("mean", number(v)) }
	b.push(c, data(nil, counts, mean(1)))
	b.push(c, data([]message{pair("group_member_id", "m1")}, counts, mean(math.NaN())))
	b.push(c, data([]message{pair("group_member_id", "m2")}, counts, mean(math.NaN())))
	got := b.page()
	if len(got) != 1 || !strings.Contains(got[0], `group_member_id="m2"`) || !strings.HasSuffix(got[0], " 15") {
		t.Errorf("page\n%s", strings.Join(got, "\n"))
	}
	if b.m.series.count != 1 {
		t.Errorf("%d series are counted", b.m.series.count)
	}
	b.m.Disconnected(c.ID)
	if b.m.series.bytes != 0 || b.m.series.count != 0 {
		t.Errorf("left are %+v", b.m.series)
	}
}

// What a client says of itself can make two of its series one: a page that had both
// would be refused by its reader, whole.
func TestSeriesBecomeOne(t *testing.T) {
	b := newBench(t)
	c := someone
	c.ID = ID{0: 0xaa}
	b.subscribe("s", "metrics=*", "interval.ms=100")
	b.push(c, data(nil, gauge("x", number(1), number(1, pair("zone", "a")))))
	if got := b.page(); len(got) != 2 {
		t.Fatalf("page %q", got)
	}
	b.push(c, data([]message{pair("zone", "a")}, gauge("other", number(1))))
	if got := b.page(); len(got) != 2 || len(b.m.series.shown) != 2 {
		t.Fatalf("page %q, %d hashes", got, len(b.m.series.shown))
	}
	b.m.Disconnected(c.ID)
	if len(b.m.series.shown) != 0 {
		t.Fatalf("left are %+v", b.m.series)
	}
}

// What clients push cannot fill the memory, nor break the page.
func TestBounds(t *testing.T) {
	b := newBench(t)
	b.subscribe("s", "metrics=*", "interval.ms=100")
	many := func(prefix string, n, width int) []byte {
		var metrics []message
		for i := range n {
			metrics = append(metrics, gauge(fmt.Sprintf("%s%d", prefix, i), number(1, pair("k", strings.Repeat("x", width)))))
		}
		return data(nil, metrics...)
	}
	c := someone
	for i := range byte(12) {
		c.ID = ID{1, i}
		b.push(c, many("m", seriesPerInstance+5, 10))
	}
	if b.m.series.count != seriesMax {
		t.Errorf("%d series, want %d", b.m.series.count, seriesMax)
	}
	if got := len(b.page()); got != seriesMax {
		t.Errorf("%d lines on the page", got)
	}

	b = newBench(t)
	b.subscribe("s", "metrics=*", "interval.ms=100")
	for i := range byte(12) {
		c.ID = ID{1, i}
		c.ClientID = strings.Repeat("c", 30_000)
		for part := range 10 {
			b.push(c, many(fmt.Sprintf("m%d-", part), 90, 9000))
		}
	}
	if b.m.series.bytes > seriesBytesMax || b.m.series.bytes < seriesBytesMax*9/10 {
		t.Errorf("%d bytes, the bound is %d", b.m.series.bytes, seriesBytesMax)
	}

	// Names that become one, kinds that differ between clients, odd bytes.
	b = newBench(t)
	b.subscribe("s", "metrics=*", "interval.ms=100")
	c = someone
	c.ID = ID{1}
	b.push(c, data(nil, gauge("a.b", number(1)), gauge("a-b", number(2)), gauge("", number(3)), gauge("nan", number(math.NaN())),
		gauge("odd", number(4, pair("k\xff", "v\xff")))))
	c.ID = ID{2}
	b.push(c, data(nil, sum("a.b", cumulative, true, number(9)), sum("c", cumulative, true, number(1))))
	if got := b.page(); len(got) != 3 {
		t.Errorf("page\n%s", strings.Join(got, "\n"))
	}
	if _, _, err := parseOTLP(data(nil, gauge("g", slices.Repeat([]message{number(1)}, pointsMax+1)...))); err != errTooManyPoints {
		t.Errorf("too many points: %v", err)
	}
}

func compress(t *testing.T, codec batch.Codec, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	var w io.WriteCloser
	switch codec {
	case batch.Gzip:
		w = gzip.NewWriter(&b)
	case batch.LZ4:
		w = lz4.NewWriter(&b)
	case batch.Snappy:
		return snappy.Encode(nil, data)
	case batch.Zstd:
		var err error
		if w, err = zstd.NewWriter(&b); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// A push may be compressed; what it becomes is bounded as well.
func TestCompressedPush(t *testing.T) {
	plain := data(nil, gauge("g", number(1)))
	big := data(nil, gauge(strings.Repeat("g", 2<<20), number(1)))
	for _, codec := range []batch.Codec{batch.Gzip, batch.Snappy, batch.LZ4, batch.Zstd} {
		b := newBench(t)
		b.subscribe("s", "metrics=*", "interval.ms=100")
		c := someone
		c.ID = ID{1}
		_, told, _ := b.m.Get(c)
		if err := b.m.Push(c, Push{SubscriptionID: told.ID, Codec: codec, Data: compress(t, codec, plain)}); err != nil || len(b.page()) != 1 {
			t.Errorf("%v: %v, %d lines", codec, err, len(b.page()))
		}
		b.clock.Advance(time.Second)
		if err := b.m.Push(c, Push{SubscriptionID: told.ID, Codec: codec, Data: compress(t, codec, big)}); name(err) != "TELEMETRY_TOO_LARGE" {
			t.Errorf("%v of 2 MiB: %s", codec, name(err))
		}
	}
}

func FuzzParseOTLP(f *testing.F) {
	f.Add(data([]message{pair("a", "b")}, gauge("g", number(1, pair("c", "d"))), sum("s", delta, true, number(2))))
	f.Add([]byte{0x0a, 0xff})
	f.Fuzz(func(t *testing.T, in []byte) {
		points, _, err := parseOTLP(in)
		again, _, err2 := parseOTLP(bytes.Clone(in))
		if (err == nil) != (err2 == nil) || len(points) != len(again) || len(points) > pointsMax+1 {
			t.Fatal("two readings differ")
		}
		for _, p := range points {
			labels, values := labelsOf(Client{}, p.attributes)
			if len(labels) != len(values) || len(labels) > labelsMax {
				t.Fatalf("%d labels, %d values", len(labels), len(values))
			}
		}
	})
}
