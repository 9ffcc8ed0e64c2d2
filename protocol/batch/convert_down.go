package batch

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/barnabas-mq/barnabas/protocol"
)

// DownOptions is what an old client's fetch asks for.
type DownOptions struct {
	// Magic is the message format: 0 or 1.
	Magic int8
	// FromOffset is the first wanted offset. Records before it are left out of
	// batches that are not compressed: some clients take what they get. A wrapper
	// is always whole.
	FromOffset int64
	// Set is what the messages are added to, nil for a new set. It is changed.
	Set []byte
	// MaxBytes bounds the set; the first message is given whatever its size.
	MaxBytes int
	// MaxDecodedBytes bounds the decompression of a batch; 0 is
	// DefaultMaxDecodedBytes.
	MaxDecodedBytes int
}

// Down is a message set that was made of batches.
type Down struct {
	Set []byte
	// NumRecords is the number of messages that were added.
	NumRecords int
	// NextOffset is where the batches go on that were not looked at.
	NextOffset int64
}

// ConvertDown makes a message set of format v0 or v1 of stored batches, of which
// the last may be incomplete. Headers and control records have no place in it and
// are left out, so that it may be empty; what transactions wrote is there whether
// they committed or not, as Kafka gives it to clients that know nothing of them.
// A compressed batch becomes a wrapper message in the same codec, other records
// become messages of their own. A batch in zstd, which those formats lack, ends
// the set, and is an error where it is the first. Besides the set one record is in
// memory at a time.
func ConvertDown(batches []byte, o DownOptions) (Down, error) {
	d := downConverter{o: &o, out: Down{Set: o.Set, NextOffset: o.FromOffset}}
	if o.MaxDecodedBytes <= 0 {
		o.MaxDecodedBytes = DefaultMaxDecodedBytes
	}
	for len(batches) > 0 {
		v, rest, err := Next(batches)
		if errors.Is(err, ErrTruncated) {
			break
		}
		full := false
		if err == nil {
			full, err = d.batch(v)
		}
		if full || err != nil && len(d.out.Set) > 0 {
			break
		}
		if err != nil {
			return d.out, err
		}
		d.out.NextOffset = max(d.out.NextOffset, v.NextOffset())
		batches = rest
	}
	return d.out, nil
}

type downConverter struct {
	o   *DownOptions
	out Down
	// record is scratch for a record on its way into a wrapper, head and middle for
	// the small parts of its message.
	record, head, middle []byte
}

// batch adds a batch. full says that not all of it was.
func (d *downConverter) batch(v View) (full bool, err error) {
	switch {
	case v.IsControl() || v.LastOffset() < d.o.FromOffset:
		return false, nil
	case v.Codec() == None:
		return d.messages(v)
	case v.Codec() == Zstd:
		return false, protocol.Errorf(kerr.UnsupportedCompressionType, "message format v%d has no zstd", d.o.Magic)
	case len(d.out.Set) > 0 && len(d.out.Set)+len(v) > d.o.MaxBytes:
		return true, nil
	}
	return d.wrapper(v)
}

// messages adds the records of a batch that is not compressed one by one.
func (d *downConverter) messages(v View) (full bool, err error) {
	c := cursor{b: v.records()}
	w := walker{v: v, c: &c}
	for range v.NumRecords() {
		var r Record
		if err := w.read(&r); err != nil {
			return false, err
		}
		if r.Offset < d.o.FromOffset {
			continue
		}
		size := messageBytes(d.o.Magic, len(r.Key), len(r.Value))
		if len(d.out.Set) > 0 && len(d.out.Set)+size > d.o.MaxBytes {
			return true, nil
		}
		m := d.messageOf(v, &r)
		d.out.Set = appendMessage(d.out.Set, &m)
		d.out.NumRecords++
	}
	return false, nil
}

// messageOf is a record as a message.
func (d *downConverter) messageOf(v View, r *Record) message {
	m := message{offset: r.Offset, magic: d.o.Magic, timestampMs: r.TimestampMs, key: r.Key, value: r.Value}
	if m.magic > 0 && v.TimestampType() == LogAppendTime {
		m.attributes = attrLogAppendTime
	}
	return m
}

// wrapper adds a compressed batch as a set inside one message.
func (d *downConverter) wrapper(v View) (full bool, err error) {
	start := len(d.out.Set)
	head := message{magic: d.o.Magic, attributes: int8(v.Codec())}
	if d.o.Magic > 0 && v.TimestampType() == LogAppendTime {
		head.attributes |= attrLogAppendTime
	}
	w := &appendWriter{b: appendMessageHead(d.out.Set, &head)}
	w.b = appendMessageField(w.b, nil) // wrappers have no key
	value := len(w.b) + 4
	w.b = append(w.b, 0, 0, 0, 0)
	n, lastOffset, maxTs, err := d.compressInner(w, v)
	if err != nil || n == 0 || lastOffset < d.o.FromOffset {
		// Of a compacted batch the wanted records may be gone.
		return false, err
	}
	if d.o.Magic == 0 && v.Codec() == LZ4 {
		wrongLZ4Checksum(w.b[value:])
	}
	b := w.b[start:]
	binary.BigEndian.PutUint64(b, uint64(lastOffset))
	if d.o.Magic > 0 {
		binary.BigEndian.PutUint64(b[LogOverhead+posMessageTimestamp:], uint64(maxTs))
	}
	binary.BigEndian.PutUint32(w.b[value-4:], uint32(len(w.b)-value))
	finishMessage(b)
	if start > 0 && len(w.b) > d.o.MaxBytes {
		d.out.Set = w.b[:start]
		return true, nil
	}
	d.out.Set = w.b
	d.out.NumRecords += n
	return false, nil
}

// compressInner writes every record of v into w as messages, compressed as v is.
// Their offsets are relative to the first of them in v1.
func (d *downConverter) compressInner(w *appendWriter, v View) (n int, lastOffset, maxTs int64, err error) {
	src, r, err := openRecords(v, d.o.MaxDecodedBytes)
	if err != nil {
		return 0, 0, 0, err
	}
	defer src.close()
	z, err := openCompressor(v.Codec(), 0, w)
	if err != nil {
		return 0, 0, 0, err
	}
	defer z.put(v.Codec())
	c := src.cursor(r, d.o.MaxDecodedBytes)
	records := walker{v: v, c: &c}
	var base int64
	maxTs = NoTimestamp
	for range v.NumRecords() {
		var r Record
		if d.record, err = records.stream(&r, d.record); err != nil {
			return 0, 0, 0, err
		}
		if n == 0 && d.o.Magic > 0 {
			base = r.Offset
		}
		lastOffset, maxTs = r.Offset, max(maxTs, r.TimestampMs)
		m := d.messageOf(v, &r)
		m.offset -= base
		if err := d.write(z, &m); err != nil {
			return 0, 0, 0, err
		}
		n++
	}
	return n, lastOffset, maxTs, z.Close()
}

// write writes a message without copying its key and value.
func (d *downConverter) write(z io.Writer, m *message) error {
	head := appendMessageHead(d.head[:0], m)
	head = appendMessageFieldLength(head, m.key)
	middle := appendMessageFieldLength(d.middle[:0], m.value)
	d.head, d.middle = head, middle
	parts := [][]byte{head, m.key, middle, m.value}
	size := 0
	for _, p := range parts {
		size += len(p)
	}
	binary.BigEndian.PutUint32(head[posLength:], uint32(size-LogOverhead))
	crc := crc32.ChecksumIEEE(head[LogOverhead+posMessageMagic:])
	for _, p := range parts[1:] {
		crc = crc32.Update(crc, crc32.IEEETable, p)
	}
	binary.BigEndian.PutUint32(head[LogOverhead+posMessageCRC:], crc)
	for _, p := range parts {
		if _, err := z.Write(p); err != nil {
			return err
		}
	}
	return nil
}
