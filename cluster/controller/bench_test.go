package controller

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/barnabas-mq/barnabas/cluster/metadata"
)

// tenThousand is a driver whose image has 10,000 topics, and the log that led to
// it.
func tenThousand(b *testing.B) (*Driver, *fakeLog) {
	d := New(Options{NodeID: 1, ClusterID: cluster, Config: testConfig(), Rand: rand.New(rand.NewPCG(1, 2)), Log: quiet()})
	l := &fakeLog{d: d, term: 3}
	d.LeaderChange(77, 3, true)
	d.Start(l)
	b.Cleanup(d.Close)
	<-ask(d, registration(1, 1))
	for i := range 10_000 {
		<-ask(d, createTopics(topic(fmt.Sprintf("topic-%d", i), 1, 1)))
	}
	return d, l
}

func BenchmarkStartWith10000Topics(b *testing.B) {
	d, l := tenThousand(b)
	b.Run("replay", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			again := New(Options{NodeID: 1, ClusterID: cluster, Config: testConfig(), Log: quiet()})
			for i, data := range l.batches[:10_001] {
				if err := again.Apply(uint64(i+1), 3, data); err != nil {
					b.Fatal(err)
				}
			}
			if again.Image().TopicCount() != 10_000 {
				b.Fatal("topics are missing")
			}
		}
	})
	b.Run("snapshot", func(b *testing.B) {
		for b.Loop() {
			d.Image().Encode()
		}
	})
	b.Run("restore", func(b *testing.B) {
		data := d.Image().Encode()
		for b.Loop() {
			if _, err := metadata.Decode(data); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("register", func(b *testing.B) {
		b.ReportAllocs()
		start := byte(1)
		for b.Loop() {
			start++
			if got := <-ask(d, registration(1, start)); got.err != nil {
				b.Fatal(got.err)
			}
		}
	})
}
