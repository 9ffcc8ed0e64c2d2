package group

import (
	"strconv"

	"github.com/barnabas-mq/barnabas/cluster/metadata"
	"github.com/barnabas-mq/barnabas/coordinator/group/assignor"
)

// Config is what the machine needs to know of the broker's configuration.
type Config struct {
	// MinSessionTimeoutMs and MaxSessionTimeoutMs bound what a member asks for.
	MinSessionTimeoutMs, MaxSessionTimeoutMs int32
	// InitialRebalanceDelayMs is how long an empty group waits for more members
	// after the first one.
	InitialRebalanceDelayMs int32
	// MaxSize is the largest number of members, group.max.size.
	MaxSize int
	// MaxMemberBytes bounds what the members of all classic groups of one partition of
	// __consumer_offsets have in memory of what they know (joinBytes).
	MaxMemberBytes int
	// NewMemberJoinTimeoutMs expires a new member whose parked JoinGroup nobody
	// seems to wait for any more.
	NewMemberJoinTimeoutMs int32
	// OffsetMetadataMaxBytes is offset.metadata.max.bytes.
	OffsetMetadataMaxBytes int
	// OffsetsRetentionMs is offsets.retention.minutes.
	OffsetsRetentionMs int64
	// RetentionCheckIntervalMs is offsets.retention.check.interval.ms.
	RetentionCheckIntervalMs int64
	// MaxBatchBytes bounds one record, the offsets of one commit, and a batch of
	// what may be written in parts: message.max.bytes.
	MaxBatchBytes int
	// Consumer is about groups of the consumer protocol.
	Consumer ConsumerConfig
}

// ConsumerConfig is what the broker's configuration says of groups of the consumer
// protocol (KIP-848).
type ConsumerConfig struct {
	// SessionTimeoutMs, HeartbeatIntervalMs and AssignmentIntervalMs can be set for
	// each group, within limits. The last, as the broker has it, comes with World.
	SessionTimeoutMs, HeartbeatIntervalMs Limited
	AssignmentIntervalMs                  Limits
	// MaxSize is the largest number of members, group.consumer.max.size.
	MaxSize int
	// Assignors are the names that members may ask for, the default first; there
	// is at least one.
	Assignors []string
	// Upgrade and Downgrade allow groups to move to the consumer protocol and back
	// while they have members.
	Upgrade, Downgrade bool
	// RegexRefreshIntervalMs is how often expressions are held against all topics
	// though none was made.
	RegexRefreshIntervalMs int
}

// Limits bound what a group may set.
type Limits struct{ MinMs, MaxMs int32 }

// Limited is the broker's value and what a group may set instead.
type Limited struct {
	DefaultMs int32
	Limits
}

// clamp is a group's own value within the limits.
func (l Limits) clamp(ms int32) int32 { return min(max(ms, l.MinMs), l.MaxMs) }

// DefaultConfig has Kafka's defaults, but for the initial rebalance delay, which
// is 0 here.
func DefaultConfig() Config {
	return Config{
		MinSessionTimeoutMs: 6_000, MaxSessionTimeoutMs: 1_800_000,
		MaxSize: 1<<31 - 1, MaxMemberBytes: 8 << 20, NewMemberJoinTimeoutMs: 300_000,
		OffsetMetadataMaxBytes: 4096, OffsetsRetentionMs: 7 * 24 * 3600 * 1000,
		RetentionCheckIntervalMs: 600_000, MaxBatchBytes: 1048588,
		Consumer: ConsumerConfig{
			SessionTimeoutMs:     Limited{DefaultMs: 45_000, Limits: Limits{MinMs: 45_000, MaxMs: 60_000}},
			HeartbeatIntervalMs:  Limited{DefaultMs: 5_000, Limits: Limits{MinMs: 5_000, MaxMs: 15_000}},
			AssignmentIntervalMs: Limits{MinMs: 0, MaxMs: 15_000},
			MaxSize:              1<<31 - 1,
			Assignors:            []string{assignor.Uniform, assignor.Range},
			Upgrade:              true, Downgrade: true,
			RegexRefreshIntervalMs: 600_000,
		},
	}
}

// The keys that can be set on one group.
const (
	groupSessionTimeoutMs     = "consumer.session.timeout.ms"
	groupHeartbeatIntervalMs  = "consumer.heartbeat.interval.ms"
	groupAssignmentIntervalMs = "consumer.assignment.interval.ms"
)

// groupSetting is what is set on a group, or the broker's value.
func (s *step) groupSetting(group, key string, brokerMs int32, limits Limits) int32 {
	text, ok := s.world.Image.Config(metadata.GroupResource(group))[key]
	if !ok {
		return brokerMs
	}
	ms, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return brokerMs // checked when it was set
	}
	return limits.clamp(int32(ms))
}

func (s *step) sessionTimeoutMs(group string) int32 {
	l := s.cfg.Consumer.SessionTimeoutMs
	return s.groupSetting(group, groupSessionTimeoutMs, l.DefaultMs, l.Limits)
}

func (s *step) heartbeatIntervalMs(group string) int32 {
	l := s.cfg.Consumer.HeartbeatIntervalMs
	return s.groupSetting(group, groupHeartbeatIntervalMs, l.DefaultMs, l.Limits)
}

func (s *step) assignmentIntervalMs(group string) int32 {
	limits := s.cfg.Consumer.AssignmentIntervalMs
	return s.groupSetting(group, groupAssignmentIntervalMs, limits.clamp(s.world.AssignmentIntervalMs), limits)
}
