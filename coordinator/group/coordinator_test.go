package group

import (
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/coordinator/runtime"
	"github.com/barnabas-mq/barnabas/internal/clock"
	"github.com/barnabas-mq/barnabas/protocol/batch"
)

// memLog is a partition in memory; its high watermark is its end.
type memLog struct {
	mu      sync.Mutex
	batches []byte
	end     int64
}

func (l *memLog) TopicID() [16]byte                                { return [16]byte{1} }
func (l *memLog) LogStartOffset() int64                            { return 0 }
func (l *memLog) Writable() error                                  { return nil }
func (l *memLog) HighWatermark() int64                             { return l.LogEndOffset() }
func (l *memLog) CompactedTo() int64                               { return -1 }
func (l *memLog) EndOffsetForEpoch(int32) (int32, int64)           { return 0, l.LogEndOffset() }
func (l *memLog) WhenCommitted(_ int32, _ int64, done func(error)) { done(nil) }

func (l *memLog) LogEndOffset() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.end
}

func (l *memLog) Read(int64, int) ([]byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.batches), nil
}

func (l *memLog) Append(_ int32, b []byte, committed func(error)) (int64, error) {
	l.mu.Lock()
	v := batch.View(b)
	first := l.end
	v.SetBaseOffset(first)
	l.end = v.NextOffset()
	l.batches = append(l.batches, v...)
	l.mu.Unlock()
	committed(nil)
	return first, nil
}

// fewPartitions is how many partitions the topic of the tests has.
const fewPartitions = 4

// served is a coordinator of all partitions. Before one is opened, open is called.
func served(logs []*memLog, epoch int32, open func(partition int32)) *Coordinator {
	c := NewCoordinator(Options{
		Config: DefaultConfig(), Clock: clock.Real(), Log: slog.New(slog.DiscardHandler),
		NewID:      func() string { return "id" },
		Partitions: func() int32 { return fewPartitions },
		Open: func(p int32) (runtime.Log, error) {
			open(p)
			return logs[p], nil
		},
	})
	for p := range int32(fewPartitions) {
		c.OnElected(p, epoch)
	}
	return c
}

// listed asks for all groups.
func listed(c *Coordinator) chan string {
	got := make(chan string, 1)
	c.ListGroups(kmsg.NewPtrListGroupsRequest(), func(r *kmsg.ListGroupsResponse) {
		var names []string
		for _, g := range r.Groups {
			names = append(names, g.Group)
		}
		got <- fmt.Sprintf("%d %v", r.ErrorCode, names)
	})
	return got
}

// A list has all groups or an error, as in Kafka, whatever is still loading.
func TestListGroupsWhileOnePartitionLoads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logs := make([]*memLog, fewPartitions)
		for i := range logs {
			logs[i] = &memLog{}
		}
		c := served(logs, 1, func(int32) {})
		if got := <-listed(c); got != "0 []" {
			t.Fatalf("without groups: %s", got)
		}
		for _, id := range []string{"a", "b", "c"} {
			r := kmsg.NewPtrOffsetCommitRequest()
			r.Group, r.Generation = id, -1
			r.Topics = []kmsg.OffsetCommitRequestTopic{{Topic: "t", Partitions: []kmsg.OffsetCommitRequestTopicPartition{{Offset: 1}}}}
			c.CommitOffsets(Client{}, r, func(r *kmsg.OffsetCommitResponse) {
				if code := r.Topics[0].Partitions[0].ErrorCode; code != 0 {
					t.Errorf("commit of %s: %d", id, code)
				}
			})
		}
		synctest.Wait()
		c.Close()

		slow, release := PartitionFor("b", fewPartitions), make(chan struct{})
		c = served(logs, 2, func(p int32) {
			if p == slow {
				<-release
			}
		})
		early := listed(c)
		synctest.Wait()
		if len(early) != 0 {
			t.Fatalf("answered while a partition opens: %s", <-early)
		}
		want := fmt.Sprintf("%d []", kerr.CoordinatorLoadInProgress.Code)
		if got := <-early; got != want {
			t.Errorf("the load takes long: %s, want %s", got, want)
		}
		if got := <-listed(c); got != want {
			t.Errorf("later in the load: %s, want %s", got, want)
		}
		close(release)
		synctest.Wait()
		if got := <-listed(c); got != "0 [a b c]" {
			t.Errorf("after the load: %s", got)
		}
		c.Close()
	})
}
