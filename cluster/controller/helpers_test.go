package controller

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/cluster/metadata"
	"github.com/barnabas-mq/barnabas/protocol"
)

const cluster = "4L6g3nShT-eMCtK--X86sw"

// checker knows a number (retention.ms) and a list (cleanup.policy) of every kind
// of resource.
type checker struct{}

func (checker) CheckTopicConfigs(all map[string]string) error {
	for _, name := range sortedKeys(all) {
		if err := (checker{}).check("topic", name, all[name]); err != nil {
			return err
		}
	}
	return nil
}

func (checker) CheckBroker(broker, name, value string) error {
	if name == "num.partitions" {
		return protocol.Errorf(kerr.InvalidRequest, "Cannot update these configs dynamically: [%s]", name)
	}
	return checker{}.check("broker", name, value)
}

func (checker) CheckGroup(all map[string]string) error {
	return checkEach(all, func(name, value string) error { return checker{}.check("group", name, value) })
}

func (checker) CheckClientMetrics(name, value string) error {
	return checker{}.check("metrics", name, value)
}

func (checker) check(kind, name, value string) error {
	switch name {
	case "cleanup.policy":
		return nil
	case "retention.ms":
		if _, err := strconv.Atoi(value); err != nil {
			return errors.New("Invalid value " + value + " for configuration retention.ms: Not a number of type LONG")
		}
		return nil
	}
	return fmt.Errorf("Unknown %s config name: %s", kind, name)
}

func (checker) IsList(_ int8, name string) bool { return name == "cleanup.policy" }

func (checker) Default(_ int8, name string) string {
	if name == "cleanup.policy" {
		return "delete"
	}
	return ""
}

func describe(overrides map[string]string) []ConfigEntry {
	all := map[string]string{"cleanup.policy": "delete", "retention.ms": "604800000"}
	maps.Copy(all, overrides)
	var out []ConfigEntry
	for _, name := range sortedKeys(all) {
		e := ConfigEntry{Name: name, Value: new(all[name]), Source: 5}
		if _, set := overrides[name]; set {
			e.Source = 1
		}
		out = append(out, e)
	}
	return out
}

func testConfig() Config {
	return Config{NumPartitions: 2, ReplicationFactor: 1, Checker: checker{}, DescribeTopic: describe}
}

// bench is a machine with the image that its decisions lead to, as a log that
// commits at once would have it.
type bench struct {
	t   testing.TB
	m   *Machine
	img *metadata.Image
	log [][]byte
}

func newBench(t testing.TB, cfg Config) *bench {
	return &bench{t: t, m: NewMachine(cfg, rand.New(rand.NewPCG(1, 2))), img: metadata.New(cluster)}
}

// do decides and applies req; the error is that of the whole request.
func (b *bench) do(req kmsg.Request) (kmsg.Response, error) {
	b.t.Helper()
	if req.GetVersion() == 0 {
		req.SetVersion(req.MaxVersion())
	}
	d, err := b.m.Handle(b.img, req)
	if err != nil {
		return nil, err
	}
	if len(d.Records) > 0 {
		data := metadata.EncodeBatch(1, d.Records)
		b.log = append(b.log, data)
		b.img = apply(b.t, b.img, data)
	}
	if d.Finish != nil {
		d.Finish(b.img)
	}
	return d.Response, nil
}

func apply(t testing.TB, img *metadata.Image, data []byte) *metadata.Image {
	t.Helper()
	_, records, err := metadata.DecodeBatch(data)
	if err != nil {
		t.Fatal(err)
	}
	next, _, err := img.Next(img.Offset+1, records)
	if err != nil {
		t.Fatal(err)
	}
	return next
}

func (b *bench) must(req kmsg.Request) kmsg.Response {
	b.t.Helper()
	resp, err := b.do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	return resp
}

// register starts a broker; each start is another incarnation.
func (b *bench) register(id int32, start byte) *kmsg.BrokerRegistrationResponse {
	b.t.Helper()
	return b.must(registration(id, start)).(*kmsg.BrokerRegistrationResponse)
}

func registration(id int32, start byte) *kmsg.BrokerRegistrationRequest {
	req := kmsg.NewPtrBrokerRegistrationRequest()
	req.BrokerID, req.ClusterID, req.IncarnationID = id, cluster, [16]byte{byte(id), start}
	l := kmsg.NewBrokerRegistrationRequestListener()
	l.Name, l.Host, l.Port = "PLAINTEXT", "localhost", 9092
	req.Listeners = append(req.Listeners, l)
	return req
}

func createTopics(topics ...kmsg.CreateTopicsRequestTopic) *kmsg.CreateTopicsRequest {
	req := kmsg.NewPtrCreateTopicsRequest()
	req.Topics, req.TimeoutMillis = topics, 1000
	return req
}

func topic(name string, partitions int32, factor int16) kmsg.CreateTopicsRequestTopic {
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic, t.NumPartitions, t.ReplicationFactor = name, partitions, factor
	return t
}

// by adds assignments: the n-th list is partition n's.
func by(t kmsg.CreateTopicsRequestTopic, lists ...[]int32) kmsg.CreateTopicsRequestTopic {
	for i, replicas := range lists {
		a := kmsg.NewCreateTopicsRequestTopicReplicaAssignment()
		a.Partition, a.Replicas = int32(i), replicas
		t.ReplicaAssignment = append(t.ReplicaAssignment, a)
	}
	return t
}

// with adds configs, written name=value; a name alone has a null value.
func with(t kmsg.CreateTopicsRequestTopic, configs ...string) kmsg.CreateTopicsRequestTopic {
	for _, text := range configs {
		c := kmsg.NewCreateTopicsRequestTopicConfig()
		name, value, ok := strings.Cut(text, "=")
		if c.Name = name; ok {
			c.Value = &value
		}
		t.Configs = append(t.Configs, c)
	}
	return t
}

// verdictText is one result as a line.
func verdictText(name string, code int16, message *string) string {
	out := fmt.Sprintf("%s: %d", name, code)
	if message != nil {
		out += " " + *message
	}
	return out
}

func same(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n  %s\nwant\n  %s", what, strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

func createdLines(resp kmsg.Response) (lines []string) {
	for _, t := range resp.(*kmsg.CreateTopicsResponse).Topics {
		lines = append(lines, verdictText(t.Topic, t.ErrorCode, t.ErrorMessage))
	}
	return lines
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }
