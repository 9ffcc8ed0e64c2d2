package main

import (
	"context"
	"flag"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/urfave/cli/v2"
)

// A topic that produce makes is there at once: the client library's own patience
// between two looks is a quarter of a second.
func TestProduceLooksSoonForItsTopic(t *testing.T) {
	set := flag.NewFlagSet("", flag.ContinueOnError)
	for _, f := range produceCommand().Flags {
		if err := f.Apply(set); err != nil {
			t.Fatal(err)
		}
	}
	opts, err := produceOptions(cli.NewContext(cli.NewApp(), set, nil))
	if err != nil {
		t.Fatal(err)
	}
	client, err := kgo.NewClient(opts...)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	age := client.OptValue(kgo.MetadataMinAge).(time.Duration)
	looks := client.OptValue(kgo.UnknownTopicRetries).(int64)
	if age > 50*time.Millisecond || age*time.Duration(looks) < time.Second {
		t.Errorf("%d looks, one every %v", looks, age)
	}
}

// When its broker goes away, produce says that, and not that a time is over.
func TestProduceNamesTheBrokerThatIsAway(t *testing.T) {
	port, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	address := "localhost:" + strconv.Itoa(port)
	client, err := kgo.NewClient(kgo.SeedBrokers(address), kgo.DefaultProduceTopic("t"))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	s := &sender{ctx: context.Background(), client: client, partition: -1, brokers: []string{address}, patience: 200 * time.Millisecond}
	s.sent.Add(54)
	if err := s.sendLine("lost", "line", 1); err != nil {
		t.Fatal(err)
	}
	err = s.finish(nil, "t")
	want := regexp.MustCompile(`^produce: no broker answers at ` + address + `: dial tcp .*refused.*, after 54 acknowledged records\nIs it running\?`)
	if err == nil || !want.MatchString(err.Error()) {
		t.Errorf("%v", err)
	}
}
