package clientmetrics

import (
	"hash/maphash"
	"math"
	"slices"
	"strings"

	"github.com/barnabas-mq/barnabas/internal/telemetry"
	"github.com/barnabas-mq/barnabas/storage"
)

// Bounds of what is kept: a Java producer has some 100 series, each of some 200
// bytes of names.
const (
	seriesMax         = 10_000
	seriesPerInstance = 1000
	seriesBytesMax    = 8 << 20
	nameMax           = 200
	labelsMax         = 16
	labelMax          = 250
)

// series is the newest value of one metric of one client.
type series struct {
	name           string
	counter        bool
	attributes     []attribute
	labels, values []string
	value          float64
	bytes          int
	hash           uint64 // of the name and the labels
}

// label makes the labels: who the client is, what it says of itself, and what it
// says of the value.
func (s *series) label(i *instance) {
	s.labels, s.values = labelsOf(i.client, append(slices.Clone(s.attributes), i.resource...))
	s.bytes = len(s.name)
	for _, a := range s.attributes {
		s.bytes += len(a.key) + len(a.value)
	}
	for n := range s.labels {
		s.bytes += len(s.labels[n]) + len(s.values[n])
	}
	var h maphash.Hash
	h.SetSeed(seed)
	for _, text := range slices.Concat([]string{s.name}, s.labels, s.values) {
		h.WriteString(text)
		h.WriteByte(0)
	}
	s.hash = h.Sum64()
}

var seed = maphash.MakeSeed()

// seriesTable counts the series of all instances; the manager's mutex guards it.
type seriesTable struct {
	count, bytes int
	// shown has the hash of each series: two of a client may be one here, and a page
	// with one twice is none.
	shown map[uint64]struct{}
	// kinds says of each name how many series have it, and that they count.
	kinds map[string]*nameKind
}

type nameKind struct {
	counter bool
	count   int
}

// add keeps the newest values and returns how many points found no place. A value
// that is no number is none: Java clients send it for means of nothing. A push has
// one resource; of several the last counts.
func (t *seriesTable) add(i *instance, points []point) (dropped int) {
	if n := len(points); n > 0 && !slices.Equal(i.resource, points[n-1].resource) {
		i.resource = points[n-1].resource
		t.relabel(i)
	}
	for _, p := range points {
		key := seriesKey(p)
		s := i.series[key]
		if math.IsNaN(p.value) {
			if s != nil && !s.counter {
				t.drop(i, key, s)
			}
			continue
		}
		if s == nil {
			if s = t.make(i, p); s == nil {
				dropped++
				continue
			}
			i.series[key] = s
		}
		if p.delta {
			s.value += p.value
		} else {
			s.value = p.value
		}
	}
	return dropped
}

// relabel gives the series of an instance its new resource, if there is room for
// that.
func (t *seriesTable) relabel(i *instance) {
	for _, s := range i.series {
		t.bytes -= s.bytes
		delete(t.shown, s.hash)
	}
	for key, s := range i.series {
		s.label(i)
		t.bytes += s.bytes
		if _, twice := t.shown[s.hash]; twice {
			s.hash = 0 // the other one's
			t.drop(i, key, s)
			continue
		}
		t.shown[s.hash] = struct{}{}
	}
	if t.bytes > seriesBytesMax {
		t.remove(i)
	}
}

func seriesKey(p point) string {
	var b strings.Builder
	b.WriteString(p.name)
	for _, a := range p.attributes {
		b.WriteByte(0)
		b.WriteString(a.key)
		b.WriteByte(0)
		b.WriteString(a.value)
	}
	return b.String()
}

// make is a new series, nil when there is no room for it, or when its name counts
// for another client what is no counter for this one.
func (t *seriesTable) make(i *instance, p point) *series {
	if t.count >= seriesMax || len(i.series) >= seriesPerInstance {
		return nil
	}
	s := &series{name: metricNameOf(p.name), counter: p.counter, attributes: slices.Clone(p.attributes)}
	s.label(i)
	kind := t.kinds[s.name]
	if kind == nil {
		kind = &nameKind{counter: s.counter}
	}
	if _, twice := t.shown[s.hash]; twice || t.bytes+s.bytes > seriesBytesMax || kind.counter != s.counter {
		return nil
	}
	if t.kinds == nil {
		t.kinds, t.shown = map[string]*nameKind{}, map[uint64]struct{}{}
	}
	t.shown[s.hash] = struct{}{}
	t.kinds[s.name] = kind
	kind.count++
	t.count++
	t.bytes += s.bytes
	return s
}

// remove forgets all series of an instance.
func (t *seriesTable) remove(i *instance) {
	for key, s := range i.series {
		t.drop(i, key, s)
	}
}

func (t *seriesTable) drop(i *instance, key string, s *series) {
	delete(i.series, key)
	delete(t.shown, s.hash)
	t.count--
	t.bytes -= s.bytes
	if kind := t.kinds[s.name]; kind != nil {
		if kind.count--; kind.count == 0 {
			delete(t.kinds, s.name)
		}
	}
}

const (
	// clientPrefix stands in front of every name, so that no client's metric can
	// be taken for one of the broker.
	clientPrefix = "kafka_client_"
	kafkaPrefix  = "org.apache.kafka."
)

// metricNameOf is a metric's name on the page: org.apache.kafka.producer.node.count is
// kafka_client_producer_node_count.
func metricNameOf(name string) string {
	return clientPrefix + plain(cut(strings.TrimPrefix(name, kafkaPrefix), nameMax))
}

// plain keeps the letters, digits and underscores of a name.
func plain(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, name)
}

func cut(s string, most int) string {
	if len(s) > most {
		s = s[:most]
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// labelsOf are a series' labels: who the client is, then what it says itself.
func labelsOf(c Client, attributes []attribute) (labels, values []string) {
	labels = []string{"client_instance_id", "client_id", "client_software_name", "client_software_version", "client_source_address"}
	values = []string{idText(c.ID), c.ClientID, c.SoftwareName, c.SoftwareVersion, c.Address}
	for _, a := range attributes {
		name := plain(a.key)
		if len(labels) >= labelsMax {
			break
		}
		if name[0] >= '0' && name[0] <= '9' || strings.HasPrefix(name, "__") {
			name = "label_" + name
		}
		if !slices.Contains(labels, name) {
			labels, values = append(labels, name), append(values, a.value)
		}
	}
	return labels, values
}

// idText is an id in Kafka's 22 characters.
func idText(id ID) string { return storage.FormatID(id) }

// samples are all series for the metrics page.
func (m *Manager) samples() []telemetry.Sample {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sweepLocked(m.o.Clock.Now())
	out := make([]telemetry.Sample, 0, m.series.count)
	for e := m.used.Front(); e != nil; e = e.Next() {
		for _, s := range e.Value.(*instance).series {
			kind := telemetry.KindGauge
			if s.counter {
				kind = telemetry.KindCounter
			}
			out = append(out, telemetry.Sample{
				Name: s.name, Kind: kind, Help: "Pushed by clients (KIP-714).", Labels: s.labels, Values: s.values, Value: s.value,
			})
		}
	}
	return out
}
