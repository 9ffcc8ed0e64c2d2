package protocol

import (
	"encoding/binary"
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// DecodeRequest decodes a request's body. Every array's announced length is
// held against the bytes that are left before anything is allocated. Strings
// are copied; []byte fields point into body. Bytes after the request's last
// field are ignored, as Kafka ignores them.
func DecodeRequest(h Header, body []byte) (kmsg.Request, error) {
	if !known(h.Key, h.Version) {
		return nil, fmt.Errorf("decode %s: version %d is not known", Name(h.Key), h.Version)
	}
	req := kmsg.RequestForKey(h.Key)
	return req, DecodeInto(req, h, body)
}

// DecodeInto is DecodeRequest for a request that the caller has made.
func DecodeInto(req kmsg.Request, h Header, body []byte) error {
	if h.Version < 0 || h.Version > req.MaxVersion() {
		return fmt.Errorf("decode %s: version %d is not known", Name(h.Key), h.Version)
	}
	req.SetVersion(h.Version)
	if err := req.ReadFrom(body); err != nil {
		return fmt.Errorf("decode %s v%d: %w", Name(h.Key), h.Version, err)
	}
	return nil
}

// DecodedSize looks over the body of a request. The bytes of records and other
// []byte fields are not counted: they stay in the frame. Of a malformed body it
// counts what is decoded before the fault is found.
func DecodedSize(h Header, body []byte) Size {
	if !known(h.Key, h.Version) {
		return Size{}
	}
	l := layoutOf(h.Key, h.Version)
	if l == nil {
		return Size{Bytes: len(body) * fallbackFactor, Elements: len(body)}
	}
	s := sizer{reader: reader{b: body, flexible: l.flexible}, Size: Size{Bytes: l.root.sizeBytes}}
	s.structure(l.root)
	return s.Size
}

// AppendResponse appends a whole response frame, its 4-byte size included.
func AppendResponse(dst []byte, h Header, resp kmsg.Response) []byte {
	start := len(dst)
	dst = AppendResponseHeader(dst, h)
	resp.SetVersion(h.Version)
	dst = resp.AppendTo(dst)
	SetFrameSize(dst[start:], len(dst)-start-4)
	return dst
}

// AppendResponseHeader appends 4 bytes for the size, which SetFrameSize fills
// once it is known, and the header.
func AppendResponseHeader(dst []byte, h Header) []byte {
	dst = append(dst, 0, 0, 0, 0)
	dst = binary.BigEndian.AppendUint32(dst, uint32(h.CorrelationID))
	if ResponseIsFlexible(h.Key, h.Version) {
		dst = append(dst, 0)
	}
	return dst
}

// SetFrameSize writes the size that a frame starts with.
func SetFrameSize(frame []byte, sizeBytes int) {
	binary.BigEndian.PutUint32(frame, uint32(sizeBytes))
}
