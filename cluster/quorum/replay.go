package quorum

import (
	"encoding/binary"
	"fmt"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/barnabas-mq/barnabas/internal/kv"
)

// Visit gives what a stopped node's store holds to its callers, in order: the
// snapshot, then every entry with data. It changes nothing and elects nobody.
func Visit(db *kv.DB, snapshot func(data []byte, index, term uint64) error, entry func(index, term uint64, committed bool, data []byte) error) error {
	s := &store{db: db}
	fresh, err := s.load()
	if err != nil {
		return fmt.Errorf("read metadata log: %w", err)
	}
	if fresh {
		return nil
	}
	data, err := s.readSnapshot()
	if err != nil {
		return fmt.Errorf("read metadata log: %w", err)
	}
	if err := snapshot(data, s.snap.index, s.snap.term); err != nil {
		return err
	}
	var bad error
	err = db.Scan(entryPrefix, func(key, value []byte) bool {
		var e *raftpb.Entry
		if e, bad = decodeEntry(key, value); bad != nil {
			return false
		}
		if e.GetIndex() > s.snap.index && len(e.GetData()) > 0 {
			bad = entry(e.GetIndex(), e.GetTerm(), e.GetIndex() <= s.hard.commit, e.GetData())
		}
		return bad == nil
	})
	if err == nil {
		err = bad
	}
	return err
}

// End is the index of the last entry that a stopped node's store holds, 0 when it
// holds no log. Nothing but the ends are read.
func End(db *kv.DB) (index uint64, err error) {
	meta, ok, err := db.Get(metaKey)
	if err != nil || !ok {
		return 0, err
	}
	snap, err := decodeMeta(meta)
	if err != nil {
		return 0, err
	}
	key, err := db.Last(entryPrefix)
	if err != nil || len(key) != len(entryPrefix)+8 {
		return snap.index, err
	}
	return max(snap.index, binary.BigEndian.Uint64(key[len(entryPrefix):])), nil
}
