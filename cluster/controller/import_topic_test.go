package controller

import (
	"fmt"
	"testing"

	"github.com/barnabas-mq/barnabas/cluster/metadata"
	"github.com/barnabas-mq/barnabas/protocol"
)

// An imported topic has the id, the settings and the leader epochs that it came
// with, and the producer ids go on behind those of its logs.
func TestImportTopic(t *testing.T) {
	d, _ := startDriver(t)
	if got := <-ask(d, registration(1, 1)); got.err != nil {
		t.Fatal(got.err)
	}
	imported := func(topic ImportedTopic) error {
		out := make(chan error, 1)
		d.ImportTopic(topic, func(err error) { out <- err })
		return <-out
	}
	id := metadata.TopicID{7}
	made := ImportedTopic{Name: "t.x", ID: id, Configs: map[string]string{"retention.ms": "5"}, Broker: 1, LeaderEpochs: []int32{4, 0, 9}, NextProducerID: 1234}
	if err := imported(made); err != nil {
		t.Fatal(err)
	}
	img := d.Image()
	topic, ok := img.Topic("t.x")
	if !ok || topic.ID != id || img.TopicConfig("t.x")["retention.ms"] != "5" || img.NextProducerID() != 1234 {
		t.Fatalf("%+v, configs %v, next producer id %d", topic, img.TopicConfig("t.x"), img.NextProducerID())
	}
	for i, want := range made.LeaderEpochs {
		if p := topic.Partitions[i]; p.LeaderEpoch != want || p.Leader != 1 || fmt.Sprint(p.Replicas, p.ISR) != "[1] [1]" {
			t.Errorf("partition %d: %+v", i, p)
		}
	}
	other := made
	other.ID, other.NextProducerID = metadata.TopicID{8}, 5
	for _, c := range []struct {
		what   string
		change func(*ImportedTopic)
		want   int16
	}{
		{"the same name", func(*ImportedTopic) {}, 36},
		{"the same id", func(o *ImportedTopic) { o.Name, o.ID = "u", id }, 36},
		{"a name that collides", func(o *ImportedTopic) { o.Name = "t_x" }, 17},
		{"a bad setting", func(o *ImportedTopic) { o.Name, o.Configs = "u", map[string]string{"bad": "x"} }, 40},
	} {
		o := other
		c.change(&o)
		if err := imported(o); protocol.Code(err) != c.want {
			t.Errorf("%s: %v, want code %d", c.what, err, c.want)
		}
	}
	other.Name = "u"
	if err := imported(other); err != nil || d.Image().NextProducerID() != 1234 {
		t.Errorf("%v, next producer id %d: ids never go back", err, d.Image().NextProducerID())
	}
	d.Close()
	if err := imported(other); err == nil {
		t.Error("a closed driver has imported")
	}
}
