package tools

import (
	"strings"
	"testing"

	"github.com/barnabas-mq/barnabas/compat-tests/harness"
)

func TestConfigs(t *testing.T) {
	name := newTopic(t, 1)
	t.Run("topic", func(t *testing.T) {
		entity := []string{"--entity-type", "topics", "--entity-name", name}
		alter := func(args ...string) string {
			return tool(t, "ConfigCommand", append(entity, append([]string{"--alter"}, args...)...)...)
		}
		describe := func(args ...string) string {
			return tool(t, "ConfigCommand", append(entity, append([]string{"--describe"}, args...)...)...)
		}
		want(t, alter("--add-config", "retention.ms=3600000,cleanup.policy=[compact,delete]"), "Completed updating config for topic "+name)
		want(t, describe(), "retention.ms=3600000 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:retention.ms=3600000", "cleanup.policy=compact,delete")
		want(t, describe("--all"), "segment.bytes=1073741824 sensitive=false synonyms={", "DEFAULT_CONFIG:log.segment.bytes=1073741824")
		alter("--delete-config", "retention.ms")
		if out := describe(); strings.Contains(out, "retention.ms=3600000") {
			t.Errorf("after the deletion:\n%s", out)
		}
		refused(t, "Unknown topic config name: no.such", "ConfigCommand", append(entity, "--alter", "--add-config", "no.such=1")...)
	})
	t.Run("broker", func(t *testing.T) {
		entity := []string{"--entity-type", "brokers", "--entity-name", "1"}
		want(t, tool(t, "ConfigCommand", append(entity, "--alter", "--add-config", "log.cleaner.threads=2")...), "Completed updating config for broker 1.")
		want(t, tool(t, "ConfigCommand", append(entity, "--describe")...), "log.cleaner.threads=2 sensitive=false synonyms={DYNAMIC_BROKER_CONFIG:log.cleaner.threads=2, DEFAULT_CONFIG:log.cleaner.threads=1}")
		tool(t, "ConfigCommand", append(entity, "--alter", "--delete-config", "log.cleaner.threads")...)
		want(t, tool(t, "ConfigCommand", append(entity, "--describe", "--all")...), "node.id=1", "num.partitions=1", "log.cleaner.threads=1", "listeners=")
		everyone := []string{"--entity-type", "brokers", "--entity-default"}
		tool(t, "ConfigCommand", append(everyone, "--alter", "--add-config", "message.max.bytes=2000000")...)
		want(t, tool(t, "ConfigCommand", append(everyone, "--describe")...), "message.max.bytes=2000000")
		want(t, tool(t, "ConfigCommand", "--entity-type", "topics", "--entity-name", name, "--describe", "--all"), "max.message.bytes=2000000")
		tool(t, "ConfigCommand", append(everyone, "--alter", "--delete-config", "message.max.bytes")...)
		refused(t, "Cannot update these configs dynamically", "ConfigCommand", append(entity, "--alter", "--add-config", "process.roles=broker")...)
	})
	t.Run("quotas", func(t *testing.T) {
		user := []string{"--entity-type", "users", "--entity-name", "alice"}
		want(t, tool(t, "ConfigCommand", append(user, "--alter", "--add-config", "producer_byte_rate=1048576")...), "Completed updating config for user alice.")
		want(t, tool(t, "ConfigCommand", append(user, "--describe")...), "Quota configs for user-principal 'alice' are producer_byte_rate=1048576.0")
		tool(t, "ConfigCommand", append(user, "--alter", "--delete-config", "producer_byte_rate")...)
		tool(t, "ConfigCommand", "--entity-type", "clients", "--entity-default", "--alter", "--add-config", "request_percentage=200")
		want(t, tool(t, "ConfigCommand", "--entity-type", "clients", "--entity-default", "--describe"), "request_percentage=200.0")
		tool(t, "ConfigCommand", "--entity-type", "clients", "--entity-default", "--alter", "--delete-config", "request_percentage")
	})
	t.Run("scram", func(t *testing.T) {
		user := []string{"--entity-type", "users", "--entity-name", "bob"}
		tool(t, "ConfigCommand", append(user, "--alter", "--add-config", "SCRAM-SHA-256=[iterations=8192,password=secret]")...)
		want(t, tool(t, "ConfigCommand", append(user, "--describe")...), "SCRAM credential configs for user-principal 'bob' are SCRAM-SHA-256=iterations=8192")
		tool(t, "ConfigCommand", append(user, "--alter", "--delete-config", "SCRAM-SHA-256")...)
	})
	t.Run("groups", func(t *testing.T) {
		group := []string{"--entity-type", "groups", "--entity-name", harness.Name(t, "group")}
		tool(t, "ConfigCommand", append(group, "--alter", "--add-config", "consumer.session.timeout.ms=50000")...)
		want(t, tool(t, "ConfigCommand", append(group, "--describe")...), "consumer.session.timeout.ms=50000")
	})
	t.Run("client-metrics", func(t *testing.T) {
		metrics := []string{"--entity-type", "client-metrics", "--entity-name", "all"}
		tool(t, "ConfigCommand", append(metrics, "--alter", "--add-config", "interval.ms=60000,metrics=[org.apache.kafka.producer.]")...)
		want(t, tool(t, "ConfigCommand", append(metrics, "--describe")...), "interval.ms=60000", "metrics=org.apache.kafka.producer.")
		want(t, tool(t, "ClientMetricsCommand", "--list"), "all")
		want(t, tool(t, "ClientMetricsCommand", "--describe", "--name", "all"), "interval.ms=60000")
		tool(t, "ClientMetricsCommand", "--delete", "--name", "all")
	})
}
