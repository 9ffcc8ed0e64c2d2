package batch

import (
	"fmt"
	"math"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/barnabas-mq/barnabas/protocol"
)

// Options is what a topic asks of a batch that a client sends.
type Options struct {
	// Topic and Partition are for error messages.
	Topic     string
	Partition int32
	// NowMs is the time that timestamps are held against, and the timestamp
	// with LogAppendTime. 0 leaves timestamps unchecked.
	NowMs int64
	// TimestampBeforeMaxMs and TimestampAfterMaxMs are
	// message.timestamp.before.max.ms and message.timestamp.after.max.ms.
	TimestampBeforeMaxMs, TimestampAfterMaxMs int64
	// LogAppendTime is message.timestamp.type=LogAppendTime.
	LogAppendTime bool
	// Compacted asks for a key on every record.
	Compacted bool
	// Recompress asks Prepare to store the records in Codec at Level (0: the
	// codec's default); without it the producer's choice stays.
	Recompress bool
	Codec      Codec
	Level      int
	// MaxMessageBytes is max.message.bytes, checked before and after
	// recompression; 0 is no limit.
	MaxMessageBytes int
	// MaxDecodedBytes bounds decompression; 0 is DefaultMaxDecodedBytes.
	MaxDecodedBytes int
	// NoZstd refuses zstd, which Produce before v7 can't carry (KIP-110).
	NoZstd bool
	// AnyBaseOffset accepts a base offset other than a client's 0, and Control
	// accepts control batches: for what the broker itself writes.
	AnyBaseOffset, Control bool
}

// Summary is what a walk over a batch's records found.
type Summary struct {
	NumRecords int32
	// MaxTimestampMs is the largest timestamp, NoTimestamp when there is none;
	// MaxTimestampDelta is the offset delta of the first record that has it.
	MaxTimestampMs    int64
	MaxTimestampDelta int32
	// RecordBytes is the size of the records uncompressed.
	RecordBytes int
}

// RecordError says what is wrong with one record of a batch.
type RecordError struct {
	// Index is the record's place in its batch.
	Index int32
	Msg   string
}

// InvalidRecordsError names the records for which a batch was refused, as
// Produce v8 and later answer them (KIP-467).
type InvalidRecordsError struct {
	Err     *protocol.Error
	Records []RecordError
}

func (e *InvalidRecordsError) Error() string { return e.Err.Error() }

// Unwrap gives protocol.Code the code.
func (e *InvalidRecordsError) Unwrap() error { return e.Err }

// maxRecordErrors bounds the list of one answer: about 16 KiB of text.
const maxRecordErrors = 100

// Validate checks a batch as a broker must before it stores it: size, checksum,
// header against records, and every record by a streaming walk that needs
// WorkingBytes of memory at most. It changes nothing.
func Validate(v View, o Options) (Summary, error) {
	if err := validateHeader(v, o); err != nil {
		return Summary{}, err
	}
	if v.Codec() == None {
		return validateRecords(v, o, &cursor{b: v.records()})
	}
	d, r, err := openRecords(v, o.maxDecodedBytes())
	if err != nil {
		return Summary{}, err
	}
	defer d.close()
	c := d.cursor(r, o.maxDecodedBytes())
	return validateRecords(v, o, &c)
}

func (o *Options) maxDecodedBytes() int {
	if o.MaxDecodedBytes > 0 {
		return o.MaxDecodedBytes
	}
	return DefaultMaxDecodedBytes
}

// validateHeader checks in Kafka's order, so that a batch with two faults gets
// the error that Kafka gives.
func validateHeader(v View, o Options) error {
	if len(v) < HeaderSize || v.SizeBytes() != len(v) || v.Magic() != 2 {
		return ErrCorrupt
	}
	if o.NoZstd && v.Codec() == Zstd {
		return protocol.Errorf(kerr.UnsupportedCompressionType, "zstd needs Produce v7 or newer")
	}
	if !o.AnyBaseOffset && v.BaseOffset() != 0 {
		return invalid("the base offset of a produced batch is 0, not %d", v.BaseOffset())
	}
	if o.MaxMessageBytes > 0 && len(v) > o.MaxMessageBytes {
		return batchTooLarge(len(v), o.MaxMessageBytes)
	}
	if crc := v.ComputeCRC(); crc != v.CRC() {
		return protocol.Errorf(kerr.CorruptMessage, "the stored checksum is %08x, the computed one %08x", v.CRC(), crc)
	}
	n, last := v.NumRecords(), v.LastOffsetDelta()
	switch {
	case last < 0:
		return invalid("the last offset delta is %d", last)
	case n <= 0:
		return invalid("the batch has a count of %d records", n)
	case n-1 != last:
		return invalid("the batch has a count of %d records and a last offset delta of %d", n, last)
	case v.IsControl() && !o.Control:
		return invalid("clients are not allowed to write control records")
	case v.HasProducerID() && v.BaseSequence() < 0 && !v.IsControl():
		return invalid("the batch has producer id %d and sequence number %d", v.ProducerID(), v.BaseSequence())
	}
	return nil
}

func invalid(format string, args ...any) error {
	return protocol.Errorf(kerr.InvalidRecord, format, args...)
}

// validateRecords walks over the records; c stands at the first.
func validateRecords(v View, o Options, c *cursor) (Summary, error) {
	s := Summary{NumRecords: v.NumRecords(), MaxTimestampMs: NoTimestamp}
	w := walker{v: v, c: c}
	var bad rejected
	var r skimmed
	for i := range v.NumRecords() {
		if err := w.next(&r); err != nil {
			return s, err
		}
		if r.offsetDelta != i {
			return s, invalid("record %d has offset delta %d", i, r.offsetDelta)
		}
		ts := w.timestamp(r.timestampDelta)
		if ts > s.MaxTimestampMs {
			s.MaxTimestampMs, s.MaxTimestampDelta = ts, i
		}
		switch {
		case r.nullKey && o.Compacted:
			o.refuseNullKey(i, &bad)
		case o.NowMs != 0:
			o.checkTimestamp(v.TimestampType(), i, ts, &bad)
		}
	}
	s.RecordBytes = c.at()
	if err := c.atEnd(); err != nil {
		return s, err
	}
	return s, bad.err()
}

func (o *Options) refuseNullKey(index int32, bad *rejected) {
	bad.add(index, false, fmt.Sprintf("Compacted topic cannot accept message without key in topic partition %s-%d.", o.Topic, o.Partition))
}

// checkTimestamp holds a record's timestamp, of the type that its batch has,
// against the topic's limits (KIP-937).
func (o *Options) checkTimestamp(t TimestampType, index int32, ts int64, bad *rejected) {
	if o.LogAppendTime || ts == NoTimestamp {
		if t == LogAppendTime {
			bad.add(index, true, "Producer should not set timestamp type to LogAppendTime.")
		}
		return
	}
	// The differences are computed without sign: they may not fit int64.
	early := ts < o.NowMs && uint64(o.NowMs)-uint64(ts) > uint64(o.TimestampBeforeMaxMs)
	late := ts > o.NowMs && uint64(ts)-uint64(o.NowMs) > uint64(o.TimestampAfterMaxMs)
	if early || late {
		first, last := o.NowMs-o.TimestampBeforeMaxMs, o.NowMs+min(o.TimestampAfterMaxMs, math.MaxInt64-o.NowMs)
		bad.add(index, true, fmt.Sprintf("Timestamp %d of message with offset %d is out of range. The timestamp should be within [%d, %d]",
			ts, index, first, last))
	}
}

// rejected collects records' errors.
type rejected struct {
	n              int
	firstTimestamp bool
	records        []RecordError
}

func (r *rejected) add(index int32, timestamp bool, msg string) {
	if r.n == 0 {
		r.firstTimestamp = timestamp
	}
	r.n++
	if len(r.records) < maxRecordErrors {
		r.records = append(r.records, RecordError{Index: index, Msg: msg})
	}
}

// err is nil when nothing was rejected. The first record decides the code.
func (r *rejected) err() error {
	if r.n == 0 {
		return nil
	}
	code, msg := kerr.InvalidTimestamp, "One or more records have been rejected due to invalid timestamp"
	if !r.firstTimestamp {
		code = kerr.InvalidRecord
		first := make([]string, 0, 3)
		for _, e := range r.records[:min(3, len(r.records))] {
			first = append(first, fmt.Sprintf("RecordError(batchIndex=%d, message='%s')", e.Index, e.Msg))
		}
		msg = fmt.Sprintf("One or more records have been rejected due to %d record errors in total, and only showing the first three errors at most: [%s]",
			r.n, strings.Join(first, ", "))
	}
	return &InvalidRecordsError{Err: protocol.Errorf(code, "%s", msg), Records: r.records}
}
