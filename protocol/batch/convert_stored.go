package batch

import (
	"encoding/binary"
	"errors"
	"io"
	"math"
)

// ConvertStored makes a record batch of what a log of message format v0 or v1
// holds: whole messages, all plain or one wrapper, which keep their offsets and
// timestamps, as the log may have been compacted. The batch is compressed as the
// wrapper was; leaderEpoch is what such a log does not know. It takes as much as
// goes into one batch and returns the rest.
func ConvertStored(set []byte, leaderEpoch int32, maxDecodedBytes int) (v View, rest []byte, err error) {
	offset, raw, rest, err := nextMessage(set)
	if err != nil {
		return nil, set, err
	}
	first, err := storedMessage(offset, raw)
	if err != nil {
		return nil, set, err
	}
	s := storedConverter{b: NewBuilder(BuilderOptions{LeaderEpoch: leaderEpoch, Codec: first.codec()})}
	if first.codec() == None {
		rest, err = s.addPlain(set)
	} else {
		err = s.addWrapper(&first, maxDecodedBytes)
	}
	if err != nil {
		return nil, set, err
	}
	return s.finish(), rest, nil
}

// maxStoredBytes is where a batch of plain messages ends: large enough to be worth
// its header, small enough to be read at once.
const maxStoredBytes = 64 << 10

type storedConverter struct {
	b           *Builder
	first, last int64
	// appendTime is set for a wrapper whose time counts for all messages.
	appendTimeMs int64
}

func storedMessage(offset int64, raw []byte) (message, error) {
	if err := checkMessageCRC(raw); err != nil {
		return message{}, err
	}
	return parseMessage(offset, raw)
}

// addPlain takes messages until one is compressed, of another format or too much.
func (s *storedConverter) addPlain(set []byte) (rest []byte, err error) {
	var magic int8
	for rest = set; len(rest) > LogOverhead+posMessageMagic; {
		if n := s.b.Len(); n > 0 && (PeekMagic(rest) != magic || s.b.SizeBytes() > maxStoredBytes) {
			return rest, nil
		}
		offset, raw, after, err := nextMessage(rest)
		if errors.Is(err, ErrTruncated) && s.b.Len() > 0 {
			return rest, nil
		}
		if err != nil {
			return nil, err
		}
		m, err := storedMessage(offset, raw)
		if err != nil {
			return nil, err
		}
		if s.b.Len() > 0 && (m.codec() != None || offset-s.first > math.MaxInt32 || s.isAppendTime(&m)) {
			return rest, nil
		}
		magic = m.magic
		if s.isAppendTime(&m) {
			s.appendTimeMs = m.timestampMs
		}
		if err := s.add(offset, &m); err != nil {
			return nil, err
		}
		rest = after
		if s.appendTimeMs != 0 {
			// Each has a time of its own, which only a batch of its own can say.
			return rest, nil
		}
	}
	return rest, nil
}

func (s *storedConverter) isAppendTime(m *message) bool { return m.timestampType() == LogAppendTime }

// addWrapper takes the messages inside a wrapper. Their offsets are absolute in v0
// and relative in v1, where the wrapper's offset is that of the last one.
func (s *storedConverter) addWrapper(wrapper *message, maxDecodedBytes int) error {
	if maxDecodedBytes <= 0 {
		maxDecodedBytes = DefaultMaxDecodedBytes
	}
	if s.isAppendTime(wrapper) {
		s.appendTimeMs = wrapper.timestampMs
	}
	base := int64(0)
	if wrapper.magic > 0 {
		last, err := lastInside(wrapper, maxDecodedBytes)
		if err != nil {
			return err
		}
		base = wrapper.offset - last
	}
	return eachInside(wrapper, maxDecodedBytes, func(offset int64, raw []byte) error {
		m, err := storedMessage(offset, raw)
		if err != nil {
			return err
		}
		if m.codec() != None || m.magic != wrapper.magic {
			return invalid("a message inside a compressed one is compressed itself, or of another format")
		}
		return s.add(base+offset, &m)
	})
}

// lastInside is the offset of the last message inside a wrapper, as it stands
// there.
func lastInside(wrapper *message, limit int) (last int64, err error) {
	err = eachInside(wrapper, limit, func(offset int64, _ []byte) error {
		last = offset
		return nil
	})
	return last, err
}

func eachInside(wrapper *message, limit int, fn func(offset int64, raw []byte) error) error {
	in, done, err := openWrapper(wrapper, limit)
	if err != nil {
		return err
	}
	defer done()
	for seen := 0; ; seen++ {
		offset, raw, err := in.next()
		switch {
		case err == io.EOF && seen == 0:
			return invalid("a compressed message has no messages inside")
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
		if err := fn(offset, raw); err != nil {
			return err
		}
	}
}

// add appends a message as a record at its own offset.
func (s *storedConverter) add(offset int64, m *message) error {
	b := s.b
	if b.n == 0 {
		s.first, b.baseTs, b.maxTs = offset, m.timestampMs, m.timestampMs
	} else if offset <= s.last || offset-s.first > math.MaxInt32 {
		return ErrCorrupt
	}
	s.last = offset
	b.maxTs = max(b.maxTs, m.timestampMs)
	b.body = appendRecord(b.body[:0], m.timestampMs-b.baseTs, int32(offset-s.first), m.key, m.value, nil)
	b.records = append(binary.AppendVarint(b.records, int64(len(b.body))), b.body...)
	b.n++
	return nil
}

func (s *storedConverter) finish() View {
	s.b.o.BaseOffset, s.b.o.AppendTimeMs = s.first, s.appendTimeMs
	v := s.b.Build()
	binary.BigEndian.PutUint32(v[posLastOffsetDelta:], uint32(s.last-s.first))
	v.updateCRC()
	return v
}
