package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// verify reads what came since the last time and holds it against what had been acknowledged before the kill.
func verify(ctx context.Context, addr string, s *state, acked snapshot) error {
	if err := s.takeGroupError(); err != nil {
		return err
	}
	cl, err := client(addr)
	if err != nil {
		return err
	}
	defer cl.Close()
	ends, err := endOffsets(ctx, cl, s.partitions)
	if err != nil {
		return err
	}
	for p, want := range acked.ackedEnd {
		if ends[p] < want {
			return fmt.Errorf("partition %d ends at %d, but records up to %d were acknowledged", p, ends[p], want-1)
		}
	}
	if err := readTo(ctx, addr, s.read, ends); err != nil {
		return err
	}
	if err := holdsAcked(s.read, acked.acked); err != nil {
		return err
	}
	committed, err := committedOffsets(ctx, addr)
	if err != nil {
		return err
	}
	for p, want := range acked.committed {
		if got, ok := committed[p]; !ok || got < want || got > acked.attempted[p] {
			return fmt.Errorf("partition %d: the group's offset is %d (there %t), after %d was acknowledged and %d tried", p, got, ok, want, acked.attempted[p])
		}
	}
	return nil
}

// verifyAll reads the whole topic once more from its start, when nothing is in flight any more.
func verifyAll(ctx context.Context, addr string, s *state) error {
	cl, err := client(addr)
	if err != nil {
		return err
	}
	defer cl.Close()
	ends, err := endOffsets(ctx, cl, s.partitions)
	if err != nil {
		return err
	}
	again := newReading()
	if err := readTo(ctx, addr, again, ends); err != nil {
		return fmt.Errorf("the whole log: %w", err)
	}
	if err := holdsAcked(again, s.snapshot().acked); err != nil {
		return fmt.Errorf("the whole log: %w", err)
	}
	for sr, sent := range s.next {
		if again.seen[sr] != sent {
			return fmt.Errorf("producer %c, partition %d: %d records sent, %d there", sr.kind, sr.partition, sent, again.seen[sr])
		}
	}
	s.read = again
	return nil
}

func holdsAcked(r *reading, acked map[series]uint64) error {
	for sr, want := range acked {
		if got := r.seen[sr]; got < want {
			return fmt.Errorf("producer %c, partition %d: %d records are there, %d were acknowledged", sr.kind, sr.partition, got, want)
		}
	}
	return nil
}

func endOffsets(ctx context.Context, cl *kgo.Client, partitions int) (map[int32]int64, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	listed, err := kadm.NewClient(cl).ListEndOffsets(ctx, topic)
	if err == nil {
		err = listed.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("list the end offsets: %w", err)
	}
	ends := map[int32]int64{}
	for p, o := range listed[topic] {
		ends[p] = o.Offset
	}
	if len(ends) != partitions {
		return nil, fmt.Errorf("%d of %d partitions have an end offset", len(ends), partitions)
	}
	return ends, nil
}

// readTo reads every partition from where r stands to its end.
func readTo(ctx context.Context, addr string, r *reading, ends map[int32]int64) error {
	from := map[int32]kgo.Offset{}
	open := map[int32]bool{}
	for p, end := range ends {
		if r.position[p] < end {
			from[p] = kgo.NewOffset().At(r.position[p])
			open[p] = true
		}
	}
	if len(open) == 0 {
		return nil
	}
	cl, err := client(addr, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: from}), kgo.ConsumeResetOffset(kgo.NoResetOffset()),
		kgo.FetchMaxWait(100*time.Millisecond))
	if err != nil {
		return err
	}
	defer cl.Close()
	for len(open) > 0 {
		pctx, cancel := context.WithTimeout(ctx, patience)
		fetches := cl.PollFetches(pctx)
		cancel()
		if errs := fetches.Errors(); len(errs) > 0 {
			return fmt.Errorf("read %s-%d, with %d partitions not yet read to their end: %w", errs[0].Topic, errs[0].Partition, len(open), errs[0].Err)
		}
		for _, rec := range fetches.Records() {
			if rec.Offset >= ends[rec.Partition] {
				continue
			}
			if err := r.add(rec.Partition, rec.Offset, rec.Value); err != nil {
				return err
			}
			if r.position[rec.Partition] == ends[rec.Partition] {
				delete(open, rec.Partition)
			}
		}
	}
	return nil
}

func (s *state) groupError(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.groupErr == nil {
		s.groupErr = err
	}
}

func (s *state) takeGroupError() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.groupErr
}

// figures are what the run is reported by.
type figures struct{ restarts []time.Duration }

func (f *figures) worst() time.Duration {
	if len(f.restarts) == 0 {
		return 0
	}
	return slices.Max(f.restarts)
}

func (f *figures) line(s *state) string {
	sorted := slices.Sorted(slices.Values(f.restarts))
	at := func(q float64) time.Duration { return sorted[int(q*float64(len(sorted)-1))].Round(time.Millisecond) }
	return fmt.Sprintf("%d acknowledged, %d read back, %d commits; restart to first ack p50 %v, p99 %v, worst %v",
		s.total(), s.read.records, s.commitCount(), at(0.5), at(0.99), at(1))
}

func (f *figures) print(s *state) {
	if len(f.restarts) > 0 {
		fmt.Println("all:     ", f.line(s))
	}
	fmt.Printf("idempotent acks=all: %d acknowledged, each there once\n", s.ackedCount[idempotent])
	fmt.Printf("plain acks=all: %d acknowledged, in order, %d there again after a retry\n", s.ackedCount[plainAll], s.read.doubled[plainAll])
	fmt.Printf("plain acks=1: %d acknowledged, in order, %d there again after a retry\n", s.ackedCount[plainOne], s.read.doubled[plainOne])
	fmt.Printf("before the first kill: %d records, each there once; %d MiB acknowledged in all\n", s.ackedCount[fill], s.bytes>>20)
}

func (s *state) commitCount() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.commits
}
