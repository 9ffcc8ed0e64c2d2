package batch

import (
	"errors"
	"io"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/barnabas-mq/barnabas/protocol"
)

// innerMessages reads the messages inside a wrapper one by one, so that no more
// than the largest of them is in memory.
type innerMessages struct {
	r io.Reader
	// left is how many more bytes may come out of the decompressor, limit how
	// many might at first.
	left, limit int
	buf         []byte
}

// openWrapper starts reading the messages inside wrapper; close must be called.
func openWrapper(wrapper *message, limit int) (in *innerMessages, close func(), err error) {
	codec, src := wrapper.codec(), wrapper.value
	if src == nil {
		return nil, nil, invalid("a wrapper message has no value")
	}
	switch {
	case codec == Zstd:
		return nil, nil, protocol.Errorf(kerr.InvalidRecord, "message format v%d has no zstd", wrapper.magic)
	case codec == LZ4 && wrapper.magic == 0:
		src = rightLZ4Checksum(src)
	}
	d, r, err := openCompressed(codec, src, limit)
	if err != nil {
		return nil, nil, err
	}
	return &innerMessages{r: r, left: limit, limit: limit}, d.close, nil
}

func tooLargeInside(sizeBytes int) error {
	return protocol.Errorf(kerr.MessageTooLarge, "a message of %d bytes is in a wrapper; the limit is %d", sizeBytes, maxInnerBytes)
}

// next is the next message from its CRC on, valid until the next call. It returns
// io.EOF at the end. As in Kafka an incomplete message there counts for nothing.
func (in *innerMessages) next() (offset int64, raw []byte, err error) {
	head, err := in.read(LogOverhead)
	if err != nil {
		return 0, nil, err
	}
	size, err := messageSize(head)
	if err != nil {
		return 0, nil, err
	}
	offset = View(head).BaseOffset()
	raw, err = in.read(size)
	return offset, raw, err
}

// read returns the next n bytes, io.EOF when there are fewer. The buffer grows as
// they arrive: the size that a message announces costs nothing.
func (in *innerMessages) read(n int) ([]byte, error) {
	if n > in.left {
		return nil, tooLarge(in.limit)
	}
	if n > maxInnerBytes {
		return nil, tooLargeInside(n)
	}
	in.buf = in.buf[:0]
	for empty := 0; len(in.buf) < n; {
		if len(in.buf) == cap(in.buf) {
			grown := make([]byte, len(in.buf), min(max(2*cap(in.buf), windowSize), max(n, windowSize)))
			copy(grown, in.buf)
			in.buf = grown
		}
		got, err := in.r.Read(in.buf[len(in.buf):min(n, cap(in.buf))])
		in.buf = in.buf[:len(in.buf)+got]
		switch {
		case got > 0:
			empty = 0
		case errors.Is(err, io.EOF):
			return nil, io.EOF
		case err != nil:
			return nil, decodeError(err)
		default:
			if empty++; empty > maxEmptyReads {
				return nil, decodeError(io.ErrNoProgress)
			}
		}
	}
	in.left -= n
	return in.buf, nil
}
