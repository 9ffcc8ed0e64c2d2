package config

// Keys of topics that no broker's key stands behind.
var (
	LeaderThrottledReplicas = defineTopic(Key[[]string]{
		Name: "leader.replication.throttled.replicas", NoEffect: true, Check: ThrottledReplicas(),
		Doc: "The replicas whose leader side is throttled, as partition:broker pairs, or * for all.",
	})
	FollowerThrottledReplicas = defineTopic(Key[[]string]{
		Name: "follower.replication.throttled.replicas", NoEffect: true, Check: ThrottledReplicas(),
		Doc: "The replicas whose follower side is throttled, as partition:broker pairs, or * for all.",
	})
	RemoteStorageEnable = defineTopic(Key[bool]{
		Name: "remote.storage.enable",
		Doc:  "Keep old segments in tiered storage. There is none here, so true is refused.",
	})
)

// acceptedTopic are topics' keys that are known and reported, and change nothing here.
var acceptedTopic = []*Decl{
	accept(familyTiered, "remote.log.copy.disable", TypeBoolean, "false", Check{}, Medium, ReadOnly,
		"Stop copying segments to tiered storage."),
	accept(familyTiered, "remote.log.delete.on.disable", TypeBoolean, "false", Check{}, Medium, ReadOnly,
		"Delete what is in tiered storage when it is turned off."),
	accept(familyShare, "errors.deadletterqueue.group.enable", TypeBoolean, "false", Check{}, Medium, ReadOnly,
		"Let share groups use this topic as their dead letter queue."),
	hidden(familyLog, "internal.segment.bytes", TypeInt, null, Check{}, Medium, ReadOnly,
		"A segment size below the smallest of segment.bytes, for tests."),
}

// topicOverAccepted are the topics' keys over broker's keys of acceptedBroker.
var topicOverAccepted = map[string]string{
	"log.local.retention.bytes": "local.retention.bytes",
	"log.local.retention.ms":    "local.retention.ms",
	"log.remote.copy.lag.bytes": "remote.copy.lag.bytes",
	"log.remote.copy.lag.ms":    "remote.copy.lag.ms",
}
