package config

import (
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/barnabas-mq/barnabas/internal/invariant"
	"github.com/barnabas-mq/barnabas/internal/pattern"
	"github.com/barnabas-mq/barnabas/protocol"
)

// What a client metrics subscription can match a client by (KIP-714).
const (
	MatchClientInstanceID = "client_instance_id"
	MatchClientID         = "client_id"
	MatchSoftwareName     = "client_software_name"
	MatchSoftwareVersion  = "client_software_version"
	MatchSourceAddress    = "client_source_address"
	MatchSourcePort       = "client_source_port"
)

var matchAttributes = []string{
	MatchClientInstanceID, MatchClientID, MatchSoftwareName, MatchSoftwareVersion, MatchSourceAddress, MatchSourcePort,
}

// ClientSubscription says which clients send which metrics, and how often.
type ClientSubscription struct {
	// Metrics are prefixes of names; "*" is all.
	Metrics    []string
	IntervalMs int32
	// Match has a pattern for each attribute that a client must have.
	Match map[string]pattern.Pattern
}

// DefaultPushIntervalMs is how often clients ask whether there is something to
// send.
const DefaultPushIntervalMs = 300_000

// ParseClientSubscription reads what is set on a subscription.
func ParseClientSubscription(set map[string]string) (ClientSubscription, error) {
	s := ClientSubscription{IntervalMs: DefaultPushIntervalMs}
	for name, text := range set {
		d := metricsKeys.byName[name]
		if d == nil {
			continue
		}
		v, err := d.Parse(text)
		if err != nil {
			return s, err
		}
		switch v := v.(type) {
		case int32:
			s.IntervalMs = v
		case []string:
			if name == "metrics" {
				s.Metrics = v
				continue
			}
			if s.Match, err = parseMatch(v); err != nil {
				return s, err
			}
		default:
			invariant.That(false, "client metrics key %s is a %T", name, v)
		}
	}
	return s, nil
}

// parseMatch reads attribute=pattern pairs. A pattern must match an attribute's
// whole value; of an attribute that comes twice the last pattern counts, as in
// Kafka. The patterns are RE2's: without look-around and back references; all of one
// subscription are together no larger than one may be.
func parseMatch(list []string) (map[string]pattern.Pattern, error) {
	match := map[string]pattern.Pattern{}
	size := 0
	for _, pair := range list {
		illegal := protocol.Errorf(kerr.InvalidConfig, "Illegal client matching pattern: %s", pair)
		name, text, ok := strings.Cut(pair, "=")
		name, text = strings.TrimSpace(name), strings.TrimSpace(text)
		if !ok || text == "" || strings.Contains(text, "=") || !slices.Contains(matchAttributes, name) {
			return nil, illegal
		}
		re, err := pattern.Compile(text)
		if size += re.Size; err != nil || size > pattern.MaxSize {
			return nil, illegal
		}
		match[name] = re
	}
	return match, nil
}
