package config

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/barnabas-mq/barnabas/cluster/metadata"
	"github.com/barnabas-mq/barnabas/protocol"
)

// Checker says whether what a client sets can be taken. Its errors carry the
// codes and texts that Kafka answers with.
type Checker struct{ snap *Snapshot }

// NewChecker checks for brokers that were started with static.
func NewChecker(static *Static) *Checker { return &Checker{snap: static.Snapshot()} }

// CheckTopic checks one key of a topic.
func (c *Checker) CheckTopic(name, value string) error {
	d := topicKeys.byName[name]
	if d == nil {
		return protocol.Errorf(kerr.InvalidConfig, "Unknown topic config name: %s", name)
	}
	v, err := d.Parse(value)
	if err != nil {
		return protocol.Errorf(kerr.InvalidConfig, "%v", err)
	}
	if on, _ := v.(bool); on && d == RemoteStorageEnable.topic {
		return protocol.Errorf(kerr.InvalidConfig,
			"Tiered Storage functionality is disabled in the broker. Topic cannot be configured with remote log storage.")
	}
	return nil
}

// CheckTopicConfigs checks everything that is set on a topic together.
func (c *Checker) CheckTopicConfigs(all map[string]string) error {
	for _, name := range sortedKeys(all) {
		if topicKeys.byName[name] == nil {
			return c.CheckTopic(name, all[name])
		}
	}
	for _, name := range sortedKeys(all) {
		if err := c.CheckTopic(name, all[name]); err != nil {
			return err
		}
	}
	minLag, maxLag := LogCleanerMinCompactionLagMs.forTopic(c.snap, all), LogCleanerMaxCompactionLagMs.forTopic(c.snap, all)
	if minLag > maxLag {
		return protocol.Errorf(kerr.InvalidConfig,
			"conflict topic config setting min.compaction.lag.ms (%d) > max.compaction.lag.ms (%d)", minLag, maxLag)
	}
	return nil
}

// CheckBroker checks one key of all brokers (broker is "") or of one. A key that
// nobody knows is taken, as in Kafka.
func (c *Checker) CheckBroker(broker, name, value string) error {
	d := brokerKeys.byName[name]
	if d == nil {
		return nil
	}
	switch security := d.Scope == PerBroker && d.family == familySecurity; {
	case d.Scope == ReadOnly:
		return protocol.Errorf(kerr.InvalidRequest, "Cannot update these configs dynamically: [%s]", name)
	case security:
		return protocol.Errorf(kerr.InvalidRequest,
			"These security configs can be dynamically updated only per-listener using the listener prefix: [%s]", name)
	case d.Scope == PerBroker && broker == "":
		return protocol.Errorf(kerr.InvalidRequest,
			"Cannot update these configs at default cluster level, broker id must be specified: [%s]", name)
	}
	if _, err := d.Parse(value); err != nil {
		return protocol.Errorf(kerr.InvalidRequest, "%v", err)
	}
	if err := c.checkCleaner(d, value); err != nil {
		return err
	}
	if d == MaxConnectionsPerIPOverrides.decl {
		if _, err := parsePerIP(value); err != nil {
			return protocol.Errorf(kerr.InvalidRequest, "Invalid value %s for configuration %s: %v", value, name, err)
		}
	}
	return nil
}

// checkCleaner refuses what would leave compaction without a thread or without
// memory.
func (c *Checker) checkCleaner(d *Decl, value string) error {
	threads, size := int64(LogCleanerThreads.Get(c.snap)), LogCleanerDedupeBufferSize.Get(c.snap)
	n, _ := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
	switch d {
	case LogCleanerThreads.decl:
		if threads = n; threads < 1 {
			return protocol.Errorf(kerr.InvalidRequest, "Invalid value %s for configuration %s: Log cleaner threads should be at least 1", value, d.Name)
		}
	case LogCleanerDedupeBufferSize.decl:
		size = n
	default:
		return nil
	}
	if size/threads <= 1<<20 {
		return protocol.Errorf(kerr.InvalidRequest, "requirement failed: log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread.")
	}
	return nil
}

// CheckGroup checks everything that is set on a group together: its members must
// be heard of before their session ends.
func (c *Checker) CheckGroup(all map[string]string) error {
	for _, name := range sortedKeys(all) {
		if err := c.checkGroupKey(name, all[name]); err != nil {
			return err
		}
	}
	for _, kind := range []string{"consumer", "share", "streams"} {
		session, heartbeat := kind+".session.timeout.ms", kind+".heartbeat.interval.ms"
		_, hasSession := all[session]
		_, hasHeartbeat := all[heartbeat]
		if (hasSession || hasHeartbeat) && c.groupNumber(session, all) <= c.groupNumber(heartbeat, all) {
			return protocol.Errorf(kerr.InvalidConfig, "%s must be greater than %s", session, heartbeat)
		}
	}
	return nil
}

// groupNumber is what a group's key stands at, be it set on the group or not.
func (c *Checker) groupNumber(name string, all map[string]string) float64 {
	d := groupKeys.byName[name]
	v := c.snap.behind(d)
	if text, ok := all[name]; ok {
		v, _ = d.Parse(text) // checked before
	}
	n, _ := number(v)
	return n
}

// checkGroupKey checks one key of a group.
func (c *Checker) checkGroupKey(name, value string) error {
	d := groupKeys.byName[name]
	if d == nil {
		return protocol.Errorf(kerr.InvalidConfig, "Unknown group config name: %s", name)
	}
	v, err := d.Parse(value)
	if err != nil {
		return protocol.Errorf(kerr.InvalidConfig, "%v", err)
	}
	least, most := c.groupLimit(name, "min"), c.groupLimit(name, "max")
	n, _ := number(v)
	switch {
	case least != nil && most != nil && (n < *least || n > *most):
		return protocol.Errorf(kerr.InvalidConfig, "%s must be in the range %s to %s inclusive.", name, short(*least), short(*most))
	case least == nil && most != nil && n > *most:
		return protocol.Errorf(kerr.InvalidConfig, "%s must be less than or equal to %s.", name, short(*most))
	case least != nil && most == nil && n < *least:
		return protocol.Errorf(kerr.InvalidConfig, "%s must be greater than or equal to %s.", name, short(*least))
	}
	return nil
}

// groupLimit is the broker's smallest (min) or largest (max) value of a group's
// key: group.consumer.min.session.timeout.ms for consumer.session.timeout.ms.
func (c *Checker) groupLimit(name, which string) *float64 {
	kind, rest, _ := strings.Cut(name, ".")
	d := brokerKeys.byName["group."+kind+"."+which+"."+strings.TrimPrefix(rest, "num.")]
	if d == nil {
		return nil
	}
	n, text := number(c.snap.resolved[d.id])
	if text == "" {
		return nil
	}
	return &n
}

// CheckClientMetrics checks one key of a client metrics subscription.
func (c *Checker) CheckClientMetrics(name, value string) error {
	d := metricsKeys.byName[name]
	if d == nil {
		return protocol.Errorf(kerr.InvalidRequest, "Unknown client metrics configuration: %s", name)
	}
	_, err := d.Parse(value)
	var bad *ValueError
	if errors.As(err, &bad) && strings.HasPrefix(bad.Problem, "Value must") {
		return protocol.Errorf(kerr.InvalidRequest, "Invalid value %s for %s, interval must be between 100 and 3600000 (1 hour)", value, name)
	}
	if err != nil {
		return protocol.Errorf(kerr.InvalidConfig, "%v", err)
	}
	_, err = ParseClientSubscription(map[string]string{name: value})
	return err
}

// IsList says whether values can be appended to a key and taken from it; the
// type is that of the resource. Kafka takes no key of client metrics for a list.
func (c *Checker) IsList(resourceType int8, name string) bool {
	if resourceType == metadata.ResourceClientMetrics {
		return false
	}
	d := findDecl(resourceType, name)
	return d != nil && d.Type == TypeList
}

// Default is what a key that is not set stands at, "" for one that nobody knows.
func (c *Checker) Default(resourceType int8, name string) string {
	d := findDecl(resourceType, name)
	if d == nil {
		return ""
	}
	text, _ := Format(c.snap.behind(d))
	return text
}

// findDecl finds a key of a kind of resource; nil for one that nobody knows.
func findDecl(resourceType int8, name string) *Decl {
	switch resourceType {
	case metadata.ResourceTopic:
		return topicKeys.byName[name]
	case metadata.ResourceBroker:
		return brokerKeys.byName[name]
	case metadata.ResourceGroup:
		return groupKeys.byName[name]
	case metadata.ResourceClientMetrics:
		return metricsKeys.byName[name]
	}
	return nil
}

// BrokerNumber reads the name of a broker's resource.
func BrokerNumber(name, what string) (int32, error) {
	n, err := strconv.ParseInt(name, 10, 32)
	if err != nil {
		return 0, protocol.Errorf(kerr.InvalidRequest, "%s id must be an integer, but it is: %s", what, name)
	}
	return int32(n), nil
}

func sortedKeys(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
