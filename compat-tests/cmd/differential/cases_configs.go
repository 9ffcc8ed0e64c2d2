package main

import "github.com/twmb/franz-go/pkg/kmsg"

func describeConfigs(s *side, kind kmsg.ConfigResourceType, name string, keys []string) *kmsg.DescribeConfigsRequest {
	req := kmsg.NewPtrDescribeConfigsRequest()
	req.Version = s.version
	r := kmsg.NewDescribeConfigsRequestResource()
	r.ResourceType, r.ResourceName, r.ConfigNames = kind, name, keys
	req.Resources = append(req.Resources, r)
	return req
}

func configCases(b *book) {
	describe := func(good bool, name string, ask answer) *Case {
		return b.add(kmsg.DescribeConfigs, name, good, ask).unordered("Resources.Configs").masks("Resources.Configs.Documentation")
	}
	describe(true, "a topic", func(c *Case, s *side) (kmsg.Response, error) {
		return s.try(describeConfigs(s, kmsg.ConfigResourceTypeTopic, s.topic(c, 1, "retention.ms", "1234"), nil))
	}).from(1)
	describe(true, "some keys of a topic, with synonyms", func(c *Case, s *side) (kmsg.Response, error) {
		topic := s.topic(c, 1, "retention.ms", "1234")
		req := describeConfigs(s, kmsg.ConfigResourceTypeTopic, topic, []string{"retention.ms", "cleanup.policy", "no.such"})
		req.IncludeSynonyms = true
		return s.try(req)
	})
	describe(true, "no keys", func(c *Case, s *side) (kmsg.Response, error) {
		return s.try(describeConfigs(s, kmsg.ConfigResourceTypeTopic, s.topic(c, 1), []string{}))
	}).from(1)
	describe(true, "keys of the broker", func(c *Case, s *side) (kmsg.Response, error) {
		return s.try(describeConfigs(s, kmsg.ConfigResourceTypeBroker, "1", []string{
			"log.retention.ms", "log.segment.bytes", "num.partitions", "message.max.bytes", "node.id", "min.insync.replicas",
		}))
	})
	describe(true, "the default of all brokers", func(c *Case, s *side) (kmsg.Response, error) {
		return s.try(describeConfigs(s, kmsg.ConfigResourceTypeBroker, "", nil))
	}).masks("Resources.Configs")
	describe(false, "an unknown topic", func(c *Case, s *side) (kmsg.Response, error) {
		return s.try(describeConfigs(s, kmsg.ConfigResourceTypeTopic, s.name(c, "missing"), nil))
	})
	describe(false, "another broker", func(c *Case, s *side) (kmsg.Response, error) {
		return s.try(describeConfigs(s, kmsg.ConfigResourceTypeBroker, "77", nil))
	})
	describe(false, "a broker that is no number", func(c *Case, s *side) (kmsg.Response, error) {
		return s.try(describeConfigs(s, kmsg.ConfigResourceTypeBroker, "seven", nil))
	})
	describe(false, "an unknown kind", func(c *Case, s *side) (kmsg.Response, error) {
		return s.try(describeConfigs(s, kmsg.ConfigResourceType(99), "x", nil))
	})

	altered := func(kind kmsg.ConfigResourceType, key, value string, validate bool) answer {
		return func(c *Case, s *side) (kmsg.Response, error) {
			req := kmsg.NewPtrAlterConfigsRequest()
			req.ValidateOnly = validate
			r := kmsg.NewAlterConfigsRequestResource()
			r.ResourceType, r.ResourceName = kind, s.resource(c, kind)
			r.Configs = append(r.Configs, kmsg.AlterConfigsRequestResourceConfig{Name: key, Value: str(value)})
			req.Resources = append(req.Resources, r)
			return s.try(s.at(req))
		}
	}
	b.good(kmsg.AlterConfigs, "a topic", altered(kmsg.ConfigResourceTypeTopic, "retention.ms", "5000", false))
	b.good(kmsg.AlterConfigs, "validate only", altered(kmsg.ConfigResourceTypeTopic, "retention.ms", "5000", true))
	b.good(kmsg.AlterConfigs, "a broker", altered(kmsg.ConfigResourceTypeBroker, "log.cleaner.backoff.ms", "15000", false))
	b.bad(kmsg.AlterConfigs, "an unknown key", altered(kmsg.ConfigResourceTypeTopic, "no.such.key", "5000", false))
	b.bad(kmsg.AlterConfigs, "a bad value", altered(kmsg.ConfigResourceTypeTopic, "retention.ms", "x", false))
	b.bad(kmsg.AlterConfigs, "an unknown kind", altered(kmsg.ConfigResourceType(99), "a", "b", false))
	b.bad(kmsg.AlterConfigs, "an unknown topic", func(c *Case, s *side) (kmsg.Response, error) {
		req := kmsg.NewPtrAlterConfigsRequest()
		r := kmsg.NewAlterConfigsRequestResource()
		r.ResourceType, r.ResourceName = kmsg.ConfigResourceTypeTopic, s.name(c, "missing")
		req.Resources = append(req.Resources, r)
		return s.try(s.at(req))
	})

	incremental := func(kind kmsg.ConfigResourceType, key string, op kmsg.IncrementalAlterConfigOp, value *string) answer {
		return func(c *Case, s *side) (kmsg.Response, error) {
			req := kmsg.NewPtrIncrementalAlterConfigsRequest()
			r := kmsg.NewIncrementalAlterConfigsRequestResource()
			r.ResourceType, r.ResourceName = kind, s.resource(c, kind)
			r.Configs = append(r.Configs, kmsg.IncrementalAlterConfigsRequestResourceConfig{Name: key, Op: op, Value: value})
			req.Resources = append(req.Resources, r)
			return s.try(s.at(req))
		}
	}
	topic, set := kmsg.ConfigResourceTypeTopic, kmsg.IncrementalAlterConfigOpSet
	b.good(kmsg.IncrementalAlterConfigs, "set", incremental(topic, "retention.ms", set, str("7000")))
	b.good(kmsg.IncrementalAlterConfigs, "delete", incremental(topic, "retention.ms", kmsg.IncrementalAlterConfigOpDelete, nil))
	b.good(kmsg.IncrementalAlterConfigs, "append", incremental(topic, "cleanup.policy", kmsg.IncrementalAlterConfigOpAppend, str("compact")))
	b.good(kmsg.IncrementalAlterConfigs, "a group", incremental(groupResource, "consumer.session.timeout.ms", set, str("50000")))
	b.good(kmsg.IncrementalAlterConfigs, "client metrics", incremental(clientMetrics, "interval.ms", set, str("60000")))
	b.good(kmsg.IncrementalAlterConfigs, "a logger", incremental(kmsg.ConfigResourceTypeBrokerLogger, "root", set, str("INFO"))).
		free("the loggers of one broker mean nothing to another")
	b.bad(kmsg.IncrementalAlterConfigs, "append to a number", incremental(topic, "retention.ms", kmsg.IncrementalAlterConfigOpAppend, str("1")))
	b.bad(kmsg.IncrementalAlterConfigs, "an unknown key", incremental(topic, "no.such.key", set, str("1")))
	b.bad(kmsg.IncrementalAlterConfigs, "no value", incremental(topic, "retention.ms", set, nil))
	b.bad(kmsg.IncrementalAlterConfigs, "an unknown operation", incremental(topic, "retention.ms", 9, str("1")))
	b.bad(kmsg.IncrementalAlterConfigs, "a key of another kind", incremental(groupResource, "retention.ms", set, str("1")))
	b.bad(kmsg.IncrementalAlterConfigs, "a read-only key of the broker", incremental(kmsg.ConfigResourceTypeBroker, "node.id", set, str("9")))
	b.bad(kmsg.IncrementalAlterConfigs, "client metrics: a short interval", incremental(clientMetrics, "interval.ms", set, str("1")))

	b.good(kmsg.ListConfigResources, "client metrics", func(c *Case, s *side) (kmsg.Response, error) {
		return s.try(s.at(kmsg.NewPtrListConfigResourcesRequest()))
	}).unordered("ConfigResources").masks("ConfigResources")
	b.good(kmsg.ListConfigResources, "brokers", func(c *Case, s *side) (kmsg.Response, error) {
		req := kmsg.NewPtrListConfigResourcesRequest()
		req.ResourceTypes = []int8{int8(kmsg.ConfigResourceTypeBroker)}
		return s.try(s.at(req))
	}).from(1).unordered("ConfigResources")
	b.bad(kmsg.ListConfigResources, "an unknown kind", func(c *Case, s *side) (kmsg.Response, error) {
		req := kmsg.NewPtrListConfigResourcesRequest()
		req.ResourceTypes = []int8{99}
		return s.try(s.at(req))
	}).from(1)
}

const (
	clientMetrics kmsg.ConfigResourceType = 16
	groupResource kmsg.ConfigResourceType = 32
)

// resource is something of the kind to alter.
func (s *side) resource(c *Case, kind kmsg.ConfigResourceType) string {
	switch kind {
	case kmsg.ConfigResourceTypeTopic:
		return s.topic(c, 1)
	case kmsg.ConfigResourceTypeBroker, kmsg.ConfigResourceTypeBrokerLogger:
		return "1"
	}
	return s.name(c, "resource")
}
