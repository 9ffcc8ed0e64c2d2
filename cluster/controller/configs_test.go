package controller

import (
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/cluster/metadata"
)

const (
	ofTopic   = kmsg.ConfigResourceTypeTopic
	ofBroker  = kmsg.ConfigResourceTypeBroker
	ofMetrics = kmsg.ConfigResourceTypeClientMetrics
	ofGroup   = kmsg.ConfigResourceTypeGroupConfig
)

// altering is one resource of a request. Its ops are written "set k=v", "delete k",
// "append k=v", "subtract k=v"; without a = the value is null.
func altering(kind kmsg.ConfigResourceType, name string, ops ...string) kmsg.IncrementalAlterConfigsRequestResource {
	r := kmsg.NewIncrementalAlterConfigsRequestResource()
	r.ResourceType, r.ResourceName = kind, name
	for _, text := range ops {
		verb, rest, _ := strings.Cut(text, " ")
		c := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
		c.Op = map[string]kmsg.IncrementalAlterConfigOp{
			"set": kmsg.IncrementalAlterConfigOpSet, "delete": kmsg.IncrementalAlterConfigOpDelete,
			"append": kmsg.IncrementalAlterConfigOpAppend, "subtract": kmsg.IncrementalAlterConfigOpSubtract, "frobnicate": 9,
		}[verb]
		key, value, ok := strings.Cut(rest, "=")
		if c.Name = key; ok {
			c.Value = &value
		}
		r.Configs = append(r.Configs, c)
	}
	return r
}

func (b *bench) incremental(resources ...kmsg.IncrementalAlterConfigsRequestResource) (lines []string) {
	b.t.Helper()
	req := kmsg.NewPtrIncrementalAlterConfigsRequest()
	req.Resources = resources
	for _, out := range b.must(req).(*kmsg.IncrementalAlterConfigsResponse).Resources {
		lines = append(lines, verdictText(out.ResourceName, out.ErrorCode, out.ErrorMessage))
	}
	return lines
}

func TestIncrementalAlterConfigs(t *testing.T) {
	b := newBench(t, testConfig())
	b.register(1, 1)
	b.must(createTopics(topic("t", 1, 1), topic("u", 1, 1)))
	same(t, "alter", b.incremental(
		altering(ofTopic, "t", "set retention.ms=5", "append cleanup.policy=compact"),
		altering(ofTopic, "none", "set retention.ms=5"),
		altering(ofTopic, "", "set retention.ms=5"),
		altering(ofTopic, "a b", "set retention.ms=5"),
		altering(ofBroker, "9", "set retention.ms=5"),
		altering(ofBroker, "x", "set retention.ms=5"),
		altering(ofBroker, "1", "set num.partitions=5"),
		altering(ofBroker, "", "set retention.ms=7"),
		altering(ofBroker, "1", "append retention.ms=7"),
		altering(ofMetrics, "", "set retention.ms=5"),
		altering(ofGroup, "", "set retention.ms=5"),
		altering(ofGroup, "g", "set nope=5"),
		altering(ofMetrics, "m", "set retention.ms=5"),
		altering(3, "odd", "set retention.ms=5"),
		altering(ofTopic, "u", "append retention.ms=5"),
	),
		"t: 0",
		"none: 3 The topic 'none' does not exist.",
		": 42 Default topic resources are not allowed.",
		"a b: 17 Topic name is invalid: 'a b' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'",
		"9: 102 No node with id 9 found.",
		"x: 42 Node id must be an integer, but it is: x",
		"1: 42 Each resource must appear at most once.",
		": 0",
		"1: 42 Each resource must appear at most once.",
		": 42 Subscription name can't be empty",
		": 42 Default group resources are not allowed.",
		"g: 40 Unknown group config name: nope",
		"m: 0",
		"odd: 42 Unknown resource type 3",
		"u: 40 Can't APPEND to key retention.ms because its type is not LIST.",
	)
	same(t, "alter", b.incremental(altering(ofBroker, "1", "set num.partitions=5")), "1: 42 Cannot update these configs dynamically: [num.partitions]")
	same(t, "alter", b.incremental(altering(ofBroker, "1", "subtract retention.ms=7")),
		"1: 40 Config value subtract is not allowed for config key: retention.ms")
	same(t, "alter", b.incremental(altering(ofTopic, "t", "set retention.ms")), "t: 42 Null value not supported for : retention.ms")
	same(t, "alter", b.incremental(altering(ofTopic, "t", "set retention.ms=1", "set retention.ms=2")), "t: 42 Error due to duplicate config keys")
	same(t, "alter", b.incremental(altering(ofTopic, "t", "frobnicate retention.ms=1")), "t: 42 Unknown operation type 9")
	same(t, "alter", b.incremental(altering(ofTopic, "t", "set retention.ms=9", "set nope=1")), "t: 40 Unknown topic config name: nope")

	if got := b.img.TopicConfig("t"); len(got) != 2 || got["retention.ms"] != "5" || got["cleanup.policy"] != "delete,compact" {
		t.Fatalf("t has %v", got)
	}
	if got := b.img.Config(metadata.BrokerResource(1)); got != nil {
		t.Fatalf("broker 1 has %v", got)
	}
	if got := b.img.Config(metadata.ConfigResource{Type: metadata.ResourceBroker})["retention.ms"]; got != "7" {
		t.Fatalf("all brokers have %q", got)
	}
}

func TestAppendSubtractDelete(t *testing.T) {
	b := newBench(t, testConfig())
	b.register(1, 1)
	b.must(createTopics(topic("t", 1, 1)))
	for _, step := range []struct{ op, want string }{
		{"append cleanup.policy=compact,compact", "delete,compact"},
		{"append cleanup.policy=delete", "delete,compact"},
		{"subtract cleanup.policy=delete,none", "compact"},
		{"subtract cleanup.policy=compact", ""},
		{"append cleanup.policy=x", "x"},
	} {
		same(t, step.op, b.incremental(altering(ofTopic, "t", step.op)), "t: 0")
		if got, set := b.img.TopicConfig("t")["cleanup.policy"]; got != step.want || !set {
			t.Fatalf("after %s: %q, %v", step.op, got, set)
		}
	}
	same(t, "delete", b.incremental(altering(ofTopic, "t", "delete cleanup.policy", "delete nope")), "t: 0")
	if got := b.img.TopicConfig("t"); got != nil {
		t.Fatalf("left is %v", got)
	}
	before := b.img.Offset
	same(t, "no change", b.incremental(altering(ofTopic, "t", "delete cleanup.policy")), "t: 0")
	if b.img.Offset != before {
		t.Fatal("a change that changes nothing makes records")
	}
}

func whole(kind kmsg.ConfigResourceType, name string, configs ...string) kmsg.AlterConfigsRequestResource {
	r := kmsg.NewAlterConfigsRequestResource()
	r.ResourceType, r.ResourceName = kind, name
	for _, text := range configs {
		c := kmsg.NewAlterConfigsRequestResourceConfig()
		key, value, ok := strings.Cut(text, "=")
		if c.Name = key; ok {
			c.Value = &value
		}
		r.Configs = append(r.Configs, c)
	}
	return r
}

func (b *bench) legacy(validateOnly bool, resources ...kmsg.AlterConfigsRequestResource) (lines []string) {
	b.t.Helper()
	req := kmsg.NewPtrAlterConfigsRequest()
	req.Resources, req.ValidateOnly = resources, validateOnly
	for _, out := range b.must(req).(*kmsg.AlterConfigsResponse).Resources {
		lines = append(lines, verdictText(out.ResourceName, out.ErrorCode, out.ErrorMessage))
	}
	return lines
}

func TestAlterConfigsReplaces(t *testing.T) {
	b := newBench(t, testConfig())
	b.register(1, 1)
	b.must(createTopics(with(topic("t", 1, 1), "cleanup.policy=compact"), topic("u", 1, 1)))
	same(t, "alter", b.legacy(false,
		whole(ofTopic, "t", "retention.ms=5"),
		whole(ofTopic, "none", "retention.ms=5"),
		whole(ofTopic, "u", "retention.ms"),
		whole(ofTopic, "u2", "retention.ms=1", "retention.ms=2"),
		whole(ofGroup, "g"), whole(ofGroup, "g"),
	),
		"t: 0",
		"none: 3 The topic 'none' does not exist.",
		"u: 42 Null value not supported for : retention.ms",
		"u2: 42 Error due to duplicate config keys",
		"g: 42 Each resource must appear at most once.",
		"g: 42 Each resource must appear at most once.",
	)
	if got := b.img.TopicConfig("t"); len(got) != 1 || got["retention.ms"] != "5" {
		t.Fatalf("t has %v", got)
	}
	same(t, "validate", b.legacy(true, whole(ofTopic, "t", "retention.ms=x")),
		"t: 40 Invalid value x for configuration retention.ms: Not a number of type LONG")
	same(t, "validate", b.legacy(true, whole(ofTopic, "t")), "t: 0")
	if got := b.img.TopicConfig("t"); len(got) != 1 {
		t.Fatalf("validation changed t to %v", got)
	}
	same(t, "alter", b.legacy(false, whole(ofTopic, "t")), "t: 0")
	if got := b.img.TopicConfig("t"); got != nil {
		t.Fatalf("t has %v", got)
	}
}

// TestBrokerKeysThatAreNoLongerKnown can be removed, and do not stand in the way
// of others.
func TestBrokerKeysThatAreNoLongerKnown(t *testing.T) {
	b := newBench(t, testConfig())
	b.register(1, 1)
	b.img = b.img.Apply(&metadata.ConfigRecord{Resource: metadata.BrokerResource(1), Name: "ancient", Value: new("1")})
	same(t, "set another", b.incremental(altering(ofBroker, "1", "set retention.ms=5")), "1: 0")
	same(t, "remove", b.incremental(altering(ofBroker, "1", "delete ancient")), "1: 0")
}

func TestValidateOnlyChangesNothing(t *testing.T) {
	b := newBench(t, testConfig())
	b.register(1, 1)
	b.must(createTopics(topic("t", 1, 1)))
	req := kmsg.NewPtrIncrementalAlterConfigsRequest()
	req.Resources = []kmsg.IncrementalAlterConfigsRequestResource{altering(ofTopic, "t", "set retention.ms=5")}
	req.ValidateOnly = true
	if out := b.must(req).(*kmsg.IncrementalAlterConfigsResponse).Resources[0]; out.ErrorCode != 0 {
		t.Fatal(out)
	}
	if got := b.img.TopicConfig("t"); got != nil {
		t.Fatalf("validation changed t to %v", got)
	}
}

// TestListsAsKafkaHasThem are Apache Kafka's answers: empty parts of what is set go,
// those at the end of what is given count for nothing, the others like any part.
func TestListsAsKafkaHasThem(t *testing.T) {
	b := newBench(t, testConfig())
	b.register(1, 1)
	b.must(createTopics(topic("t", 1, 1)))
	for _, step := range []struct{ op, want string }{
		{"set cleanup.policy=1,,2", "1,,2"},
		{"append cleanup.policy=3", "1,2,3"},
		{"append cleanup.policy=", "1,2,3,"},
		{"append cleanup.policy=,", "1,2,3"},
		{"append cleanup.policy=,,4,,5,,", "1,2,3,,4,5"},
		{"subtract cleanup.policy=", "1,2,3,4,5"},
		{"set cleanup.policy=1,2,1,3,1", "1,2,1,3,1"},
		{"subtract cleanup.policy=1,3,1", "2,1"},
		{"append cleanup.policy= 2 ", "2,1, 2 "},
		{"append cleanup.policy=1,6,6", "2,1, 2 ,6"},
	} {
		same(t, step.op, b.incremental(altering(ofTopic, "t", step.op)), "t: 0")
		if got := b.img.TopicConfig("t")["cleanup.policy"]; got != step.want {
			t.Fatalf("after %s: %q, want %q", step.op, got, step.want)
		}
	}
}

// TestValuesAreBounded: no value is longer than Kafka's, and what is longer is
// refused before it is taken apart.
func TestValuesAreBounded(t *testing.T) {
	const tooLong = ": 40 The configuration value cannot be added because it exceeds the maximum value size of 32767 bytes."
	b := newBench(t, testConfig())
	b.register(1, 1)
	b.must(createTopics(topic("t", 1, 1)))
	full := strings.Repeat("x", maxValueBytes)
	for _, step := range []struct{ op, want string }{
		{"set cleanup.policy=" + full + "x", "t" + tooLong},
		{"set cleanup.policy=" + full, "t: 0"},
		{"append cleanup.policy=y", "t" + tooLong},
		{"append cleanup.policy=" + full, "t: 0"},
		{"append cleanup.policy=" + full + ",", "t" + tooLong},
		{"subtract cleanup.policy=" + full + ",", "t" + tooLong},
		{"set cleanup.policy=a", "t: 0"},
		{"append cleanup.policy=" + strings.Repeat("b,", maxValueBytes/2), "t: 0"},
	} {
		same(t, step.op[:20], b.incremental(altering(ofTopic, "t", step.op)), step.want)
	}
	same(t, "as a whole", b.legacy(false, whole(ofTopic, "t", "cleanup.policy="+full+"x")), "t"+tooLong)
	if got := b.img.TopicConfig("t")["cleanup.policy"]; got != "a,b" {
		t.Fatalf("left is %q", got)
	}
	long := topic("u", 1, 1)
	long.Configs = []kmsg.CreateTopicsRequestTopicConfig{{Name: "cleanup.policy", Value: new(full + "x")}}
	out := b.must(createTopics(long)).(*kmsg.CreateTopicsResponse).Topics[0]
	same(t, "a new topic", []string{verdictText(out.Topic, out.ErrorCode, out.ErrorMessage)}, "u"+tooLong)
}

// TestSubscriptionsAreBounded: those that are there can be changed and deleted, and
// then there is room again.
func TestSubscriptionsAreBounded(t *testing.T) {
	b := newBench(t, testConfig())
	b.register(1, 1)
	var many []kmsg.IncrementalAlterConfigsRequestResource
	for i := range subscriptionsMax + 1 {
		many = append(many, altering(ofMetrics, fmt.Sprint("s", i), "set retention.ms=5"))
	}
	lines := b.incremental(many...)
	full := fmt.Sprintf("44 There are %d client metrics subscriptions, and no more are taken.", subscriptionsMax)
	if got := lines[subscriptionsMax-1]; got != fmt.Sprintf("s%d: 0", subscriptionsMax-1) {
		t.Errorf("the last one: %s", got)
	}
	if got := lines[subscriptionsMax]; got != fmt.Sprintf("s%d: %s", subscriptionsMax, full) {
		t.Errorf("one too many: %s", got)
	}
	same(t, "another request", b.incremental(altering(ofMetrics, "more", "set retention.ms=5")), "more: "+full)
	same(t, "as a whole", b.legacy(false, whole(ofMetrics, "more", "retention.ms=5")), "more: "+full)
	same(t, "a change", b.incremental(altering(ofMetrics, "s1", "set retention.ms=6")), "s1: 0")
	same(t, "nothing", b.incremental(altering(ofMetrics, "more", "delete retention.ms")), "more: 0")
	same(t, "a deletion", b.incremental(altering(ofMetrics, "s1", "delete retention.ms")), "s1: 0")
	same(t, "room", b.incremental(altering(ofMetrics, "more", "set retention.ms=5")), "more: 0")
}
