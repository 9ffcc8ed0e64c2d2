package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/compat-tests/harness"
)

// The sizes of the rows about groups.
const (
	groupMembers = 500
	manyGroups   = 100_000
	recommits    = 4 // how often all of them commit again before the second restart
	committers   = 16
)

// groupRows times what many groups and many members cost, on a broker of its own.
func groupRows(ctx context.Context, o options, kind harness.Kind, r *report) error {
	const name = "groups"
	if !strings.Contains(name, o.only) {
		return nil
	}
	dir, err := os.MkdirTemp(o.dir, "bench-groups-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	settings := harness.Options{Kind: kind, Dir: dir, HeapMB: 1024, Properties: map[string]string{"group.consumer.max.size": "1000"}}
	starting, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	b, err := harness.Start(starting, settings)
	if err != nil {
		return err
	}
	defer func() { b.Kill() }()
	settings = b.Options
	if err := membersRows(b.Addr(), kind, r); err != nil {
		return err
	}
	name1 := fmt.Sprintf("%d groups with offsets: kill -9 to all coordinators serving", manyGroups)
	name2 := fmt.Sprintf("the same after %d more commits", manyGroups*recommits)
	for i, name := range []string{name1, name2} {
		rounds := 1
		if i == 1 {
			rounds = recommits
		}
		if err := commitAll(b.Addr(), rounds); err != nil {
			return err
		}
		b.Kill()
		begin := time.Now()
		if b, err = harness.Launch(settings); err != nil {
			return err
		}
		if err := awaitCoordinators(b); err != nil {
			return err
		}
		r.add(kind, name, "ms", false, float64(time.Since(begin).Microseconds())/1000)
	}
	return nil
}

func groupName(n int) string { return fmt.Sprintf("bench-group-%06d", n) }

// commitAll commits one offset for each group, rounds times.
func commitAll(addr string, rounds int) error {
	if _, err := harness.FirstAck(addr, "bench-committed", 0, []byte("x"), 30*time.Second); err != nil {
		return err
	}
	errs := make(chan error, committers)
	for c := range committers {
		go func() { errs <- commitSome(addr, c, rounds) }()
	}
	for range committers {
		if err := <-errs; err != nil {
			return err
		}
	}
	return nil
}

func commitSome(addr string, first, rounds int) error {
	w, err := harness.Dial(addr, 5*time.Second)
	if err != nil {
		return err
	}
	defer w.Close()
	for range rounds {
		for n := first; n < manyGroups; n += committers {
			if err := commitOne(w, groupName(n)); err != nil {
				return err
			}
		}
	}
	return nil
}

// commitOne asks until the group's coordinator is there.
func commitOne(w *harness.Wire, group string) error {
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Version, req.Group, req.Generation = 7, group, -1
	t := kmsg.NewOffsetCommitRequestTopic()
	t.Topic = "bench-committed"
	p := kmsg.NewOffsetCommitRequestTopicPartition()
	p.Offset = 1
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	var code int16
	for range 1000 {
		resp, err := w.Ask(req, 30*time.Second)
		if err != nil {
			return err
		}
		if code = resp.(*kmsg.OffsetCommitResponse).Topics[0].Partitions[0].ErrorCode; code == 0 {
			return nil
		}
		if err := findCoordinator(w, group); err != nil {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
	return fmt.Errorf("commit for %s: error %d", group, code)
}

// findCoordinator makes the internal topic on its first use.
func findCoordinator(w *harness.Wire, group string) error {
	req := kmsg.NewPtrFindCoordinatorRequest()
	req.Version, req.CoordinatorKey = 2, group
	_, err := w.Ask(req, 30*time.Second)
	return err
}

// awaitCoordinators waits until groups of each of the 50 coordinators have their offsets.
func awaitCoordinators(b *harness.Broker) error {
	waiting, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	if err := b.WaitReady(waiting); err != nil {
		return fmt.Errorf("%w; the log ends:\n%s", err, b.LogTail(2000))
	}
	w, err := harness.Dial(b.Addr(), 5*time.Second)
	if err != nil {
		return err
	}
	defer w.Close()
	const sample = 500 // of the groups in sequence: every partition has some of them
	for n := 0; n < sample; {
		req := kmsg.NewPtrOffsetFetchRequest()
		req.Version, req.Group = 5, groupName(n)
		req.Topics = []kmsg.OffsetFetchRequestTopic{{Topic: "bench-committed", Partitions: []int32{0}}}
		resp, err := w.Ask(req, 30*time.Second)
		if err != nil {
			return err
		}
		answer := resp.(*kmsg.OffsetFetchResponse)
		switch {
		case answer.ErrorCode == 0 && answer.Topics[0].Partitions[0].Offset == 1:
			n++
		case answer.ErrorCode == 0:
			return fmt.Errorf("%s has lost its offset", groupName(n))
		case waiting.Err() != nil:
			return fmt.Errorf("%s: error %d", groupName(n), answer.ErrorCode)
		default:
			time.Sleep(2 * time.Millisecond)
		}
	}
	return nil
}

// membersRows times how long it takes until the members of a large group have their partitions.
func membersRows(addr string, kind harness.Kind, r *report) error {
	topicID, err := makeLarge(addr)
	if err != nil {
		return err
	}
	if err := commitAllReady(addr); err != nil {
		return err
	}
	for _, row := range []struct {
		name string
		run  func(addr string, topicID [16]byte, round int) (time.Duration, error)
	}{
		{fmt.Sprintf("%d members join a classic group", groupMembers), joinClassic},
		{fmt.Sprintf("%d members join a KIP-848 group", groupMembers), joinConsumer},
	} {
		took, err := row.run(addr, topicID, 0)
		if err != nil {
			return fmt.Errorf("%s: %w", row.name, err)
		}
		r.add(kind, row.name, "ms", false, float64(took.Microseconds())/1000)
	}
	return nil
}

func commitAllReady(addr string) error {
	w, err := harness.Dial(addr, 5*time.Second)
	if err != nil {
		return err
	}
	defer w.Close()
	for _, group := range []string{"bench-classic", "bench-consumer"} {
		if err := commitOne(w, group+"-warm"); err != nil {
			return err
		}
	}
	return nil
}

// makeLarge makes a topic with a partition for each member.
func makeLarge(addr string) (id [16]byte, err error) {
	w, err := harness.Dial(addr, 5*time.Second)
	if err != nil {
		return id, err
	}
	defer w.Close()
	for topic, partitions := range map[string]int32{"bench-large": groupMembers, "bench-committed": 1} {
		req := kmsg.NewPtrCreateTopicsRequest()
		req.Version, req.TimeoutMillis = 7, 60000
		t := kmsg.NewCreateTopicsRequestTopic()
		t.Topic, t.NumPartitions, t.ReplicationFactor = topic, partitions, 1
		req.Topics = append(req.Topics, t)
		resp, err := w.Ask(req, time.Minute)
		if err != nil {
			return id, err
		}
		if t := resp.(*kmsg.CreateTopicsResponse).Topics[0]; t.ErrorCode != 0 {
			return id, fmt.Errorf("create %s: error %d", topic, t.ErrorCode)
		} else if topic == "bench-large" {
			id = t.TopicID
		}
	}
	return id, nil
}

// together runs all members and returns how long the last one took.
func together(member func(n int) error) (time.Duration, error) {
	begin := time.Now()
	errs := make(chan error, groupMembers)
	var wait sync.WaitGroup
	for n := range groupMembers {
		wait.Go(func() { errs <- member(n) })
	}
	wait.Wait()
	took := time.Since(begin)
	for range groupMembers {
		if err := <-errs; err != nil {
			return 0, err
		}
	}
	return took, nil
}
