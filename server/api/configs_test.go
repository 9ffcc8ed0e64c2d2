package api

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/cluster/metadata"
	"github.com/barnabas-mq/barnabas/protocol"
	"github.com/barnabas-mq/barnabas/server/config"
)

// configHandlers serve topic cfg with retention.ms=7000, on broker 1.
func configHandlers(t *testing.T) *Handlers {
	t.Helper()
	text := func(s string) *string { return &s }
	img := metadata.New("c").Apply(
		&metadata.TopicRecord{Name: "cfg", ID: metadata.TopicID{1}},
		&metadata.PartitionRecord{TopicID: metadata.TopicID{1}, Partition: metadata.Partition{Replicas: []int32{1}, ISR: []int32{1}, Leader: 1}},
		&metadata.RegisterBrokerRecord{BrokerID: 1},
		&metadata.ConfigRecord{Resource: metadata.TopicResource("cfg"), Name: "retention.ms", Value: text("7000")},
		&metadata.ConfigRecord{Resource: metadata.ConfigResource{Type: metadata.ResourceGroup, Name: "g1"}, Name: "consumer.session.timeout.ms", Value: text("46000")},
		&metadata.ConfigRecord{Resource: metadata.ConfigResource{Type: metadata.ResourceClientMetrics, Name: "sub"}, Name: "interval.ms", Value: text("100")},
	)
	static := config.Defaults()
	return &Handlers{
		NodeID: 1, Image: func() *metadata.Image { return img }, Configs: config.NewLive(static),
		ConfigChecker: config.NewChecker(static), LogLevel: &slog.LevelVar{},
	}
}

func describe(h *Handlers, req *kmsg.DescribeConfigsRequest) *kmsg.DescribeConfigsResponse {
	resp := req.ResponseKind().(*kmsg.DescribeConfigsResponse)
	h.fillConfigs(req, resp, func(any) bool { return true })
	return resp
}

// Kafka's answers, resource by resource: code, message and number of keys.
func TestDescribeConfigsResources(t *testing.T) {
	h := configHandlers(t)
	for _, c := range []struct {
		kind    int8
		name    string
		keys    []string
		code    int16
		message string
		count   int
	}{
		{2, "cfg", nil, 0, "", 37},
		{2, "cfg", []string{}, 0, "", 37},
		{2, "cfg", []string{"retention.ms", "nope"}, 0, "", 1},
		{2, "missing", nil, 3, "", 0},
		{2, "a b", nil, 17, "Topic name is invalid: 'a b' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'", 0},
		{2, "", nil, 17, "Topic name is invalid: the empty string is not allowed", 0},
		{4, "1", []string{"advertised.listeners", "log.dirs"}, 0, "", 2},
		{4, "", nil, 0, "", 0},
		{4, "2", nil, 42, "Unexpected broker id, expected 1 or empty string, but received 2", 0},
		{4, "x", nil, 42, "Broker id must be an integer, but it is: x", 0},
		{8, "1", nil, 0, "", 1},
		{8, "", nil, 42, "Broker id must not be empty", 0},
		{8, "2", nil, 42, "Unexpected broker id, expected 1 but received 2", 0},
		{16, "sub", nil, 0, "", 3},
		{16, "missing", nil, 0, "", 3},
		{16, "", nil, 42, "Client metrics subscription name must not be empty", 0},
		{32, "g1", nil, 0, "", 21},
		{32, "", nil, 42, "Group name must not be empty", 0},
		{3, "x", nil, 42, kerr.InvalidRequest.Description, 0},
	} {
		req := kmsg.NewPtrDescribeConfigsRequest()
		req.Resources = []kmsg.DescribeConfigsRequestResource{{ResourceType: kmsg.ConfigResourceType(c.kind), ResourceName: c.name, ConfigNames: c.keys}}
		r := describe(h, req).Resources[0]
		if r.ErrorCode != c.code || *r.ErrorMessage != c.message || len(r.Configs) != c.count {
			t.Errorf("%d %q %q: code %d, %q, %d keys; want %d, %q, %d", c.kind, c.name, c.keys, r.ErrorCode, *r.ErrorMessage, len(r.Configs), c.code, c.message, c.count)
		}
		if int8(r.ResourceType) != c.kind || r.ResourceName != c.name {
			t.Errorf("%d %q is answered as %d %q", c.kind, c.name, r.ResourceType, r.ResourceName)
		}
	}
}

// One unknown type spoils the whole request, as in Kafka.
func TestDescribeConfigsUnknownType(t *testing.T) {
	req := kmsg.NewPtrDescribeConfigsRequest()
	req.Resources = []kmsg.DescribeConfigsRequestResource{{ResourceType: 2, ResourceName: "cfg"}, {ResourceType: 3, ResourceName: "x"}}
	for _, r := range describe(configHandlers(t), req).Resources {
		if r.ErrorCode != kerr.InvalidRequest.Code || len(r.Configs) != 0 {
			t.Errorf("%+v", r)
		}
	}
}

// Every version carries what it can through the wire.
func TestDescribeConfigsVersions(t *testing.T) {
	h := configHandlers(t)
	for version := int16(0); version <= 4; version++ {
		req := kmsg.NewPtrDescribeConfigsRequest()
		req.Version, req.IncludeSynonyms, req.IncludeDocumentation = version, true, true
		req.Resources = []kmsg.DescribeConfigsRequestResource{{ResourceType: 2, ResourceName: "cfg", ConfigNames: []string{"retention.ms", "segment.bytes"}}}
		wire := describe(h, req).AppendTo(nil)
		got := kmsg.NewPtrDescribeConfigsResponse()
		got.Version = version
		if err := got.ReadFrom(wire); err != nil {
			t.Fatalf("v%d: %v", version, err)
		}
		configs := got.Resources[0].Configs
		if len(configs) != 2 || configs[0].Name != "retention.ms" || *configs[0].Value != "7000" || configs[0].ReadOnly || configs[0].IsSensitive {
			t.Fatalf("v%d: %+v", version, configs)
		}
		switch {
		case version == 0:
			if configs[0].IsDefault || !configs[1].IsDefault {
				t.Errorf("v0: defaults %v %v", configs[0].IsDefault, configs[1].IsDefault)
			}
		case configs[0].Source != kmsg.ConfigSourceDynamicTopicConfig || configs[1].Source != kmsg.ConfigSourceDefaultConfig:
			t.Errorf("v%d: sources %v %v", version, configs[0].Source, configs[1].Source)
		case len(configs[0].ConfigSynonyms) != 1 || configs[0].ConfigSynonyms[0].Name != "retention.ms":
			t.Errorf("v%d: synonyms %+v", version, configs[0].ConfigSynonyms)
		case len(configs[1].ConfigSynonyms) != 1 || configs[1].ConfigSynonyms[0].Name != "log.segment.bytes":
			t.Errorf("v%d: synonyms %+v", version, configs[1].ConfigSynonyms)
		}
		if version >= 3 && (configs[0].ConfigType != kmsg.ConfigTypeLong || configs[0].Documentation == nil || *configs[0].Documentation == "") {
			t.Errorf("v%d: type %v, documentation %v", version, configs[0].ConfigType, configs[0].Documentation)
		}
	}
	req := kmsg.NewPtrDescribeConfigsRequest()
	req.Resources = []kmsg.DescribeConfigsRequestResource{{ResourceType: 2, ResourceName: "cfg", ConfigNames: []string{"retention.ms"}}}
	plain := describe(h, req).Resources[0].Configs[0]
	if plain.ConfigSynonyms != nil || plain.Documentation != nil {
		t.Errorf("what was not asked for is answered: %+v", plain)
	}
}

func TestListConfigResources(t *testing.T) {
	h := configHandlers(t)
	for _, c := range []struct {
		version int16
		types   []int8
		code    int16
		want    string
	}{
		{0, nil, 0, "16:sub"},
		{1, nil, 0, "2:cfg 4:1 8:1 16:sub 32:g1"},
		{1, []int8{2}, 0, "2:cfg"},
		{1, []int8{16, 2}, 0, "2:cfg 16:sub"},
		{1, []int8{2, 3}, kerr.UnsupportedVersion.Code, ""},
	} {
		req := kmsg.NewPtrListConfigResourcesRequest()
		req.Version, req.ResourceTypes = c.version, c.types
		resp := req.ResponseKind().(*kmsg.ListConfigResourcesResponse)
		h.fillConfigResources(req, resp)
		var got []string
		for _, r := range resp.ConfigResources {
			got = append(got, fmt.Sprintf("%d:%s", r.Type, r.Name))
		}
		if text := strings.Join(got, " "); resp.ErrorCode != c.code || text != c.want {
			t.Errorf("v%d %v: code %d, %s; want %d, %s", c.version, c.types, resp.ErrorCode, text, c.code, c.want)
		}
	}
}

// decider is a controller that refuses one topic and takes everything else.
type decider struct {
	seen []string
	fail error
}

func (d *decider) Handle(req kmsg.Request, done func(kmsg.Response, error)) {
	if d.fail != nil {
		done(nil, d.fail)
		return
	}
	switch req := req.(type) {
	case *kmsg.IncrementalAlterConfigsRequest:
		resp := req.ResponseKind().(*kmsg.IncrementalAlterConfigsResponse)
		for _, r := range slices.Backward(req.Resources) { // the order is the controller's own
			d.seen = append(d.seen, r.ResourceName)
			out := kmsg.NewIncrementalAlterConfigsResponseResource()
			out.ResourceType, out.ResourceName = r.ResourceType, r.ResourceName
			if r.ResourceName == "refused" {
				err := protocol.Errorf(kerr.InvalidConfig, "no")
				out.ErrorCode, out.ErrorMessage = protocol.Code(err), protocol.Message(err)
			}
			resp.Resources = append(resp.Resources, out)
		}
		done(resp, nil)
	case *kmsg.AlterConfigsRequest:
		resp := req.ResponseKind().(*kmsg.AlterConfigsResponse)
		for _, r := range req.Resources {
			d.seen = append(d.seen, r.ResourceName)
			out := kmsg.NewAlterConfigsResponseResource()
			out.ResourceType, out.ResourceName = r.ResourceType, r.ResourceName
			resp.Resources = append(resp.Resources, out)
		}
		done(resp, nil)
	}
}

// op is one key of an incremental change: set unless the value is <nil>, which
// stands for null.
func op(kind kmsg.IncrementalAlterConfigOp, name, value string) kmsg.IncrementalAlterConfigsRequestResourceConfig {
	c := kmsg.IncrementalAlterConfigsRequestResourceConfig{Name: name, Op: kind}
	if value != "<nil>" {
		c.Value = &value
	}
	return c
}

// Kafka's answers to what a broker can tell without its controller.
func TestIncrementalAlterConfigsPrechecks(t *testing.T) {
	const set, del, app, sub = kmsg.IncrementalAlterConfigOpSet, kmsg.IncrementalAlterConfigOpDelete, kmsg.IncrementalAlterConfigOpAppend, kmsg.IncrementalAlterConfigOpSubtract
	type ops = []kmsg.IncrementalAlterConfigsRequestResourceConfig
	for _, c := range []struct {
		kind      int8
		name      string
		ops       ops
		code      int16
		message   string
		forwarded bool
	}{
		{2, "cfg", ops{op(set, "retention.ms", "1")}, 0, "", true},
		{2, "cfg", ops{op(set, "retention.ms", "<nil>")}, 42, "Null value not supported for : retention.ms", false},
		{2, "cfg", ops{op(del, "retention.ms", "<nil>")}, 0, "", true},
		{2, "cfg", ops{op(set, "retention.ms", "1"), op(set, "retention.ms", "2")}, 42, "Error due to duplicate config keys", false},
		{4, "1", ops{op(set, "node.id", "5")}, 42, "Cannot update these configs dynamically: [node.id]", false},
		{4, "", ops{op(set, "num.partitions", "5")}, 42, "Cannot update these configs dynamically: [num.partitions]", false},
		{4, "1", ops{op(set, "log.segment.bytes", "5")}, 42, "Invalid value 5 for configuration log.segment.bytes: Value must be at least 1048576", false},
		{4, "2", ops{op(set, "log.retention.ms", "5")}, 42, "Unexpected broker id, expected 1, but received 2", false},
		{4, "x", ops{op(set, "log.retention.ms", "5")}, 42, "Node id must be an integer, but it is: x", false},
		{4, "1", ops{op(set, "my.dynamic.key", "5")}, 0, "", true},
		{4, "1", ops{op(app, "log.retention.ms", "5")}, 40, "Config value append is not allowed for config key: log.retention.ms", false},
		{4, "", ops{op(app, "log.cleanup.policy", "compact")}, 0, "", true},
		{4, "", ops{op(sub, "log.cleanup.policy", "compact")}, 0, "", true},
		{4, "", ops{op(app, "log.cleanup.policy", "shred")}, 42, "Invalid value shred for configuration log.cleanup.policy: String must be one of: compact, delete", false},
		{4, "1", ops{op(9, "log.retention.ms", "5")}, 42, "Unknown operations type 9", false},
		{8, "1", ops{op(set, "org.foo", "DEBUG")}, 40, "Logger org.foo does not exist!", false},
		{8, "1", ops{op(set, "root", "BAD")}, 40, "Cannot set the log level of root to BAD as it is not a supported log level. Valid log levels are DEBUG, ERROR, FATAL, INFO, TRACE, WARN", false},
		{8, "1", ops{op(set, "root", "debug")}, 0, "", false},
		{8, "1", ops{op(del, "root", "<nil>")}, 42, "Removing the log level of the root logger is not allowed", false},
		{8, "2", ops{op(set, "root", "DEBUG")}, 42, "Unexpected node id. Expected 1, but received 2", false},
		{3, "x", ops{op(set, "a", "b")}, 42, "Unknown resource type 3", false},
	} {
		h, controller := configHandlers(t), &decider{}
		h.Controller = controller
		req := kmsg.NewPtrIncrementalAlterConfigsRequest()
		req.Resources = []kmsg.IncrementalAlterConfigsRequestResource{{ResourceType: kmsg.ConfigResourceType(c.kind), ResourceName: c.name, Configs: c.ops}}
		resp, replies := req.ResponseKind().(*kmsg.IncrementalAlterConfigsResponse), 0
		h.alterIncrementally(req, resp, func() { replies++ })
		if replies != 1 || len(resp.Resources) != 1 {
			t.Fatalf("%d %q: %d replies, %d resources", c.kind, c.name, replies, len(resp.Resources))
		}
		r := resp.Resources[0]
		message := ""
		if r.ErrorMessage != nil {
			message = *r.ErrorMessage
		}
		if r.ErrorCode != c.code || message != c.message || (len(controller.seen) > 0) != c.forwarded {
			t.Errorf("%d %q %v: code %d, %q, forwarded %v", c.kind, c.name, c.ops[0].Name, r.ErrorCode, message, controller.seen)
		}
	}
}

// The answers stand in the order of the request, whoever gave them.
func TestAlterConfigsMixed(t *testing.T) {
	h, controller := configHandlers(t), &decider{}
	h.Controller = controller
	req := kmsg.NewPtrIncrementalAlterConfigsRequest()
	for _, name := range []string{"one", "refused", "twice", "bad", "twice"} {
		value := "1"
		r := kmsg.IncrementalAlterConfigsRequestResource{ResourceType: 2, ResourceName: name}
		r.Configs = []kmsg.IncrementalAlterConfigsRequestResourceConfig{{Name: "retention.ms", Value: &value}}
		if name == "bad" {
			r.Configs[0].Value = nil
		}
		req.Resources = append(req.Resources, r)
	}
	resp := req.ResponseKind().(*kmsg.IncrementalAlterConfigsResponse)
	h.alterIncrementally(req, resp, func() {})
	var got []string
	for _, r := range resp.Resources {
		got = append(got, fmt.Sprintf("%s:%d", r.ResourceName, r.ErrorCode))
	}
	if want := "[one:0 refused:40 twice:42 bad:42 twice:42]"; fmt.Sprint(got) != want {
		t.Errorf("got %v, want %s", got, want)
	}
	if want := "[refused one]"; fmt.Sprint(controller.seen) != want {
		t.Errorf("forwarded %v, want %s", controller.seen, want)
	}
	controller.fail = errors.Join(kerr.NotController)
	resp = req.ResponseKind().(*kmsg.IncrementalAlterConfigsResponse)
	h.alterIncrementally(req, resp, func() {})
	if resp.Resources[0].ErrorCode != kerr.NotController.Code || resp.Resources[3].ErrorCode != kerr.InvalidRequest.Code {
		t.Errorf("a failing controller: %+v", resp.Resources)
	}
}

func TestAlterConfigsLegacy(t *testing.T) {
	for _, c := range []struct {
		kind        int8
		name        string
		key, value  string
		code        int16
		message     string
		isForwarded bool
	}{
		{2, "cfg", "retention.ms", "7000", 0, "", true},
		{2, "cfg", "retention.ms", "<nil>", 42, "Null value not supported for : retention.ms", false},
		{4, "1", "node.id", "7", 42, "Cannot update these configs dynamically: [node.id]", false},
		{4, "", "log.retention.ms", "7", 0, "", true},
		{8, "1", "root", "INFO", 42, "Unknown resource type 8", false},
		{3, "1", "root", "INFO", 42, "Unknown resource type 3", false},
	} {
		h, controller := configHandlers(t), &decider{}
		h.Controller = controller
		req := kmsg.NewPtrAlterConfigsRequest()
		set := kmsg.AlterConfigsRequestResourceConfig{Name: c.key}
		if c.value != "<nil>" {
			set.Value = &c.value
		}
		req.Resources = []kmsg.AlterConfigsRequestResource{{ResourceType: kmsg.ConfigResourceType(c.kind), ResourceName: c.name, Configs: []kmsg.AlterConfigsRequestResourceConfig{set}}}
		resp := req.ResponseKind().(*kmsg.AlterConfigsResponse)
		h.alterWhole(req, resp, func() {})
		r, message := resp.Resources[0], ""
		if r.ErrorMessage != nil {
			message = *r.ErrorMessage
		}
		if r.ErrorCode != c.code || message != c.message || (len(controller.seen) > 0) != c.isForwarded {
			t.Errorf("%d %q %s=%s: code %d, %q, forwarded %v", c.kind, c.name, c.key, c.value, r.ErrorCode, message, controller.seen)
		}
	}
}

func TestLogLevel(t *testing.T) {
	h := configHandlers(t)
	change := func(level string, validateOnly bool) error {
		r := kmsg.IncrementalAlterConfigsRequestResource{ResourceType: 8, ResourceName: "1"}
		r.Configs = []kmsg.IncrementalAlterConfigsRequestResourceConfig{op(kmsg.IncrementalAlterConfigOpSet, "root", level)}
		return h.alterLoggers(&r, validateOnly)
	}
	if err := change("TRACE", true); err != nil || h.LogLevel.Level() != slog.LevelInfo {
		t.Errorf("validate only: %v, level %v", err, h.LogLevel.Level())
	}
	for name, want := range map[string]slog.Level{"TRACE": slog.LevelDebug, "warn": slog.LevelWarn, "FATAL": slog.LevelError, "INFO": slog.LevelInfo} {
		if err := change(name, false); err != nil || h.LogLevel.Level() != want {
			t.Errorf("%s: %v, level %v", name, err, h.LogLevel.Level())
		}
	}
	if got := h.describeLoggers(); len(got) != 1 || got[0].Name != "root" {
		t.Errorf("%+v", got)
	}
}
