package batch

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/barnabas-mq/barnabas/protocol"
)

// ConvertUp makes a record batch of a message set of format v0 or v1 that a client
// sends, validated as Prepare validates batches. The messages of a set, or of the
// one wrapper that is the set, become the records of one batch; a message without
// a timestamp becomes a record without one. The batch is compressed as the wrapper
// was, or as the topic asks. The last message may be incomplete: it is left out, as
// Kafka leaves it out. Of a set without a whole message no batch comes, and no
// error.
func ConvertUp(set []byte, o Options) (View, Summary, error) {
	outer, err := lookOver(set, &o)
	if err != nil || outer.n == 0 {
		return nil, Summary{MaxTimestampMs: NoTimestamp}, err
	}
	if outer.n > 1 && outer.codec != None {
		return nil, Summary{}, invalid("a compressed message is not alone in its set")
	}
	u := upConverter{o: &o, magic: outer.magic, codec: outer.codec, maxTs: NoTimestamp}
	if o.Recompress {
		u.codec, u.level = o.Codec, o.Level
	}
	if err := u.open(len(outer.set)); err != nil {
		return nil, Summary{}, err
	}
	defer u.z.put(u.codec)
	if outer.codec == None {
		err = u.addSet(outer.set)
	} else {
		err = u.addWrapper(outer.set)
	}
	if err != nil {
		return nil, Summary{}, err
	}
	return u.finish()
}

// outerMessages is what a look over the outer messages of a set finds.
type outerMessages struct {
	// set is what the whole messages are.
	set   []byte
	n     int
	magic int8
	// codec is that of the last compressed message.
	codec Codec
}

// lookOver checks the size and the checksum of every outer message, in Kafka's
// order.
func lookOver(set []byte, o *Options) (outerMessages, error) {
	var out outerMessages
	for rest := set; ; {
		_, raw, next, err := nextMessage(rest)
		if errors.Is(err, ErrTruncated) {
			return out, nil
		}
		if err != nil {
			return out, err
		}
		size := LogOverhead + len(raw)
		magic := int8(raw[posMessageMagic])
		switch {
		case magic < 0 || magic > 2:
			return out, protocol.Errorf(kerr.CorruptMessage, "message format %d does not exist", magic)
		case o.MaxMessageBytes > 0 && size > o.MaxMessageBytes:
			return out, batchTooLarge(size, o.MaxMessageBytes)
		case out.n > 0 && magic != out.magic:
			return out, invalid("a message of format v%d is in a set of format v%d", magic, out.magic)
		case magic == 2:
			return out, ErrCorrupt
		}
		if err := checkMessageCRC(raw); err != nil {
			return out, err
		}
		if codec := Codec(raw[posMessageAttributes] & attrCodec); codec != None {
			out.codec = codec
		}
		out.magic = magic
		out.n++
		rest = next
		out.set = set[:len(set)-len(rest)]
	}
}

// upConverter writes records into a batch as messages are read.
type upConverter struct {
	o     *Options
	magic int8
	codec Codec
	level int

	w *appendWriter
	z *compressor
	// full is why nothing more is written: the batch became too large. The
	// messages are still checked.
	full        error
	bad         rejected
	n           int32
	baseTs      int64
	maxTs       int64
	maxTsDelta  int32
	recordBytes int
	// Scratch for the small parts of a record.
	length, head, middle []byte
}

func (u *upConverter) open(sizeBytes int) (err error) {
	limit := u.o.MaxMessageBytes
	if limit == 0 {
		limit = HeaderSize + u.o.maxDecodedBytes()
	}
	u.w = &appendWriter{b: make([]byte, HeaderSize, HeaderSize+sizeBytes), max: limit}
	u.z, err = openCompressor(u.codec, u.level, u.w)
	return err
}

// addSet takes the messages of a set that is not compressed.
func (u *upConverter) addSet(set []byte) error {
	for len(set) > 0 {
		offset, raw, rest, err := nextMessage(set)
		if err != nil {
			return err
		}
		m, err := parseMessage(offset, raw)
		if err != nil {
			return err
		}
		u.add(&m)
		set = rest
	}
	return nil
}

// addWrapper takes the messages inside the wrapper that is the set.
func (u *upConverter) addWrapper(set []byte) error {
	offset, raw, _, err := nextMessage(set)
	if err != nil {
		return err
	}
	wrapper, err := parseMessage(offset, raw)
	if err != nil {
		return err
	}
	in, done, err := openWrapper(&wrapper, u.o.maxDecodedBytes())
	if err != nil {
		return err
	}
	defer done()
	var last int64
	for seen := 0; ; seen++ {
		offset, raw, err := in.next()
		switch {
		case err == io.EOF && seen == 0:
			return invalid("a compressed message has no messages inside")
		case err == io.EOF && u.magic > 0 && wrapper.offset != 0 && wrapper.offset < last:
			return invalid("the wrapper's offset %d is less than that of the last message inside, %d", wrapper.offset, last)
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
		last = offset
		if err := u.addInner(&wrapper, offset, raw); err != nil {
			return err
		}
	}
}

func (u *upConverter) addInner(wrapper *message, offset int64, raw []byte) error {
	if magic := int8(raw[posMessageMagic]); magic != u.magic {
		u.bad.add(u.n, false, fmt.Sprintf("A message of format v%d is inside one of v%d.", magic, u.magic))
		u.n++
		return nil
	}
	if err := checkMessageCRC(raw); err != nil {
		return err
	}
	m, err := parseMessage(offset, raw)
	if err != nil {
		return err
	}
	if m.codec() != None {
		return invalid("a message inside a compressed one is compressed itself")
	}
	if wrapper.timestampType() == LogAppendTime {
		m.timestampMs, m.attributes = wrapper.timestampMs, m.attributes|attrLogAppendTime
	} else {
		m.attributes &^= attrLogAppendTime
	}
	u.add(&m)
	return nil
}

// add checks a message and writes it as the next record.
func (u *upConverter) add(m *message) {
	i := u.n
	u.n++
	switch {
	case m.key == nil && u.o.Compacted:
		u.o.refuseNullKey(i, &u.bad)
	case u.o.NowMs != 0 && m.timestampMs < NoTimestamp:
		// As in Kafka no conversion makes a record of one, also where the log's own
		// time would replace it.
		u.bad.add(i, true, fmt.Sprintf("Invalid negative timestamp %d", m.timestampMs))
	case u.o.NowMs != 0:
		u.o.checkTimestamp(m.timestampType(), i, m.timestampMs, &u.bad)
	}
	if i == 0 {
		u.baseTs = m.timestampMs
	}
	if m.timestampMs > u.maxTs {
		u.maxTs, u.maxTsDelta = m.timestampMs, i
	}
	if u.full != nil || u.bad.n > 0 {
		return
	}
	u.write(m, i)
}

// write writes a record without copying its key and value.
func (u *upConverter) write(m *message, i int32) {
	head := append(u.head[:0], 0) // attributes
	head = binary.AppendVarint(head, m.timestampMs-u.baseTs)
	head = binary.AppendVarint(head, int64(i))
	head = appendFieldLength(head, m.key)
	middle := appendFieldLength(u.middle[:0], m.value)
	const headers = 1 // a zero
	size := len(head) + len(m.key) + len(middle) + len(m.value) + headers
	length := binary.AppendVarint(u.length[:0], int64(size))
	u.head, u.middle, u.length = head, middle, length
	u.recordBytes += len(length) + size
	for _, part := range [][]byte{length, head, m.key, middle, m.value, {0}} {
		if _, u.full = u.z.Write(part); u.full != nil {
			return
		}
	}
}

func appendFieldLength(dst, field []byte) []byte {
	if field == nil {
		return binary.AppendVarint(dst, -1)
	}
	return binary.AppendVarint(dst, int64(len(field)))
}

// finish writes the batch's header.
func (u *upConverter) finish() (View, Summary, error) {
	if err := u.bad.err(); err != nil {
		return nil, Summary{}, err
	}
	if u.full == nil {
		u.full = u.z.Close()
	}
	if u.full != nil {
		return nil, Summary{}, fmt.Errorf("convert from message format v%d: %w", u.magic, u.full)
	}
	b := Builder{o: BuilderOptions{Codec: u.codec}, n: u.n, baseTs: u.baseTs, maxTs: u.maxTs}
	s := Summary{NumRecords: u.n, MaxTimestampMs: u.maxTs, MaxTimestampDelta: u.maxTsDelta, RecordBytes: u.recordBytes}
	if u.o.LogAppendTime {
		b.o.AppendTimeMs = u.o.NowMs
		s.MaxTimestampMs, s.MaxTimestampDelta = u.o.NowMs, 0
	}
	v := View(u.w.b)
	b.writeHeader(v)
	return v, s, nil
}
