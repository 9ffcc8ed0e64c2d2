package quorum

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"go.etcd.io/raft/v3/raftpb"
)

// maxVoters bounds the members that stored bytes may claim.
const maxVoters = 64

// numbers writes a format byte and unsigned varints.
func numbers(values ...uint64) []byte {
	out := []byte{storeFormat}
	for _, v := range values {
		out = binary.AppendUvarint(out, v)
	}
	return out
}

// numberReader is the reverse of numbers; it keeps the first error.
type numberReader struct {
	buf []byte
	err error
}

func readNumbers(value []byte, what string) *numberReader {
	if len(value) == 0 {
		return &numberReader{err: fmt.Errorf("%w: empty %s", errDamagedLog, what)}
	}
	if value[0] != storeFormat {
		return &numberReader{err: fmt.Errorf("%s has format %d, which only a newer version of Barnabas reads", what, value[0])}
	}
	return &numberReader{buf: value[1:]}
}

func (r *numberReader) next() uint64 {
	v, n := binary.Uvarint(r.buf)
	if n <= 0 {
		if r.err == nil {
			r.err = fmt.Errorf("%w: a number is cut", errDamagedLog)
		}
		r.buf = nil
		return 0
	}
	r.buf = r.buf[n:]
	return v
}

func (h hardState) encode() []byte { return numbers(h.term, h.vote, h.commit) }

func decodeHard(value []byte) (h hardState, err error) {
	r := readNumbers(value, "the term")
	h = hardState{term: r.next(), vote: r.next(), commit: r.next()}
	return h, r.err
}

func (m snapshotMeta) encode() []byte {
	return numbers(append([]uint64{
		m.index, m.term, m.sizeBytes, uint64(m.crc), uint64(len(m.voters)),
	}, m.voters...)...)
}

func decodeMeta(value []byte) (m snapshotMeta, err error) {
	r := readNumbers(value, "the snapshot's description")
	m = snapshotMeta{index: r.next(), term: r.next(), sizeBytes: r.next(), crc: uint32(r.next())}
	n := r.next()
	if n > maxVoters {
		return m, fmt.Errorf("%w: %d voters", errDamagedLog, n)
	}
	for range n {
		m.voters = append(m.voters, r.next())
	}
	return m, r.err
}

func encodeEntry(e *raftpb.Entry) []byte {
	return append(numbers(e.GetTerm(), uint64(e.GetType())), e.GetData()...)
}

func decodeEntry(key, value []byte) (*raftpb.Entry, error) {
	index, ok := bytes.CutPrefix(key, entryPrefix)
	if !ok || len(index) != 8 {
		return nil, fmt.Errorf("%w: key %q", errDamagedLog, key)
	}
	r := readNumbers(value, "an entry")
	term, kind := r.next(), r.next()
	if r.err == nil && raftpb.EntryType(kind) != raftpb.EntryNormal {
		r.err = fmt.Errorf("%w: entry type %d", errDamagedLog, kind)
	}
	if r.err != nil {
		return nil, r.err
	}
	return &raftpb.Entry{
		Index: new(binary.BigEndian.Uint64(index)), Term: new(term), Type: raftpb.EntryNormal.Enum(), Data: r.buf,
	}, nil
}
