package storage

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"sort"
	"strconv"
	"strings"
)

// The files that describe a data directory and a partition.
const (
	metaPropertiesFile    = "meta.properties"
	partitionMetadataFile = "partition.metadata"
	cleanShutdownFile     = ".kafka_cleanshutdown"
	lockFile              = ".lock"
)

// MetaProperties is the content of meta.properties.
type MetaProperties struct {
	Version     int
	ClusterID   string
	NodeID      int32
	DirectoryID string
	// Others are properties that this version does not know; they are kept.
	Others map[string]string
}

const metaPropertiesVersion = 1

// Encode is the file, in Java's properties format.
func (m MetaProperties) Encode() []byte {
	all := map[string]string{
		"version": strconv.Itoa(m.Version), "cluster.id": m.ClusterID,
		"node.id": strconv.Itoa(int(m.NodeID)), "directory.id": m.DirectoryID,
	}
	for k, v := range m.Others {
		all[k] = v
	}
	keys := make([]string, 0, len(all))
	for k, v := range all {
		if v != "" {
			keys = append(keys, k)
		}
	}
	sort.Strings(keys)
	b := []byte("#\n")
	for _, k := range keys {
		b = fmt.Appendf(b, "%s=%s\n", k, all[k])
	}
	return b
}

// ParseMetaProperties reads a meta.properties file.
func ParseMetaProperties(b []byte) (MetaProperties, error) {
	m := MetaProperties{NodeID: -1}
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' || line[0] == '!' {
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if !ok {
			return m, fmt.Errorf("%w: line %q", ErrCorrupt, line)
		}
		if err := m.set(strings.TrimSpace(key), strings.TrimSpace(value)); err != nil {
			return m, err
		}
	}
	return m, nil
}

func (m *MetaProperties) set(key, value string) error {
	switch key {
	case "version":
		n, err := strconv.Atoi(value)
		if err != nil {
			return fmt.Errorf("%w: version %q", ErrCorrupt, value)
		}
		m.Version = n
	case "node.id", "broker.id":
		n, err := strconv.ParseInt(value, 10, 32)
		if err != nil {
			return fmt.Errorf("%w: %s %q", ErrCorrupt, key, value)
		}
		m.NodeID = int32(n)
	case "cluster.id":
		m.ClusterID = value
	case "directory.id":
		m.DirectoryID = value
	default:
		if m.Others == nil {
			m.Others = map[string]string{}
		}
		m.Others[key] = value
	}
	return nil
}

// EncodePartitionMetadata is a partition.metadata file.
func EncodePartitionMetadata(id TopicID) []byte {
	return fmt.Appendf(nil, "version: 0\ntopic_id: %s", FormatID(id))
}

// ParsePartitionMetadata reads a partition.metadata file.
func ParsePartitionMetadata(b []byte) (TopicID, error) {
	var id TopicID
	version, rest, _ := strings.Cut(strings.TrimSpace(string(b)), "\n")
	if v, ok := strings.CutPrefix(strings.TrimSpace(version), "version:"); !ok || strings.TrimSpace(v) != "0" {
		return id, fmt.Errorf("%w: version line %q", ErrCorrupt, version)
	}
	text, ok := strings.CutPrefix(strings.TrimSpace(rest), "topic_id:")
	if !ok {
		return id, fmt.Errorf("%w: topic id line %q", ErrCorrupt, rest)
	}
	id, err := ParseID(strings.TrimSpace(text))
	if err != nil {
		return id, err
	}
	if id == (TopicID{}) {
		return id, fmt.Errorf("%w: the topic id is zero", ErrCorrupt)
	}
	return id, nil
}

// FormatID is Kafka's 22-character form of an id.
func FormatID(id TopicID) string { return base64.RawURLEncoding.EncodeToString(id[:]) }

// ParseID reads Kafka's 22-character form of an id.
func ParseID(text string) (id TopicID, err error) {
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(b) != len(id) {
		return id, fmt.Errorf("%w: id %q", ErrCorrupt, text)
	}
	return TopicID(b), nil
}

// cleanShutdown is the content of .kafka_cleanshutdown (KIP-966).
type cleanShutdown struct {
	Version     int   `json:"version"`
	BrokerEpoch int64 `json:"brokerEpoch"`
}

func encodeCleanShutdown(brokerEpoch int64) []byte {
	b, _ := json.Marshal(cleanShutdown{BrokerEpoch: brokerEpoch}) // two numbers can't fail
	return b
}

// ParseCleanShutdown reads the broker epoch of a .kafka_cleanshutdown file; -1
// for the empty file of older versions.
func ParseCleanShutdown(b []byte) (brokerEpoch int64, err error) {
	if len(strings.TrimSpace(string(b))) == 0 {
		return -1, nil
	}
	c := cleanShutdown{BrokerEpoch: -1}
	if err := json.Unmarshal(b, &c); err != nil {
		return -1, fmt.Errorf("%w: %s: %w", ErrCorrupt, cleanShutdownFile, err)
	}
	return c.BrokerEpoch, nil
}
