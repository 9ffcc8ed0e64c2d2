//go:build !old

package franz

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/barnabas-mq/barnabas/compat-tests/harness"
)

func TestAdminTopics(t *testing.T) {
	ctx := harness.Context(t, time.Minute)
	adm := admin(t)
	name := topic(t, 2, nil)

	again, _ := adm.CreateTopic(ctx, 1, 1, nil, name)
	if !errors.Is(again.Err, kerr.TopicAlreadyExists) {
		t.Errorf("create it again: %v", again.Err)
	}
	bad, _ := adm.CreateTopic(ctx, 1, 1, nil, "no/such name")
	if !errors.Is(bad.Err, kerr.InvalidTopicException) {
		t.Errorf("an invalid name: %v", bad.Err)
	}
	many, _ := adm.CreateTopic(ctx, 1, 9, nil, name+"-rf")
	if !errors.Is(many.Err, kerr.InvalidReplicationFactor) {
		t.Errorf("nine replicas: %v", many.Err)
	}
	wrong := "yesterday"
	conf, _ := adm.CreateTopic(ctx, 1, 1, map[string]*string{"retention.ms": &wrong}, name+"-conf")
	if !errors.Is(conf.Err, kerr.InvalidConfig) {
		t.Errorf("a wrong config: %v", conf.Err)
	}
	if dry, err := adm.ValidateCreateTopics(ctx, 3, 1, nil, name+"-dry"); err != nil || dry[name+"-dry"].Err != nil {
		t.Errorf("validate only: %v, %v", err, dry[name+"-dry"].Err)
	}
	if _, err := adm.UpdatePartitions(ctx, 5, name); err != nil {
		t.Fatalf("five partitions: %v", err)
	}
	await(t, ctx, func() error {
		listed, err := adm.ListTopics(ctx, name, name+"-dry")
		if err != nil {
			return err
		}
		if listed.Has(name + "-dry") {
			t.Fatal("validate only has created the topic")
		}
		if got := listed[name]; got.Err != nil || len(got.Partitions) != 5 || got.IsInternal || got.ID == (kadm.TopicID{}) {
			return fmt.Errorf("listed as %+v", got)
		}
		return nil
	})
	fewer, _ := adm.UpdatePartitions(ctx, 1, name)
	if !errors.Is(fewer[name].Err, kerr.InvalidPartitions) {
		t.Errorf("fewer partitions: %v", fewer[name].Err)
	}
	if resp, err := adm.DeleteTopic(ctx, name); err != nil || resp.Err != nil {
		t.Fatalf("delete: %v, %v", err, resp.Err)
	}
	await(t, ctx, func() error {
		listed, err := adm.ListTopics(ctx, name)
		if err != nil {
			return err
		}
		if !errors.Is(listed[name].Err, kerr.UnknownTopicOrPartition) {
			return fmt.Errorf("after the deletion: %v", listed[name].Err)
		}
		return nil
	})
}

func TestAdminConfigs(t *testing.T) {
	ctx := harness.Context(t, time.Minute)
	adm := admin(t)
	hour := "3600000"
	name := topic(t, 1, map[string]*string{"retention.ms": &hour})
	await(t, ctx, func() error { // Apache Kafka's CreateTopics answers before its broker knows the configs
		described, err := adm.DescribeTopicConfigs(ctx, name)
		if err != nil {
			return err
		}
		return described[0].Err
	})
	value := func(key string) *kadm.Config {
		t.Helper()
		described, err := adm.DescribeTopicConfigs(ctx, name)
		if err != nil {
			t.Fatal(err)
		}
		rc, err := described.On(name, nil)
		if err != nil || rc.Err != nil {
			t.Fatal(err, rc.Err)
		}
		for _, c := range rc.Configs {
			if c.Key == key {
				return &c
			}
		}
		t.Fatalf("%s is not among the %d configs", key, len(rc.Configs))
		return nil
	}
	if c := value("retention.ms"); c.MaybeValue() != hour || c.Source.String() != "DYNAMIC_TOPIC_CONFIG" {
		t.Errorf("retention.ms is %+v", c)
	}
	if c := value("segment.bytes"); c.MaybeValue() != "1073741824" || c.Source.String() != "DEFAULT_CONFIG" {
		t.Errorf("segment.bytes is %+v", c)
	}
	day, compact := "86400000", "compact"
	if _, err := adm.AlterTopicConfigs(ctx, []kadm.AlterConfig{
		{Op: kadm.SetConfig, Name: "retention.ms", Value: &day},
		{Op: kadm.AppendConfig, Name: "cleanup.policy", Value: &compact},
	}, name); err != nil {
		t.Fatal(err)
	}
	await(t, ctx, func() error {
		if a, b := value("retention.ms").MaybeValue(), value("cleanup.policy").MaybeValue(); a != day || b != "delete,compact" {
			return fmt.Errorf("retention.ms %s, cleanup.policy %s", a, b)
		}
		return nil
	})
	resp, err := adm.AlterTopicConfigs(ctx, []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "no.such.config", Value: &day}}, name)
	if err != nil || !errors.Is(resp[0].Err, kerr.InvalidConfig) {
		t.Errorf("an unknown config: %v, %v", err, resp)
	}
	if _, err := adm.AlterTopicConfigs(ctx, []kadm.AlterConfig{{Op: kadm.DeleteConfig, Name: "retention.ms"}}, name); err != nil {
		t.Fatal(err)
	}
	await(t, ctx, func() error {
		if c := value("retention.ms"); c.MaybeValue() != "604800000" {
			return fmt.Errorf("after the deletion retention.ms is %s", c.MaybeValue())
		}
		return nil
	})
	broker, err := adm.DescribeBrokerConfigs(ctx, 1)
	if err != nil || len(broker) != 1 || len(broker[0].Configs) < 50 {
		t.Fatalf("the broker's configs: %v, %d", err, len(broker))
	}
}

func TestAdminOffsets(t *testing.T) {
	ctx := harness.Context(t, time.Minute)
	adm := admin(t)
	name := topic(t, 1, nil)
	base := time.Now().Add(-time.Hour).Truncate(time.Millisecond)
	cl := client(t, kgo.DefaultProduceTopic(name))
	var batch []*kgo.Record
	for i := range 100 {
		batch = append(batch, &kgo.Record{Value: []byte("v"), Timestamp: base.Add(time.Duration(i) * time.Second)})
	}
	if err := cl.ProduceSync(ctx, batch...).FirstErr(); err != nil {
		t.Fatal(err)
	}
	check := func(what string, listed kadm.ListedOffsets, err error, want int64) {
		t.Helper()
		if err != nil {
			t.Fatal(what, err)
		}
		if o, _ := listed.Lookup(name, 0); o.Err != nil || o.Offset != want {
			t.Errorf("%s: offset %d, %v; want %d", what, o.Offset, o.Err, want)
		}
	}
	start, err := adm.ListStartOffsets(ctx, name)
	check("start", start, err, 0)
	end, err := adm.ListEndOffsets(ctx, name)
	check("end", end, err, 100)
	mid, err := adm.ListOffsetsAfterMilli(ctx, base.Add(41500*time.Millisecond).UnixMilli(), name)
	check("after 41.5 s", mid, err, 42)
	late, err := adm.ListOffsetsAfterMilli(ctx, time.Now().UnixMilli(), name)
	check("after now", late, err, 100)
	highest, err := adm.ListMaxTimestampOffsets(ctx, name)
	check("max timestamp", highest, err, 99)

	var to kadm.Offsets = kadm.Offsets{}
	to.Add(kadm.Offset{Topic: name, Partition: 0, At: 60})
	deleted, err := adm.DeleteRecords(ctx, to)
	if err != nil || deleted.Error() != nil {
		t.Fatalf("delete records: %v, %v", err, deleted.Error())
	}
	start, err = adm.ListStartOffsets(ctx, name)
	check("start after DeleteRecords", start, err, 60)
	if got := readAll(t, ctx, name, 1, 40); got[0][0].Offset != 60 {
		t.Errorf("the first record left is %d", got[0][0].Offset)
	}
	to.Add(kadm.Offset{Topic: name, Partition: 0, At: 5000})
	deleted, err = adm.DeleteRecords(ctx, to)
	if err != nil || !errors.Is(deleted.Error(), kerr.OffsetOutOfRange) {
		t.Errorf("delete records past the end: %v, %v", err, deleted.Error())
	}
}

func TestAdminGroups(t *testing.T) {
	ctx := harness.Context(t, time.Minute)
	adm := admin(t)
	name := topic(t, 2, nil)
	group := "group-" + name
	await(t, ctx, func() error { // the first request of all makes the offsets topic
		missing, err := adm.FetchOffsets(ctx, group+"-missing")
		if err != nil || len(missing) != 0 {
			return fmt.Errorf("offsets of a group that is not there: %v, %w", missing, err)
		}
		return nil
	})
	commit := kadm.Offsets{}
	commit.Add(kadm.Offset{Topic: name, Partition: 0, At: 3, LeaderEpoch: -1, Metadata: "here"})
	commit.Add(kadm.Offset{Topic: name, Partition: 1, At: 4, LeaderEpoch: -1})
	if done, err := adm.CommitOffsets(ctx, group, commit); err != nil || done.Error() != nil {
		t.Fatalf("commit: %v, %v", err, done.Error())
	}
	fetched, err := adm.FetchOffsets(ctx, group)
	if err != nil {
		t.Fatal(err)
	}
	if o, _ := fetched.Lookup(name, 0); o.At != 3 || o.Metadata != "here" {
		t.Errorf("partition 0 is at %+v", o)
	}
	if o, _ := fetched.Lookup(name, 1); o.At != 4 || o.Metadata != "" {
		t.Errorf("partition 1 is at %+v", o)
	}
	listed, err := adm.ListGroups(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if g, ok := listed[group]; !ok || g.State != "Empty" {
		t.Errorf("listed as %+v, %t", g, ok)
	}
	var one kadm.TopicsSet
	one.Add(name, 0)
	if del, err := adm.DeleteOffsets(ctx, group, one); err != nil || del.Error() != nil {
		t.Errorf("delete the offset of partition 0: %v, %v", err, del.Error())
	}
	if fetched, _ = adm.FetchOffsets(ctx, group); len(fetched[name]) != 1 {
		t.Errorf("offsets left: %v", fetched)
	}
	if del, err := adm.DeleteGroup(ctx, group); err != nil || del.Err != nil {
		t.Errorf("delete the group: %v, %v", err, del.Err)
	}
	gone, err := adm.DeleteGroup(ctx, group)
	if !errors.Is(gone.Err, kerr.GroupIDNotFound) {
		t.Errorf("delete it again: %v, %v", err, gone.Err)
	}
}

func TestAdminCluster(t *testing.T) {
	ctx := harness.Context(t, time.Minute)
	adm := admin(t)
	meta, err := adm.BrokerMetadata(ctx)
	if err != nil || len(meta.Brokers) != 1 || meta.Brokers[0].NodeID != 1 || meta.Controller != 1 || len(meta.Cluster) != 22 {
		t.Fatalf("metadata: %+v, %v", meta, err)
	}
	name := topic(t, 1, nil)
	cl := client(t, kgo.DefaultProduceTopic(name))
	if err := cl.ProduceSync(ctx, kgo.SliceRecord(make([]byte, 5000))).FirstErr(); err != nil {
		t.Fatal(err)
	}
	var set kadm.TopicsSet
	set.Add(name, 0)
	dirs, err := adm.DescribeAllLogDirs(ctx, set)
	if err != nil || len(dirs) != 1 || dirs[1].Error() != nil {
		t.Fatalf("log dirs: %v, %v", err, dirs)
	}
	if p, ok := dirs[1].LookupPartition(name, 0); !ok || p.Size == 0 {
		t.Errorf("the partition's folder: %+v, %t", p, ok)
	}
	versions, err := adm.ApiVersions(ctx)
	if err != nil {
		t.Fatal(err)
	}
	produce := versions[1]
	if low, high, ok := produce.KeyVersions(0); !ok || low != 0 || high < 11 {
		t.Errorf("Produce is advertised from %d to %d, %t", low, high, ok)
	}
}
