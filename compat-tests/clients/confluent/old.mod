// The confluent-kafka-go row with a client of 2020 and its librdkafka:
// GOFLAGS="-modfile=clients/confluent/old.mod -tags=old". Its module had another name, by which it imports an empty
// package of itself; that comes from another version, as Go gives one version one name.
module github.com/barnabas-mq/barnabas/compat-tests

go 1.26.0

require (
	github.com/confluentinc/confluent-kafka-go v1.4.2
	github.com/confluentinc/confluent-kafka-go/v2 v2.15.0
	github.com/twmb/franz-go/pkg/kmsg v1.15.1
)

replace github.com/confluentinc/confluent-kafka-go/v2 => github.com/confluentinc/confluent-kafka-go v1.5.2
