package main

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"sync"
)

const topic = "crash"

// kinds are the producers, by the first byte of what they write.
var kinds = []byte{fill, idempotent, plainAll, plainOne}

const (
	fill       = 'F' // what was there before the first kill
	idempotent = 'I'
	plainAll   = 'A' // acks=all without idempotence
	plainOne   = 'L' // acks=1, the leader's only
	probe      = 'P'
)

var probeValue = []byte{probe}

// series is one producer's records in one partition.
type series struct {
	kind      byte
	partition int32
}

// state is what was sent and acknowledged, and what has been read back.
type state struct {
	partitions int
	read       *reading // owned by the verifying goroutine

	mu         sync.Mutex
	next       map[series]uint64 // the sequence of the next record to send
	acked      map[series]uint64 // one past the highest acknowledged sequence
	ackedEnd   map[int32]int64   // one past the highest acknowledged offset
	ackedCount map[byte]int64
	committed  map[int32]int64 // acknowledged commits of the group
	attempted  map[int32]int64 // commits sent
	commits    int64
	bytes      int64
	groupErr   error
}

func newState(partitions int) *state {
	return &state{
		partitions: partitions, read: newReading(),
		next: map[series]uint64{}, acked: map[series]uint64{}, ackedEnd: map[int32]int64{}, ackedCount: map[byte]int64{},
		committed: map[int32]int64{}, attempted: map[int32]int64{},
	}
}

// snapshot is what must be there after a restart.
type snapshot struct {
	acked     map[series]uint64
	ackedEnd  map[int32]int64
	committed map[int32]int64
	attempted map[int32]int64
}

func (s *state) snapshot() snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	return snapshot{maps.Clone(s.acked), maps.Clone(s.ackedEnd), maps.Clone(s.committed), maps.Clone(s.attempted)}
}

// value makes the next record of a series, padded from junk.
func (s *state) value(sr series, junk []byte) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	seq := s.next[sr]
	s.next[sr]++
	v := append(make([]byte, 0, 9+len(junk)), sr.kind)
	return append(binary.BigEndian.AppendUint64(v, seq), junk...)
}

func (s *state) ack(sr series, value []byte, offset int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.acked[sr] = max(s.acked[sr], binary.BigEndian.Uint64(value[1:])+1)
	s.ackedEnd[sr.partition] = max(s.ackedEnd[sr.partition], offset+1)
	s.ackedCount[sr.kind]++
	s.bytes += int64(len(value))
}

func (s *state) total() (n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.ackedCount {
		n += c
	}
	return n
}

// reading is how far the log has been read back, and what was seen there.
type reading struct {
	position map[int32]int64
	seen     map[series]uint64 // one past the highest sequence seen; all below were seen too
	doubled  map[byte]int64
	records  int64
}

func newReading() *reading {
	return &reading{position: map[int32]int64{}, seen: map[series]uint64{}, doubled: map[byte]int64{}}
}

// add judges one record: the idempotent producers' come once and in order, the plain ones' in order, perhaps again.
func (r *reading) add(partition int32, offset int64, value []byte) error {
	if offset != r.position[partition] {
		return fmt.Errorf("partition %d: offset %d follows %d", partition, offset, r.position[partition]-1)
	}
	r.position[partition]++
	r.records++
	if len(value) > 0 && value[0] == probe {
		return nil
	}
	if len(value) < 9 || !slices.Contains(kinds, value[0]) {
		return fmt.Errorf("partition %d, offset %d: a record of nobody's: %q", partition, offset, value[:min(len(value), 20)])
	}
	sr := series{value[0], partition}
	seq, want := binary.BigEndian.Uint64(value[1:]), r.seen[sr]
	switch {
	case seq == want:
		r.seen[sr]++
	case seq > want:
		return fmt.Errorf("partition %d, offset %d: producer %c's record %d comes where %d should: records are lost", partition, offset, sr.kind, seq, want)
	case sr.kind == idempotent || sr.kind == fill:
		return fmt.Errorf("partition %d, offset %d: producer %c's record %d comes again after %d", partition, offset, sr.kind, seq, want-1)
	default:
		r.doubled[sr.kind]++
	}
	return nil
}
