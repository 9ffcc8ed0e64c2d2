package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/barnabas-mq/barnabas/compat-tests/harness"
)

// newTopic makes a topic with kafka-topics.
func newTopic(t *testing.T, partitions int, configs ...string) string {
	t.Helper()
	name := harness.Name(t, "tools")
	args := []string{"--create", "--topic", name, "--partitions", fmt.Sprint(partitions), "--replication-factor", "1"}
	for _, c := range configs {
		args = append(args, "--config", c)
	}
	want(t, tool(t, "TopicCommand", args...), "Created topic "+name+".")
	harness.Settle(t, name, partitions)
	return name
}

func client(t *testing.T, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	cl, err := kgo.NewClient(append(opts, kgo.SeedBrokers(harness.Shared.Addr()), kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return cl
}

// fill puts count records into each partition, a second apart from base on.
func fill(t *testing.T, topic string, partitions, count int, base time.Time) {
	t.Helper()
	cl := client(t)
	var records []*kgo.Record
	for i := range count {
		for p := range partitions {
			records = append(records, &kgo.Record{
				Topic: topic, Partition: int32(p), Key: fmt.Append(nil, "k", i), Value: fmt.Append(nil, "v", i), Timestamp: base.Add(time.Duration(i) * time.Second),
			})
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := cl.ProduceSync(ctx, records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

func TestTopics(t *testing.T) {
	name := newTopic(t, 2, "retention.ms=3600000", "cleanup.policy=compact,delete")
	refused(t, "already exists", "TopicCommand", "--create", "--topic", name)
	refused(t, "", "TopicCommand", "--create", "--topic", name+"-x", "--config", "retention.ms=yesterday")
	want(t, tool(t, "TopicCommand", "--create", "--if-not-exists", "--topic", name))
	row(t, tool(t, "TopicCommand", "--list"), name)
	described := tool(t, "TopicCommand", "--describe", "--topic", name)
	want(t, described, "Topic: "+name, "PartitionCount: 2", "ReplicationFactor: 1", "retention.ms=3600000", "cleanup.policy=compact,delete",
		"Partition: 1	Leader: 1	Replicas: 1	Isr: 1")
	want(t, tool(t, "TopicCommand", "--describe", "--topics-with-overrides"), name)
	for _, none := range []string{"--under-replicated-partitions", "--unavailable-partitions", "--under-min-isr-partitions"} {
		if out := tool(t, "TopicCommand", "--describe", none); strings.Contains(out, name) {
			t.Errorf("%s lists %s", none, out)
		}
	}
	tool(t, "TopicCommand", "--alter", "--topic", name, "--partitions", "5")
	want(t, tool(t, "TopicCommand", "--describe", "--topic", name), "PartitionCount: 5")
	refused(t, "", "TopicCommand", "--alter", "--topic", name, "--partitions", "1")
	tool(t, "TopicCommand", "--delete", "--topic", name)
	refused(t, "does not exist", "TopicCommand", "--describe", "--topic", name)
}

func TestGetOffsets(t *testing.T) {
	name := newTopic(t, 2)
	base := time.Now().Add(-time.Hour).Truncate(time.Second)
	fill(t, name, 2, 10, base)
	for when, offset := range map[string]int{
		"earliest": 0, "latest": 10, "max-timestamp": 9, fmt.Sprint(base.Add(4500 * time.Millisecond).UnixMilli()): 5, "-1": 10, "-2": 0, "-3": 9, "earliest-local": 0,
	} {
		out := tool(t, "GetOffsetShell", "--topic", name, "--time", when)
		want(t, out, fmt.Sprintf("%s:0:%d\n", name, offset), fmt.Sprintf("%s:1:%d\n", name, offset))
	}
	out := tool(t, "GetOffsetShell", "--topic-partitions", name+":1")
	if out != name+":1:10\n" {
		t.Errorf("one partition: %q", out)
	}
}

// file writes text where a tool can read it.
func file(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file.json")
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestDeleteRecords(t *testing.T) {
	name := newTopic(t, 2)
	fill(t, name, 2, 10, time.Now())
	out := tool(t, "DeleteRecordsCommand", "--offset-json-file", file(t, fmt.Sprintf(
		`{"partitions": [{"topic": %q, "partition": 0, "offset": 4}, {"topic": %q, "partition": 1, "offset": -1}], "version": 1}`, name, name)))
	want(t, out, fmt.Sprintf("partition: %s-0	low_watermark: 4", name), fmt.Sprintf("partition: %s-1	low_watermark: 10", name))
	want(t, tool(t, "GetOffsetShell", "--topic", name, "--time", "earliest"), name+":0:4\n", name+":1:10\n")
	want(t, tool(t, "DeleteRecordsCommand", "--offset-json-file", file(t, fmt.Sprintf(
		`{"partitions": [{"topic": %q, "partition": 0, "offset": 400}], "version": 1}`, name))), "OffsetOutOfRangeException")
}

func TestLogDirs(t *testing.T) {
	name := newTopic(t, 2)
	fill(t, name, 2, 10, time.Now())
	out := tool(t, "LogDirsCommand", "--describe", "--topic-list", name, "--broker-list", "1")
	var report struct {
		Brokers []struct {
			Broker  int
			LogDirs []struct {
				LogDir     string
				Error      any
				Partitions []struct {
					Partition string
					Size      int64
					OffsetLag int64
					IsFuture  bool
				}
			}
		}
	}
	_, text, _ := strings.Cut(out, "{")
	if err := json.Unmarshal([]byte("{"+text), &report); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	if len(report.Brokers) != 1 || report.Brokers[0].Broker != 1 || len(report.Brokers[0].LogDirs) != 1 || report.Brokers[0].LogDirs[0].Error != nil {
		t.Fatal(out)
	}
	parts := report.Brokers[0].LogDirs[0].Partitions
	if len(parts) != 2 {
		t.Fatal(out)
	}
	for _, p := range parts {
		if !strings.HasPrefix(p.Partition, name+"-") || p.Size == 0 || p.OffsetLag != 0 || p.IsFuture {
			t.Errorf("%+v", p)
		}
	}
}
