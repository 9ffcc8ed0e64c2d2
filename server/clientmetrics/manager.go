package clientmetrics

import (
	"container/list"
	"fmt"
	"hash/crc32"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/barnabas-mq/barnabas/cluster/metadata"
	"github.com/barnabas-mq/barnabas/internal/clock"
	"github.com/barnabas-mq/barnabas/internal/telemetry"
	"github.com/barnabas-mq/barnabas/protocol/batch"
	"github.com/barnabas-mq/barnabas/server/config"
)

// ID is a client instance's id.
type ID = [16]byte

// reservedID is Kafka's second id that names nobody, beside the zero id.
var reservedID = ID{15: 1}

// Client is what is known of a client instance.
type Client struct {
	ID                            ID
	ClientID                      string
	SoftwareName, SoftwareVersion string
	Address                       string
	Port                          string
}

// Subscription is what a client is told to push.
type Subscription struct {
	ID         int32
	IntervalMs int32
	// Metrics are prefixes of names; "*" alone is all, none is nothing.
	Metrics []string
}

const (
	// instancesMax is Kafka's bound of known client instances; each costs up to a
	// kilobyte.
	instancesMax = 16384
	// An instance is forgotten after this time without a request, or after this
	// many of its intervals if that is longer; both as in Kafka.
	idleMin       = time.Minute
	idleIntervals = 3
	// sweepEvery is how often instances are looked through for those to forget.
	sweepEvery = 10 * time.Second
)

// Options is what a Manager is made of.
type Options struct {
	Clock clock.Clock
	Log   *slog.Logger
	// Metrics shows what clients push; it may be nil.
	Metrics *telemetry.Registry
	// MaxBytes is telemetry.max.bytes: of a push, compressed or not.
	MaxBytes int
	// NewID makes the id of a client instance.
	NewID func() ID
}

// Manager knows the subscriptions and the client instances. It is safe for
// concurrent use; its methods wait for nothing but each other.
type Manager struct {
	o     Options
	stats stats

	mu            sync.Mutex
	subscriptions map[string]*config.ClientSubscription
	// version counts the changes of subscriptions.
	version   int
	instances map[ID]*list.Element
	// used has the instances, the one that asked last in front.
	used      *list.List
	nextSweep time.Time
	series    seriesTable
}

// instance is one client instance.
type instance struct {
	client  Client
	told    Subscription
	version int

	// lastRequest is when a request was last taken, lastPush when it was a push,
	// lastSeen when one came.
	lastRequest, lastPush, lastSeen time.Time
	// mayPush says that the last request that was taken was no push: the first push
	// after it may come at once.
	mayPush     bool
	lastError   *kerr.Error
	terminating bool
	series      map[string]*series
	// resource is what the client last said of itself: a consumer's member id, for
	// example, which changes while its counts go on.
	resource []attribute
}

// New is a manager without subscriptions; it learns them as a metadata.Publisher.
func New(o Options) *Manager {
	m := &Manager{o: o, subscriptions: map[string]*config.ClientSubscription{}, instances: map[ID]*list.Element{}, used: list.New(), stats: newStats(o.Metrics)}
	o.Metrics.Samples(m.samples)
	o.Metrics.GaugeFunc("barnabas_client_metrics_instances", "Client instances that push metrics, or have asked whether to.", func() float64 {
		m.mu.Lock()
		defer m.mu.Unlock()
		return float64(m.used.Len())
	})
	return m
}

// OnMetadata takes over the subscriptions that have changed; it implements
// metadata.Publisher. Only those are read: a pattern takes longer to compile than to
// match.
func (m *Manager) OnMetadata(d *metadata.Delta, img *metadata.Image) {
	changed := map[string]*config.ClientSubscription{}
	for _, r := range d.Configs {
		if r.Type == metadata.ResourceClientMetrics {
			changed[r.Name] = m.read(r.Name, img.Config(r))
		}
	}
	if len(changed) == 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for name, s := range changed {
		if s == nil {
			delete(m.subscriptions, name)
		} else {
			m.subscriptions[name] = s
		}
	}
	m.version++
}

// read is a subscription, nil for one that is gone or cannot be read.
func (m *Manager) read(name string, set map[string]string) *config.ClientSubscription {
	if len(set) == 0 {
		return nil
	}
	s, err := config.ParseClientSubscription(set)
	if err != nil {
		m.o.Log.Warn("a client metrics subscription is left out", "subscription", name, "err", err)
		return nil
	}
	return &s
}

// Subscribed tells whether there is any subscription.
func (m *Manager) Subscribed() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.subscriptions) > 0
}

// Get tells a client what to push; an id of zero gets a new one. A client that asks
// again before its interval is over is refused, unless it had to ask.
func (m *Manager) Get(c Client) (ID, Subscription, *kerr.Error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.o.Clock.Now()
	for c.ID == (ID{}) {
		if id := m.o.NewID(); m.instances[id] == nil {
			c.ID = id
		}
	}
	i := m.instanceLocked(c, now)
	early := now.Sub(i.lastRequest) < i.interval()
	mustAsk := i.lastError == kerr.UnknownSubscriptionID || i.lastError == kerr.UnsupportedCompressionType
	if early && !mustAsk {
		m.stats.asked(kerr.ThrottlingQuotaExceeded)
		return c.ID, Subscription{}, kerr.ThrottlingQuotaExceeded
	}
	if !early {
		i.lastRequest, i.mayPush = now, true
	}
	i.lastError = nil
	m.stats.asked(nil)
	return c.ID, i.told, nil
}

// Push is the metrics of one client.
type Push struct {
	SubscriptionID int32
	Terminating    bool
	Codec          batch.Codec
	// Data is one OTLP MetricsData message, compressed with Codec.
	Data []byte
}

// Push takes a client's metrics. It may wait for another decompression: it is not for
// an event loop.
func (m *Manager) Push(c Client, p Push) *kerr.Error {
	refusal := m.admit(c, p)
	if refusal == nil && len(p.Data) > 0 {
		refusal = m.take(c, p)
	}
	m.stats.pushed(refusal)
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.instances[c.ID]; e != nil {
		e.Value.(*instance).lastError = refusal
	}
	return refusal
}

// admit says why a push is not taken.
func (m *Manager) admit(c Client, p Push) *kerr.Error {
	if c.ID == (ID{}) || c.ID == reservedID {
		return kerr.InvalidRequest
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.o.Clock.Now()
	i := m.instanceLocked(c, now)
	over := i.terminating
	i.terminating = p.Terminating
	if over {
		return kerr.InvalidRequest
	}
	if i.mayPush || now.Sub(i.lastPush) >= i.interval() {
		i.lastRequest, i.lastPush, i.mayPush = now, now, false
	} else if !p.Terminating {
		return kerr.ThrottlingQuotaExceeded
	}
	switch {
	case p.SubscriptionID != i.told.ID:
		return kerr.UnknownSubscriptionID
	case !p.Codec.Known():
		return kerr.UnsupportedCompressionType
	case len(p.Data) > m.o.MaxBytes:
		return kerr.TelemetryTooLarge
	}
	return nil
}

// take decompresses and keeps what an admitted push has.
func (m *Manager) take(c Client, p Push) *kerr.Error {
	data, err := batch.Decompress(p.Codec, p.Data, m.o.MaxBytes)
	if err != nil {
		if batch.IsTooLarge(err) {
			return kerr.TelemetryTooLarge
		}
		m.o.Log.Debug("client metrics that cannot be read", "client", c.ClientID, "err", err)
		return kerr.InvalidRecord
	}
	points, skipped, err := parseOTLP(data)
	if err != nil {
		m.o.Log.Debug("client metrics that cannot be read", "client", c.ClientID, "err", err)
		return kerr.InvalidRecord
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.instances[c.ID]; e != nil {
		skipped += m.series.add(e.Value.(*instance), points)
	}
	m.stats.took(len(points), skipped)
	return nil
}

// Disconnected forgets an instance whose connection has closed, as Kafka does; its
// values go with it unless it said that they are its last.
func (m *Manager) Disconnected(id ID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.instances[id]; e != nil && !e.Value.(*instance).terminating {
		m.forgetLocked(e)
	}
}

// Replaced forgets an instance whose connection speaks for another one now, and its
// values.
func (m *Manager) Replaced(id ID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.instances[id]; e != nil {
		m.forgetLocked(e)
	}
}

// instanceLocked finds or makes an instance, and brings what it is told up to date.
func (m *Manager) instanceLocked(c Client, now time.Time) *instance {
	m.sweepLocked(now)
	e := m.instances[c.ID]
	if e == nil {
		for m.used.Len() >= instancesMax {
			m.forgetLocked(m.used.Back())
		}
		c.ClientID, c.SoftwareName, c.SoftwareVersion = cut(c.ClientID, labelMax), cut(c.SoftwareName, labelMax), cut(c.SoftwareVersion, labelMax)
		e = m.used.PushFront(&instance{client: c, series: map[string]*series{}, version: -1})
		m.instances[c.ID] = e
	}
	m.used.MoveToFront(e)
	i := e.Value.(*instance)
	i.lastSeen = now
	if i.version != m.version {
		// Whatever it was refused or ended with belongs to what it was told before.
		*i = instance{client: i.client, series: i.series, resource: i.resource, lastSeen: now, version: m.version, told: m.tellLocked(i.client)}
	}
	return i
}

// tellLocked joins the subscriptions that a client matches: all metrics of any, at
// the shortest interval.
func (m *Manager) tellLocked(c Client) Subscription {
	s := Subscription{IntervalMs: config.DefaultPushIntervalMs}
	for _, sub := range m.subscriptions {
		if !c.matches(sub) {
			continue
		}
		s.Metrics = append(s.Metrics, sub.Metrics...)
		s.IntervalMs = min(s.IntervalMs, sub.IntervalMs)
	}
	slices.Sort(s.Metrics)
	s.Metrics = slices.Compact(s.Metrics)
	if slices.Contains(s.Metrics, allMetrics) {
		s.Metrics = []string{allMetrics}
	}
	// The same subscriptions are the same number for a client, also after a
	// restart.
	sum := crc32.Checksum(fmt.Appendf(nil, "%s %d %x", strings.Join(s.Metrics, ","), s.IntervalMs, c.ID), castagnoli)
	s.ID = int32(sum)
	return s
}

// allMetrics subscribes to every metric.
const allMetrics = "*"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func (c Client) matches(s *config.ClientSubscription) bool {
	for attribute, pattern := range s.Match {
		if !pattern.MatchString(c.attribute(attribute)) {
			return false
		}
	}
	return true
}

func (c Client) attribute(name string) string {
	switch name {
	case config.MatchClientInstanceID:
		return idText(c.ID)
	case config.MatchClientID:
		return c.ClientID
	case config.MatchSoftwareName:
		return c.SoftwareName
	case config.MatchSoftwareVersion:
		return c.SoftwareVersion
	case config.MatchSourceAddress:
		return c.Address
	case config.MatchSourcePort:
		return c.Port
	}
	return ""
}

func (i *instance) interval() time.Duration {
	return time.Duration(i.told.IntervalMs) * time.Millisecond
}

// sweepLocked forgets instances that have not been heard of for long.
func (m *Manager) sweepLocked(now time.Time) {
	if now.Before(m.nextSweep) {
		return
	}
	m.nextSweep = now.Add(sweepEvery)
	var next *list.Element
	for e := m.used.Front(); e != nil; e = next {
		next = e.Next()
		i := e.Value.(*instance)
		if now.Sub(i.lastSeen) > max(idleMin, idleIntervals*i.interval()) {
			m.forgetLocked(e)
		}
	}
}

func (m *Manager) forgetLocked(e *list.Element) {
	i := e.Value.(*instance)
	m.series.remove(i)
	m.used.Remove(e)
	delete(m.instances, i.client.ID)
}
