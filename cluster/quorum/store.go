package quorum

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/barnabas-mq/barnabas/internal/kv"
)

// Keys of the log in the store. Numbers are 8 bytes, big-endian, so that keys
// sort by index.
var (
	hardKey       = []byte("raft/hard")
	metaKey       = []byte("raft/snapshot")
	entryPrefix   = []byte("raft/entry/")
	chunkPrefix   = []byte("raft/chunk/")
	errDamagedLog = errors.New("the metadata log is damaged")
)

// chunkBytes splits a snapshot into values that the store handles well.
const chunkBytes = 256 << 10

const storeFormat = 0

// store is the log on disk, as the consensus library reads it. The node's
// goroutine owns it.
type store struct {
	db   *kv.DB
	hard hardState
	// snap describes the state that the log starts after.
	snap snapshotMeta
	last uint64
	// tail are the newest entries: those that are not applied yet, and at least
	// the last one.
	tail []*raftpb.Entry
	// logBytes is the size of the entries after the snapshot.
	logBytes int
	// failed is the first error of reading entries.
	failed error
}

type hardState struct{ term, vote, commit uint64 }

type snapshotMeta struct {
	index, term uint64
	voters      []uint64
	sizeBytes   uint64
	crc         uint32
}

func indexKey(prefix []byte, index uint64) []byte {
	return binary.BigEndian.AppendUint64(slices.Clone(prefix), index)
}

// load reads what the store holds; fresh is true when it holds nothing.
func (s *store) load() (fresh bool, err error) {
	meta, ok, err := s.db.Get(metaKey)
	if err != nil {
		return false, err
	}
	if !ok {
		return true, s.checkEmpty()
	}
	if s.snap, err = decodeMeta(meta); err != nil {
		return false, err
	}
	hard, ok, err := s.db.Get(hardKey)
	if err != nil {
		return false, err
	}
	if !ok {
		return false, fmt.Errorf("%w: no term", errDamagedLog)
	}
	if s.hard, err = decodeHard(hard); err != nil {
		return false, err
	}
	return false, s.loadEntries()
}

// checkEmpty refuses a log without its start.
func (s *store) checkEmpty() error {
	found := false
	err := s.db.Scan([]byte("raft/"), func(_, _ []byte) bool {
		found = true
		return false
	})
	if err == nil && found {
		err = fmt.Errorf("%w: its first snapshot is missing", errDamagedLog)
	}
	return err
}

// loadEntries finds the end of the log and checks that nothing is missing.
func (s *store) loadEntries() error {
	s.last = s.snap.index
	var bad error
	err := s.db.Scan(entryPrefix, func(key, value []byte) bool {
		var e *raftpb.Entry
		if e, bad = decodeEntry(key, value); bad != nil {
			return false
		}
		if e.GetIndex() <= s.snap.index {
			return true
		}
		if e.GetIndex() != s.last+1 {
			bad = fmt.Errorf("%w: entry %d follows entry %d", errDamagedLog, e.GetIndex(), s.last)
			return false
		}
		s.last = e.GetIndex()
		s.tail = append(s.tail[:0], e)
		s.logBytes += len(value)
		return true
	})
	if err == nil && bad == nil && s.hard.commit > s.last {
		bad = fmt.Errorf("%w: it ends at %d, but %d was committed", errDamagedLog, s.last, s.hard.commit)
	}
	return errors.Join(err, bad)
}

// save writes a term and entries as one batch; entries replace everything from
// the first one's index on.
func (s *store) save(hard *raftpb.HardState, entries []*raftpb.Entry, more []kv.Op, sync bool) error {
	ops := slices.Clone(more)
	if !raft.IsEmptyHardState(hard) {
		s.hard = hardState{term: hard.GetTerm(), vote: hard.GetVote(), commit: hard.GetCommit()}
		ops = append(ops, kv.Op{Key: hardKey, Value: s.hard.encode()})
	}
	if len(entries) > 0 && entries[0].GetIndex() <= s.last {
		ops = append(ops, kv.Op{
			Delete: true, Key: indexKey(entryPrefix, entries[0].GetIndex()), End: kv.PrefixEnd(entryPrefix),
		})
	}
	for _, e := range entries {
		value := encodeEntry(e)
		s.logBytes += len(value)
		ops = append(ops, kv.Op{Key: indexKey(entryPrefix, e.GetIndex()), Value: value})
	}
	if len(ops) == 0 {
		return nil
	}
	if err := s.db.Apply(ops, sync); err != nil {
		return err
	}
	s.extend(entries)
	return nil
}

func (s *store) extend(entries []*raftpb.Entry) {
	if len(entries) == 0 {
		return
	}
	first := entries[0].GetIndex()
	for len(s.tail) > 0 && s.tail[len(s.tail)-1].GetIndex() >= first {
		s.tail = s.tail[:len(s.tail)-1]
	}
	s.tail = append(s.tail, entries...)
	s.last = entries[len(entries)-1].GetIndex()
}

// forget drops applied entries from memory, but for the last one.
func (s *store) forget(applied uint64) {
	drop := 0
	for drop < len(s.tail)-1 && s.tail[drop].GetIndex() <= applied {
		drop++
	}
	s.tail = slices.Clone(s.tail[drop:])
}

// readSnapshot puts the snapshot's chunks together.
func (s *store) readSnapshot() ([]byte, error) {
	data := []byte{}
	err := s.db.Scan(chunkPrefix, func(_, value []byte) bool {
		data = append(data, value...)
		return uint64(len(data)) <= s.snap.sizeBytes
	})
	if err != nil {
		return nil, err
	}
	if uint64(len(data)) != s.snap.sizeBytes || crc32.ChecksumIEEE(data) != s.snap.crc {
		return nil, fmt.Errorf("%w: its snapshot at %d has another size or checksum", errDamagedLog, s.snap.index)
	}
	return data, nil
}

// snapshotOps replaces the snapshot and drops the log up to it, all at once.
func (s *store) snapshotOps(index, term uint64, voters []uint64, data []byte) ([]kv.Op, snapshotMeta) {
	meta := snapshotMeta{
		index: index, term: term, voters: voters, sizeBytes: uint64(len(data)), crc: crc32.ChecksumIEEE(data),
	}
	ops := []kv.Op{
		{Delete: true, Key: chunkPrefix, End: kv.PrefixEnd(chunkPrefix)},
		{Delete: true, Key: entryPrefix, End: indexKey(entryPrefix, index+1)},
		{Key: metaKey, Value: meta.encode()},
	}
	n := uint64(0)
	for chunk := range slices.Chunk(data, chunkBytes) {
		ops = append(ops, kv.Op{Key: indexKey(chunkPrefix, n), Value: chunk})
		n++
	}
	return ops, meta
}

// saveSnapshot makes data, the state after the entry at index, the log's start.
func (s *store) saveSnapshot(index, term uint64, data []byte) error {
	ops, meta := s.snapshotOps(index, term, s.snap.voters, data)
	if err := s.db.Apply(ops, true); err != nil {
		return err
	}
	s.snap, s.logBytes = meta, 0
	return nil
}

// InitialState implements raft.Storage.
func (s *store) InitialState() (*raftpb.HardState, *raftpb.ConfState, error) {
	return &raftpb.HardState{Term: new(s.hard.term), Vote: new(s.hard.vote), Commit: new(s.hard.commit)},
		&raftpb.ConfState{Voters: s.snap.voters}, nil
}

// FirstIndex implements raft.Storage.
func (s *store) FirstIndex() (uint64, error) { return s.snap.index + 1, nil }

// LastIndex implements raft.Storage.
func (s *store) LastIndex() (uint64, error) { return s.last, nil }

// Term implements raft.Storage.
func (s *store) Term(index uint64) (uint64, error) {
	switch {
	case index < s.snap.index:
		return 0, raft.ErrCompacted
	case index == s.snap.index:
		return s.snap.term, nil
	}
	entries, err := s.Entries(index, index+1, 0)
	if err != nil {
		return 0, err
	}
	return entries[0].GetTerm(), nil
}

// Entries implements raft.Storage.
func (s *store) Entries(lo, hi, maxBytes uint64) ([]*raftpb.Entry, error) {
	if lo <= s.snap.index {
		return nil, raft.ErrCompacted
	}
	if hi > s.last+1 || lo >= hi {
		return nil, raft.ErrUnavailable
	}
	var out []*raftpb.Entry
	var size uint64
	add := func(e *raftpb.Entry) bool {
		size += uint64(len(e.GetData()))
		if e.GetIndex() >= hi || (size > maxBytes && len(out) > 0) {
			return false
		}
		out = append(out, e)
		return true
	}
	if len(s.tail) > 0 && lo >= s.tail[0].GetIndex() {
		for _, e := range s.tail[lo-s.tail[0].GetIndex():] {
			if !add(e) {
				break
			}
		}
		return out, nil
	}
	var bad error
	err := s.db.ScanFrom(entryPrefix, indexKey(entryPrefix, lo), func(key, value []byte) bool {
		var e *raftpb.Entry
		e, bad = decodeEntry(key, value)
		return bad == nil && add(e)
	})
	if err == nil && bad == nil && len(out) == 0 {
		bad = fmt.Errorf("%w: entry %d is missing", errDamagedLog, lo)
	}
	if s.failed = errors.Join(err, bad); s.failed != nil {
		return nil, s.failed
	}
	return out, nil
}

// Snapshot implements raft.Storage: a lone voter sends none.
func (s *store) Snapshot() (*raftpb.Snapshot, error) {
	return nil, raft.ErrSnapshotTemporarilyUnavailable
}
