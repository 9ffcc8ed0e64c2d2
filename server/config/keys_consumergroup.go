package config

import (
	"math"

	"github.com/barnabas-mq/barnabas/coordinator/group/assignor"
)

// The names that Kafka's classes of assignors have in older configurations.
const (
	uniformClass = "org.apache.kafka.coordinator.group.assignor.UniformAssignor"
	rangeClass   = "org.apache.kafka.coordinator.group.assignor.RangeAssignor"
)

// Keys with an effect: groups of the consumer protocol (KIP-848).
var (
	GroupConsumerSessionTimeoutMs = define(familyGroup, Key[int32]{
		Name: "group.consumer.session.timeout.ms", Default: 45000, Check: AtLeast(1), Importance: Medium,
		Doc: "How long a silent member of a consumer group stays in it.",
	})
	GroupConsumerMinSessionTimeoutMs = define(familyGroup, Key[int32]{
		Name: "group.consumer.min.session.timeout.ms", Default: 45000, Check: AtLeast(1), Importance: Medium,
		Doc: "The smallest session time-out a group may set.",
	})
	GroupConsumerMaxSessionTimeoutMs = define(familyGroup, Key[int32]{
		Name: "group.consumer.max.session.timeout.ms", Default: 60000, Check: AtLeast(1), Importance: Medium,
		Doc: "The largest session time-out a group may set.",
	})
	GroupConsumerHeartbeatIntervalMs = define(familyGroup, Key[int32]{
		Name: "group.consumer.heartbeat.interval.ms", Default: 5000, Check: AtLeast(1), Importance: Medium,
		Doc: "How often a member of a consumer group sends a heartbeat.",
	})
	GroupConsumerMinHeartbeatIntervalMs = define(familyGroup, Key[int32]{
		Name: "group.consumer.min.heartbeat.interval.ms", Default: 5000, Check: AtLeast(1), Importance: Medium,
		Doc: "The smallest heartbeat interval a group may set.",
	})
	GroupConsumerMaxHeartbeatIntervalMs = define(familyGroup, Key[int32]{
		Name: "group.consumer.max.heartbeat.interval.ms", Default: 15000, Check: AtLeast(1), Importance: Medium,
		Doc: "The largest heartbeat interval a group may set.",
	})
	GroupConsumerAssignmentIntervalMs = define(familyGroup, Key[int32]{
		Name: "group.consumer.assignment.interval.ms", Check: AtLeast(0), Importance: Medium, Scope: ClusterWide,
		Doc: "The shortest time between two assignments of a consumer group. Kafka waits 1000 ms, and who joins meanwhile gets its partitions with its next heartbeat; here everybody gets them at once.",
	})
	GroupConsumerMinAssignmentIntervalMs = define(familyGroup, Key[int32]{
		Name: "group.consumer.min.assignment.interval.ms", Check: AtLeast(0), Importance: Medium,
		Doc: "The smallest assignment interval a group may set.",
	})
	GroupConsumerMaxAssignmentIntervalMs = define(familyGroup, Key[int32]{
		Name: "group.consumer.max.assignment.interval.ms", Default: 15000, Check: AtLeast(0), Importance: Medium,
		Doc: "The largest assignment interval a group may set.",
	})
	GroupConsumerMaxSize = define(familyGroup, Key[int32]{
		Name: "group.consumer.max.size", Default: math.MaxInt32, Check: AtLeast(1), Importance: Medium,
		Doc: "The most members a consumer group takes.",
	})
	GroupConsumerAssignors = define(familyGroup, Key[[]string]{
		Name: "group.consumer.assignors", Default: []string{assignor.Uniform, assignor.Range}, Importance: Medium,
		Check: EachOf(assignor.Uniform, assignor.Range, uniformClass, rangeClass),
		Doc:   "The assignors of consumer groups; the first is the default.",
	})
	GroupConsumerMigrationPolicy = define(familyGroup, Key[string]{
		Name: "group.consumer.migration.policy", Default: "bidirectional", Importance: Medium,
		Check: OneOfFold("DISABLED", "DOWNGRADE", "UPGRADE", "BIDIRECTIONAL"),
		Doc:   "Whether groups may move between the classic and the consumer protocol.",
	})
	GroupConsumerRegexRefreshIntervalMs = define(familyGroup, Key[int32]{
		Name: "group.consumer.regex.refresh.interval.ms", Default: 600000, Check: AtLeast(10000), Importance: Medium, Internal: true,
		Doc: "How often regular expressions of subscriptions are resolved again.",
	})
)
