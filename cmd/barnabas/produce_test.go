package main

import (
	"flag"
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
