package batch

import (
	"errors"
	"io"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/barnabas-mq/barnabas/protocol"
)

var (
	errRecordEnds  error = protocol.Errorf(kerr.InvalidRecord, "a record goes beyond the end of its batch")
	errFieldEnds   error = protocol.Errorf(kerr.InvalidRecord, "a field goes beyond the end of its record")
	errVarint      error = protocol.Errorf(kerr.InvalidRecord, "a variable-length number is longer than its type")
	errHeaders     error = protocol.Errorf(kerr.InvalidRecord, "a record has a negative number of headers")
	errHeaderKey   error = protocol.Errorf(kerr.InvalidRecord, "a header has no key")
	errRecordLeft  error = protocol.Errorf(kerr.InvalidRecord, "a record is longer than its fields")
	errRecordsLeft error = protocol.Errorf(kerr.InvalidRecord, "bytes are left after the last record of the batch")
)

// cursor walks over the bytes of records: over a slice when src is nil, else
// over a window that is refilled from src. An absolute position is base+pos.
type cursor struct {
	b    []byte
	pos  int
	base int
	src  io.Reader
	// limit bounds the bytes taken from src.
	limit int
}

func (c *cursor) at() int { return c.base + c.pos }

// refill replaces the window, all of which has been consumed.
func (c *cursor) refill() error {
	if c.src == nil {
		return errRecordEnds
	}
	c.base += len(c.b)
	c.pos = 0
	c.b = c.b[:0]
	for range maxEmptyReads {
		n, err := c.src.Read(c.b[:cap(c.b)])
		if n > 0 {
			c.b = c.b[:n]
			if c.base+n > c.limit {
				return tooLarge(c.limit)
			}
			return nil
		}
		if errors.Is(err, io.EOF) {
			return errRecordEnds
		}
		if err != nil {
			return decodeError(err)
		}
	}
	return decodeError(io.ErrNoProgress)
}

// maxEmptyReads bounds how often a decompressor may return nothing in a row.
const maxEmptyReads = 100

func (c *cursor) byte() (byte, error) {
	if c.pos == len(c.b) {
		if err := c.refill(); err != nil {
			return 0, err
		}
	}
	b := c.b[c.pos]
	c.pos++
	return b, nil
}

// varint reads a zigzag number of at most 32 bits.
func (c *cursor) varint() (int32, error) {
	if c.pos < len(c.b) {
		if b := c.b[c.pos]; b < 0x80 {
			c.pos++
			return int32(b>>1) ^ -int32(b&1), nil
		}
	}
	u, err := c.uvarint(32)
	return int32(uint32(u)>>1) ^ -int32(u&1), err
}

// varlong reads a zigzag number of at most 64 bits.
func (c *cursor) varlong() (int64, error) {
	u, err := c.uvarint(64)
	return int64(u>>1) ^ -int64(u&1), err
}

func (c *cursor) uvarint(bits uint) (uint64, error) {
	var u uint64
	for shift := uint(0); shift < bits; shift += 7 {
		b, err := c.byte()
		if err != nil {
			return 0, err
		}
		u |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return u, nil
		}
	}
	return 0, errVarint
}

// skip passes over n bytes.
func (c *cursor) skip(n int) error {
	for n > len(c.b)-c.pos {
		n -= len(c.b) - c.pos
		c.pos = len(c.b)
		if err := c.refill(); err != nil {
			return err
		}
	}
	c.pos += n
	return nil
}

// take returns the next n bytes of a cursor over a slice.
func (c *cursor) take(n int) ([]byte, error) {
	if n > len(c.b)-c.pos {
		return nil, errRecordEnds
	}
	b := c.b[c.pos : c.pos+n : c.pos+n]
	c.pos += n
	return b, nil
}

// appendNext appends the next n bytes to dst, which grows as they arrive.
func (c *cursor) appendNext(dst []byte, n int) ([]byte, error) {
	for n > 0 {
		if c.pos == len(c.b) {
			if err := c.refill(); err != nil {
				return dst, err
			}
		}
		part := c.b[c.pos:min(len(c.b), c.pos+n)]
		if len(dst)+len(part) > cap(dst) {
			grown := make([]byte, len(dst), min(max(2*cap(dst), windowSize), len(dst)+n))
			copy(grown, dst)
			dst = grown
		}
		dst = append(dst, part...)
		c.pos += len(part)
		n -= len(part)
	}
	return dst, nil
}

// atEnd returns an error when anything is left.
func (c *cursor) atEnd() error {
	if c.pos < len(c.b) {
		return errRecordsLeft
	}
	if c.src == nil {
		return nil
	}
	switch err := c.refill(); {
	case err == errRecordEnds:
		return nil
	case err != nil:
		return err
	}
	return errRecordsLeft
}

func tooLarge(limit int) error {
	return protocol.Errorf(kerr.MessageTooLarge, "the records are larger than %d bytes when decompressed", limit)
}

func decodeError(err error) error {
	var coded *protocol.Error
	if errors.As(err, &coded) {
		return err
	}
	return protocol.Errorf(kerr.InvalidRecord, "decompress the records: %w", err)
}
