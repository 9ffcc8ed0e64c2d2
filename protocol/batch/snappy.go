package batch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/snappy"
)

// Java clients wrap snappy blocks in the framing of xerial's snappy-java: this
// magic, version 1, lowest compatible version 1, then blocks, each behind its
// length. Others (librdkafka, Sarama) send one raw block.
var xerialMagic = []byte{0x82, 'S', 'N', 'A', 'P', 'P', 'Y', 0}

const (
	xerialHeaderSize = 16
	// xerialBlock is the piece that snappy-java compresses at once.
	xerialBlock = 32 << 10
	// snappyMaxRatio bounds what a block may expand to: the format's densest
	// element is a copy of 64 bytes in three, so an honest length is below it,
	// and a lying one costs no more memory than the frame's size times this.
	snappyMaxRatio = 32
)

var errSnappy = errors.New("snappy: bad block length")

// snappyReader decodes xerial framing block by block, or one raw block. It
// refers to its source as long as it is not reset.
type snappyReader struct {
	src []byte
	// limit is what a block may expand to.
	limit  int
	framed bool
	out    []byte // what is decoded and not yet read
	buf    []byte // space that out lies in
}

func (s *snappyReader) reset(src []byte, limit int) {
	s.framed = isXerial(src)
	if s.framed {
		src = src[xerialHeaderSize:]
	}
	s.src, s.out, s.limit = src, nil, limit
	if cap(s.buf) > 4*xerialBlock {
		s.buf = nil
	}
}

func isXerial(src []byte) bool {
	return len(src) >= xerialHeaderSize && bytes.HasPrefix(src, xerialMagic)
}

func (s *snappyReader) Read(p []byte) (int, error) {
	for len(s.out) == 0 {
		if len(s.src) == 0 {
			return 0, io.EOF
		}
		if err := s.nextBlock(); err != nil {
			return 0, err
		}
	}
	n := copy(p, s.out)
	s.out = s.out[n:]
	return n, nil
}

func (s *snappyReader) nextBlock() error {
	block := s.src
	if s.framed {
		if isXerial(s.src) { // another stream behind the first
			s.src = s.src[xerialHeaderSize:]
		}
		if len(s.src) < 4 { // as in snappy-java, no block
			s.src = nil
			return nil
		}
		size := int(binary.BigEndian.Uint32(s.src))
		if size > len(s.src)-4 {
			return errSnappy
		}
		block = s.src[4 : 4+size]
		s.src = s.src[4+size:]
	} else {
		s.src = nil
	}
	decoded, err := snappyDecodedLen(block)
	if err != nil {
		return err
	}
	if decoded > s.limit {
		return tooLarge(s.limit)
	}
	if cap(s.buf) < decoded {
		s.buf = make([]byte, decoded)
	}
	s.out, err = snappy.DecodeStrict(s.buf[:cap(s.buf)], block)
	return err
}

// snappyDecodedLen is the length that a block announces, if it can be true.
func snappyDecodedLen(block []byte) (int, error) {
	n, err := s2.DecodedLen(block)
	if err != nil {
		return 0, err
	}
	if n > snappyMaxRatio*len(block) {
		return 0, errSnappy
	}
	return n, nil
}

func snappyWorkingBytes(src []byte) int {
	if isXerial(src) {
		return snappyMaxRatio * min(len(src), 2*xerialBlock)
	}
	n, err := snappyDecodedLen(src)
	if err != nil {
		return 0
	}
	return n
}

// snappyWriter writes xerial framing.
type snappyWriter struct {
	dst     io.Writer
	started bool
	pending []byte
	block   []byte
}

// Reset starts another stream.
func (s *snappyWriter) Reset(dst io.Writer) {
	s.dst, s.pending, s.started = dst, s.pending[:0], false
}

func (s *snappyWriter) start() error {
	header := make([]byte, xerialHeaderSize)
	copy(header, xerialMagic)
	binary.BigEndian.PutUint32(header[8:], 1)
	binary.BigEndian.PutUint32(header[12:], 1)
	s.started = true
	_, err := s.dst.Write(header)
	return err
}

func (s *snappyWriter) Write(p []byte) (int, error) {
	written := 0
	for len(p) > 0 {
		n := min(len(p), xerialBlock-len(s.pending))
		s.pending = append(s.pending, p[:n]...)
		p = p[n:]
		written += n
		if len(s.pending) == xerialBlock {
			if err := s.flush(); err != nil {
				return written, err
			}
		}
	}
	return written, nil
}

func (s *snappyWriter) flush() error {
	if !s.started {
		if err := s.start(); err != nil {
			return err
		}
	}
	if len(s.pending) == 0 {
		return nil
	}
	if s.block == nil {
		s.block = make([]byte, 4+s2.MaxEncodedLen(xerialBlock))
	}
	encoded := s2.EncodeSnappy(s.block[4:], s.pending)
	binary.BigEndian.PutUint32(s.block, uint32(len(encoded)))
	s.pending = s.pending[:0]
	_, err := s.dst.Write(s.block[:4+len(encoded)])
	return err
}

func (s *snappyWriter) Close() error { return s.flush() }
