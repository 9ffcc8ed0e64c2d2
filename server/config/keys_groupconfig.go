package config

import (
	"slices"

	"github.com/barnabas-mq/barnabas/internal/invariant"
)

// acceptedGroup are the keys that can be set on one group (KIP-848, KIP-932,
// KIP-1071). Classic groups have none.
var acceptedGroup = []*Decl{
	groupKeyOf("consumer.assignment.interval.ms", GroupConsumerAssignmentIntervalMs.decl),
	groupKey("consumer.assignor.offload.enable", "group.consumer.assignor.offload.enable"),
	groupKeyOf("consumer.heartbeat.interval.ms", GroupConsumerHeartbeatIntervalMs.decl),
	groupKeyOf("consumer.session.timeout.ms", GroupConsumerSessionTimeoutMs.decl),
	accept(familyShare, "errors.deadletterqueue.copy.record.enable", TypeBoolean, "false", Check{}, Medium, ReadOnly,
		"Copy whole records to the dead letter queue."),
	accept(familyShare, "errors.deadletterqueue.topic.name", TypeString, "", Check{}, Medium, ReadOnly,
		"The dead letter queue topic of the share group."),
	groupKey("share.assignment.interval.ms", "group.share.assignment.interval.ms"),
	groupKey("share.assignor.offload.enable", "group.share.assignor.offload.enable"),
	accept(familyShare, "share.auto.offset.reset", TypeString, "latest", shareOffsetReset(), Medium, ReadOnly,
		"Where a share group begins: latest, earliest or by_duration:PnDTnHnMn.nS."),
	groupKey("share.delivery.count.limit", "group.share.delivery.count.limit"),
	groupKey("share.heartbeat.interval.ms", "group.share.heartbeat.interval.ms"),
	accept(familyShare, "share.isolation.level", TypeString, "read_uncommitted", OneOf("read_committed", "read_uncommitted"), Medium, ReadOnly,
		"Whether a share group sees records of open and aborted transactions."),
	groupKey("share.partition.max.record.locks", "group.share.partition.max.record.locks"),
	groupKey("share.record.lock.duration.ms", "group.share.record.lock.duration.ms"),
	accept(familyShare, "share.renew.acknowledge.enable", TypeBoolean, "true", Check{}, Medium, ReadOnly,
		"Let members renew the lock of a record."),
	groupKey("share.session.timeout.ms", "group.share.session.timeout.ms"),
	groupKey("streams.acceptable.recovery.lag", "group.streams.acceptable.recovery.lag"),
	groupKey("streams.assignment.interval.ms", "group.streams.assignment.interval.ms"),
	over("group.streams.assignors", accept(familyStreams, "streams.assignor.name", TypeString, null, Check{}, Medium, ReadOnly,
		"The assignor of the streams group; the first of the broker's otherwise.")),
	groupKey("streams.assignor.offload.enable", "group.streams.assignor.offload.enable"),
	groupKey("streams.heartbeat.interval.ms", "group.streams.heartbeat.interval.ms"),
	groupKey("streams.initial.rebalance.delay.ms", "group.streams.initial.rebalance.delay.ms"),
	groupKey("streams.num.standby.replicas", "group.streams.num.standby.replicas"),
	groupKey("streams.num.warmup.replicas", "group.streams.num.warmup.replicas"),
	groupKey("streams.rack.aware.assignment.tags", "group.streams.rack.aware.assignment.tags"),
	groupKey("streams.session.timeout.ms", "group.streams.session.timeout.ms"),
	groupKey("streams.task.offset.interval.ms", "group.streams.task.offset.interval.ms"),
}

// acceptedMetrics are the keys of a client metrics subscription (KIP-714).
var acceptedMetrics = []*Decl{
	accept(familyBroker, "metrics", TypeList, "", NoEmpty(), Low, ReadOnly,
		"Prefixes of the metrics that clients send; * is all."),
	accept(familyBroker, "interval.ms", TypeInt, "300000", Between(100, 3600000), Low, ReadOnly,
		"How often clients send metrics."),
	accept(familyBroker, "match", TypeList, "", NoEmpty(), Low, ReadOnly,
		"Which clients send metrics, as attribute=pattern pairs."),
}

// over says that a broker's key stands behind d.
func over(broker string, d *Decl) *Decl {
	d.Broker = broker
	return d
}

// groupKey declares a group's key with the type, limits and words of the
// broker's key that is its default.
func groupKey(name, broker string) *Decl {
	at := slices.IndexFunc(acceptedGroups, func(d *Decl) bool { return d.Name == broker })
	invariant.That(at >= 0, "group key %s: no broker key %s", name, broker)
	return groupKeyOf(name, acceptedGroups[at])
}

func groupKeyOf(name string, broker *Decl) *Decl {
	g := *broker
	g.Name, g.Broker, g.Scope = name, broker.Name, ReadOnly
	return &g
}
