package legacy

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/compat-tests/harness"
)

var (
	oracle    *harness.Broker
	oracleErr error
)

func TestMain(m *testing.M) {
	harness.Describe("raw requests, beside Apache Kafka", harness.OlderVersion)
	if os.Getenv("OLD_KAFKA_ADDR") == "" {
		_, oracleErr = harness.JavaLibsOlder() // while there is a network
		harness.Isolate()
	}
	stop := startOracle()
	code := harness.Code(m, nil)
	stop()
	os.Exit(code)
}

// startOracle starts Apache Kafka for the comparison; OLD_KAFKA_ADDR names one that runs already.
func startOracle() (stop func()) {
	if addr := os.Getenv("OLD_KAFKA_ADDR"); addr != "" {
		oracle = &harness.Broker{}
		_, oracleErr = fmt.Sscanf(addr, "127.0.0.1:%d", &oracle.Port)
		return func() {}
	}
	if oracleErr != nil {
		return func() {}
	}
	dir, err := os.MkdirTemp(os.Getenv("COMPAT_TMP"), "oldkafka-")
	if err != nil {
		oracleErr = err
		return func() {}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	oracle, oracleErr = harness.Start(ctx, harness.Options{Kind: harness.KafkaOlder, Dir: filepath.Join(dir, "broker")})
	return func() {
		if oracleErr == nil {
			oracle.Kill()
		}
		_ = os.RemoveAll(dir)
	}
}

// side is one of the two brokers, with a connection and a topic of its own.
type side struct {
	t     *testing.T
	name  string
	addr  string
	wire  *harness.Wire
	topic string
}

// compare runs what on both brokers, each with a new topic of that configuration, and fails where the outcomes differ.
func compare[Outcome any](t *testing.T, config map[string]string, what func(s *side) Outcome) {
	t.Helper()
	if errors.Is(oracleErr, harness.ErrNoJVM) {
		harness.Skip(t, "%v", oracleErr)
	}
	if oracleErr != nil {
		t.Fatal(oracleErr)
	}
	topic := fmt.Sprintf("legacy-%d", time.Now().UnixNano())
	var got [2]Outcome
	for i, s := range []*side{{name: "barnabas", addr: harness.Shared.Addr()}, {name: "Apache Kafka", addr: oracle.Addr()}} {
		s.t, s.topic = t, topic
		s.redial()
		s.createTopic(config)
		got[i] = what(s)
		s.wire.Close()
	}
	if reflect.DeepEqual(got[0], got[1]) {
		return
	}
	ours, theirs := lines(got[0]), lines(got[1])
	const shown = 3
	for i, n := 0, 0; n < shown && i < max(len(ours), len(theirs)); i++ {
		a, b := "nothing", "nothing"
		if i < len(ours) {
			a = ours[i]
		}
		if i < len(theirs) {
			b = theirs[i]
		}
		if a != b {
			n++
			t.Errorf("barnabas answers\n%.3000s\nApache Kafka\n%.3000s", a, b)
		}
	}
}

// lines are the parts in which an outcome is compared.
func lines(outcome any) []string {
	if list, ok := outcome.([]string); ok {
		return list
	}
	return []string{fmt.Sprintf("%+v", outcome)}
}

func (s *side) redial() {
	s.t.Helper()
	if s.wire != nil {
		s.wire.Close()
	}
	var err error
	if s.wire, err = harness.Dial(s.addr, 5*time.Second); err != nil {
		s.t.Fatal(err)
	}
}

// ask sends a request in a version.
func ask[Resp kmsg.Response](s *side, version int16, req kmsg.Request) Resp {
	s.t.Helper()
	req.SetVersion(version)
	resp, err := s.wire.Ask(req, 20*time.Second)
	if err != nil {
		s.t.Fatalf("%s: %s v%d: %v", s.name, kmsg.NameForKey(req.Key()), version, err)
	}
	return resp.(Resp)
}

func (s *side) createTopic(config map[string]string) {
	s.t.Helper()
	req := kmsg.NewPtrCreateTopicsRequest()
	req.TimeoutMillis = 20_000
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic, t.NumPartitions, t.ReplicationFactor = s.topic, 2, 1
	for k, v := range config {
		c := kmsg.NewCreateTopicsRequestTopicConfig()
		c.Name, c.Value = k, &v
		t.Configs = append(t.Configs, c)
	}
	req.Topics = append(req.Topics, t)
	if r := ask[*kmsg.CreateTopicsResponse](s, 4, req).Topics[0]; r.ErrorCode != 0 {
		s.t.Fatalf("%s: create topic: error %d", s.name, r.ErrorCode)
	}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if list := s.listOffsets(1, -1, 1); list.ErrorCode == 0 {
			return
		} else if time.Now().After(deadline) {
			s.t.Fatalf("%s: the topic is not served: error %d", s.name, list.ErrorCode)
		}
	}
}

func (s *side) listOffsets(version int16, timestamp int64, max int32) kmsg.ListOffsetsResponseTopicPartition {
	s.t.Helper()
	req := kmsg.NewPtrListOffsetsRequest()
	t := kmsg.NewListOffsetsRequestTopic()
	t.Topic = s.topic
	p := kmsg.NewListOffsetsRequestTopicPartition()
	p.Timestamp, p.MaxNumOffsets = timestamp, max
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	return ask[*kmsg.ListOffsetsResponse](s, version, req).Topics[0].Partitions[0]
}
