package main

import (
	"context"
	"fmt"
	"sync"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const group = "crash-group"

// member consumes in the group for one round and commits after each poll.
type member struct {
	cl     *kgo.Client
	cancel context.CancelFunc
	done   sync.WaitGroup
}

// startMember joins as a static member, so that its predecessor, who died with the broker, is replaced at once. The
// first record it is given of each partition must be the one that the group had committed.
func startMember(ctx context.Context, addr string, s *state) (*member, error) {
	committed, err := committedOffsets(ctx, addr)
	if err != nil {
		return nil, err
	}
	cl, err := client(addr, kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.InstanceID("m"), kgo.DisableAutoCommit(),
		kgo.FetchMaxBytes(1<<20), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	m := &member{cl: cl, cancel: cancel}
	m.done.Go(func() { m.consume(ctx, s, committed) })
	return m, nil
}

func (m *member) consume(ctx context.Context, s *state, expect map[int32]int64) {
	started := map[int32]bool{}
	for ctx.Err() == nil {
		fetches := m.cl.PollRecords(ctx, 2000)
		offsets := map[int32]int64{}
		fetches.EachRecord(func(r *kgo.Record) {
			if !started[r.Partition] {
				started[r.Partition] = true
				if want, ok := expect[r.Partition]; ok && r.Offset != want {
					s.groupError(fmt.Errorf("partition %d: the group had committed %d and was given %d", r.Partition, want, r.Offset))
				}
			}
			offsets[r.Partition] = r.Offset + 1
		})
		if len(offsets) == 0 {
			continue
		}
		s.attempt(offsets)
		if err := m.cl.CommitRecords(ctx, fetches.Records()...); err == nil {
			s.commit(offsets)
		}
	}
}

func (m *member) close() {
	m.cancel()
	m.done.Wait()
	m.cl.CloseAllowingRebalance()
}

func (s *state) attempt(offsets map[int32]int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p, o := range offsets {
		s.attempted[p] = max(s.attempted[p], o)
	}
}

func (s *state) commit(offsets map[int32]int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.commits++
	for p, o := range offsets {
		s.committed[p] = max(s.committed[p], o)
	}
}

func committedOffsets(ctx context.Context, addr string) (map[int32]int64, error) {
	cl, err := client(addr)
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	fetched, err := kadm.NewClient(cl).FetchOffsets(ctx, group)
	if err == nil {
		err = fetched.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("the group's offsets: %w", err)
	}
	out := map[int32]int64{}
	for p, o := range fetched[topic] {
		out[p] = o.At
	}
	return out, nil
}
