package storage

import (
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/barnabas-mq/barnabas/protocol"
	"github.com/barnabas-mq/barnabas/storage/segment"
)

const (
	// roomEvery bounds how often a full disk is asked for its free space.
	roomEvery = 10 * time.Millisecond
	// backFrom is the part of the reserve that must be free above it before the
	// log says that the disk has room again: on the edge it would say so all the
	// time.
	backFrom = 16
	// What is not a record, such as a topic's creation, and a cleaning, which gives
	// back what it takes, may use the reserve down to growFrom parts of it, and what
	// frees room down to freeFrom.
	growFrom, freeFrom = 4, 64
)

// hasRoom says that n more bytes leave the reserve free.
func (s *Store) hasRoom(n int64) bool {
	if s.room.Add(-n) >= 0 {
		return true
	}
	// The count may be old, or space was freed: measure, but not for every
	// refused append.
	now, last := int64(s.env.Clock.Elapsed()), s.roomCheck.Load()
	if now-last < int64(roomEvery) || !s.roomCheck.CompareAndSwap(last, now) {
		return false
	}
	s.measureRoom()
	return s.room.Load() >= 0
}

// hasRoomFor is hasRoom for an append. A coordinator's may use a part of the reserve:
// Writable let it in, and if what others took since then refused it, the coordinator
// would start over.
func (s *Store) hasRoomFor(req AppendRequest) bool {
	if s.hasRoom(int64(len(req.Batches))) {
		return true
	}
	return req.Internal && s.roomToGrow() >= 0
}

// roomToGrow is the room as far as known, with the part of the reserve that growFrom
// allows.
func (s *Store) roomToGrow() int64 {
	return s.room.Load() + s.cfg.ReserveBytes - s.cfg.ReserveBytes/growFrom
}

// roomAhead is hasRoom for bytes that a segment would only like to have.
func (s *Store) roomAhead(n int64) bool {
	if s.room.Add(-n) >= 0 {
		return true
	}
	s.room.Add(n)
	return false
}

func (s *Store) measureRoom() {
	s.roomCheck.Store(int64(s.env.Clock.Elapsed()))
	free, err := s.free()
	if err != nil {
		s.env.Logger.Error("the free space is unknown", "dir", s.dir, "err", err)
		return
	}
	s.room.Store(free - s.cfg.ReserveBytes)
}

func (s *Store) free() (int64, error) {
	free, _, err := s.env.FS.Usage(s.dir)
	if errors.Is(err, errors.ErrUnsupported) {
		return 1 << 62, nil
	}
	return int64(min(free, 1<<62)), err
}

// RoomToChange is nil while the disk has room for what is no record: metadata and
// checkpoints, which must never meet a full disk. What frees room may use more of
// the reserve.
func (s *Store) RoomToChange(frees bool) error {
	least := s.cfg.ReserveBytes / growFrom
	if frees {
		least = s.cfg.ReserveBytes / freeFrom
	}
	if free, err := s.free(); err == nil && free < least {
		return protocol.Errorf(kerr.KafkaStorageError, "the disk is full: %d bytes are free in %s, at least %d are needed", free, s.dir, least)
	}
	return nil
}

// Full says that appends are refused for want of room.
func (s *Store) Full() bool { return s.full.Load() }

func (s *Store) refuseFull() error {
	s.metrics.refused.Inc()
	s.tellFull()
	return fmt.Errorf("%w: less than %d bytes are free in %s", ErrOffline, s.cfg.ReserveBytes, s.dir)
}

// tellFull says once that the disk is full.
func (s *Store) tellFull() {
	if !s.full.Swap(true) {
		s.env.Logger.Error("the disk is full: nothing is appended until there is room", "dir", s.dir, "reserveBytes", s.cfg.ReserveBytes)
	}
}

// tellRoom says what was just measured where that is a change: that the disk is full,
// before an append finds out, or that it no longer is.
func (s *Store) tellRoom() {
	switch room := s.room.Load(); {
	case room < 0:
		s.tellFull()
	case room > s.cfg.ReserveBytes/backFrom && s.full.Swap(false):
		s.env.Logger.Info("the disk has room again", "dir", s.dir)
	}
}

// cleaningRoom is room that was promised to a cleaning.
type cleaningRoom struct {
	s    *Store
	left int64
}

// roomToClean promises as much room as the cleaned segment may need at most, beside
// those it replaces and what other cleanings need. It may use a part of the reserve:
// on a full disk that nobody can append to, cleaning is what makes room again.
func (s *Store) roomToClean(group []*segment.Segment) (*cleaningRoom, error) {
	var need int64
	for _, g := range group {
		need += g.SizeBytes()
	}
	s.measureRoom()
	promised := s.cleaner.promised.Add(need)
	if room := s.roomToGrow(); room < promised {
		s.cleaner.promised.Add(-need)
		return nil, fmt.Errorf("%w: %d bytes are needed, %d are free beside the %d that are kept", errNoRoom, promised, max(room, 0), s.cfg.ReserveBytes/growFrom)
	}
	return &cleaningRoom{s: s, left: need}, nil
}

// take uses some of it.
func (r *cleaningRoom) take(n int64) {
	r.s.room.Add(-n)
	r.s.cleaner.promised.Add(-n)
	r.left -= n
}

// release gives back what was not used.
func (r *cleaningRoom) release() {
	r.s.cleaner.promised.Add(-r.left)
	r.left = 0
}
