package batch

import (
	"encoding/binary"
	"hash/crc32"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/barnabas-mq/barnabas/protocol"
)

// Message formats v0 and v1, which clients before Kafka 0.11 speak. A message set
// is messages one after another, each behind an offset and a size:
//
//	crc uint32 (IEEE, over all that follows), magic int8, attributes int8,
//	timestamp int64 (v1 only), key, value (each behind an int32 length, -1: null)
//
// Compressed messages are a set inside the value of one wrapper message. Their
// offsets are absolute in v0 and relative to the first of them in v1; the
// wrapper's offset is that of the last one.
const (
	posMessageCRC        = 0
	posMessageMagic      = 4
	posMessageAttributes = 5
	posMessageTimestamp  = 6

	// messageHeadV0 and messageHeadV1 are the sizes up to the key's length.
	messageHeadV0 = 6
	messageHeadV1 = 14
	// minMessageBytes is an empty message of v0.
	minMessageBytes = messageHeadV0 + 4 + 4
)

// message is one message of a set. Key and value alias the set.
type message struct {
	offset      int64
	magic       int8
	attributes  int8
	timestampMs int64
	key, value  []byte
}

func (m *message) codec() Codec { return Codec(m.attributes & attrCodec) }

// timestampType is CreateTime for v0, which has none.
func (m *message) timestampType() TimestampType {
	if m.magic > 0 && m.attributes&attrLogAppendTime != 0 {
		return LogAppendTime
	}
	return CreateTime
}

// PeekMagic is the message format that b begins with, -1 when it is too short to
// say.
func PeekMagic(b []byte) int8 {
	if len(b) <= posMagic {
		return -1
	}
	return int8(b[posMagic])
}

// nextMessage splits the first message, from its CRC on, off a set. ErrTruncated
// says that it is incomplete, as the last of a set may be.
func nextMessage(set []byte) (offset int64, raw, rest []byte, err error) {
	if len(set) < LogOverhead {
		return 0, nil, nil, ErrTruncated
	}
	size, err := messageSize(set)
	if err != nil {
		return 0, nil, nil, err
	}
	if size > len(set)-LogOverhead {
		return 0, nil, nil, ErrTruncated
	}
	end := LogOverhead + size
	return int64(binary.BigEndian.Uint64(set)), set[LogOverhead:end:end], set[end:], nil
}

// messageSize is the size that stands before a message.
func messageSize(head []byte) (int, error) {
	size := int32(binary.BigEndian.Uint32(head[posLength:]))
	if size < minMessageBytes {
		return 0, protocol.Errorf(kerr.CorruptMessage, "a message has a size of %d bytes, which is less than any has", size)
	}
	return int(size), nil
}

// checkMessageCRC holds a message against its checksum.
func checkMessageCRC(raw []byte) error {
	stored, computed := binary.BigEndian.Uint32(raw[posMessageCRC:]), crc32.ChecksumIEEE(raw[posMessageMagic:])
	if stored != computed {
		return protocol.Errorf(kerr.CorruptMessage, "the stored checksum of a message is %08x, the computed one %08x", stored, computed)
	}
	return nil
}

// parseMessage reads a message of format v0 or v1 of at least minMessageBytes.
// Bytes behind its value are ignored, as Kafka ignores them.
func parseMessage(offset int64, raw []byte) (message, error) {
	m := message{offset: offset, magic: int8(raw[posMessageMagic]), attributes: int8(raw[posMessageAttributes]), timestampMs: NoTimestamp}
	rest := raw[messageHeadV0:]
	switch {
	case m.magic < 0 || m.magic > 1:
		return m, ErrCorrupt
	case m.magic == 1:
		if len(raw) < messageHeadV1 {
			return m, errFieldEnds
		}
		m.timestampMs = int64(binary.BigEndian.Uint64(raw[posMessageTimestamp:]))
		rest = raw[messageHeadV1:]
	}
	var err error
	if m.key, rest, err = messageField(rest); err != nil {
		return m, err
	}
	m.value, _, err = messageField(rest)
	return m, err
}

func messageField(b []byte) (field, rest []byte, err error) {
	if len(b) < 4 {
		return nil, nil, errFieldEnds
	}
	n, b := int32(binary.BigEndian.Uint32(b)), b[4:]
	if n < 0 {
		return nil, b, nil
	}
	if int(n) > len(b) {
		return nil, nil, errFieldEnds
	}
	return b[:n:n], b[n:], nil
}

// maxInnerBytes bounds one message inside a wrapper, which has to be in memory
// whole. Clients build a message before they compress it and send at most
// socket.request.max.bytes, 100 MiB by default.
const maxInnerBytes = 64 << 20

// messageBytes is the size of a message with its offset and size.
func messageBytes(magic int8, keyLen, valueLen int) int {
	head := messageHeadV0
	if magic > 0 {
		head = messageHeadV1
	}
	return LogOverhead + head + 4 + keyLen + 4 + valueLen
}

// appendMessage appends a message with its offset and size to dst.
func appendMessage(dst []byte, m *message) []byte {
	start := len(dst)
	dst = appendMessageHead(dst, m)
	dst = appendMessageField(dst, m.key)
	dst = appendMessageField(dst, m.value)
	finishMessage(dst[start:])
	return dst
}

// appendMessageHead appends what stands before the key; size and CRC are left to
// finishMessage.
func appendMessageHead(dst []byte, m *message) []byte {
	dst = binary.BigEndian.AppendUint64(dst, uint64(m.offset))
	dst = append(dst, 0, 0, 0, 0, 0, 0, 0, 0, byte(m.magic), byte(m.attributes))
	if m.magic > 0 {
		dst = binary.BigEndian.AppendUint64(dst, uint64(m.timestampMs))
	}
	return dst
}

func appendMessageField(dst, field []byte) []byte {
	return append(appendMessageFieldLength(dst, field), field...)
}

func appendMessageFieldLength(dst, field []byte) []byte {
	if field == nil {
		return append(dst, 0xff, 0xff, 0xff, 0xff)
	}
	return binary.BigEndian.AppendUint32(dst, uint32(len(field)))
}

// finishMessage writes size and CRC of a message that is complete.
func finishMessage(b []byte) {
	binary.BigEndian.PutUint32(b[posLength:], uint32(len(b)-LogOverhead))
	raw := b[LogOverhead:]
	binary.BigEndian.PutUint32(raw[posMessageCRC:], crc32.ChecksumIEEE(raw[posMessageMagic:]))
}
