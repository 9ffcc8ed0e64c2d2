package protocol

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// ApiVersionsKey is the one API whose response header is never flexible: a
// client has to read it before it knows what the broker speaks (KIP-511).
const ApiVersionsKey = int16(kmsg.ApiVersions)

// HeadSize is what every request begins with: key, version, correlation id.
const HeadSize = 8

var (
	errShortHeader = errors.New("the frame ends within its request header")
	errHeaderTags  = errors.New("the tagged fields of the request header are malformed")
)

// Header is a request's header.
type Header struct {
	Key, Version  int16
	CorrelationID int32
	// ClientID is "" when ClientIDNull.
	ClientID     string
	ClientIDNull bool
}

// ParseHeader splits a frame, without its 4-byte size, into header and body. A
// key or version that kmsg doesn't know is no error here: its header is read as
// that of the newest known form.
func ParseHeader(frame []byte) (h Header, body []byte, err error) {
	return ParseHeaderReusing(frame, "")
}

// ParseHeaderReusing is ParseHeader for a connection whose last request had
// this client id: the string is kept instead of made again when it is the same.
func ParseHeaderReusing(frame []byte, clientID string) (h Header, body []byte, err error) {
	if len(frame) < HeadSize+2 {
		return h, nil, errShortHeader
	}
	h.Key = int16(binary.BigEndian.Uint16(frame))
	h.Version = int16(binary.BigEndian.Uint16(frame[2:]))
	h.CorrelationID = int32(binary.BigEndian.Uint32(frame[4:]))
	n := int(int16(binary.BigEndian.Uint16(frame[8:])))
	body = frame[HeadSize+2:]
	switch {
	case n < 0:
		h.ClientIDNull = true
	case n > len(body):
		return h, nil, errShortHeader
	default:
		if h.ClientID = clientID; string(body[:n]) != clientID {
			h.ClientID = string(body[:n])
		}
		body = body[n:]
	}
	if !RequestIsFlexible(h.Key, h.Version) {
		return h, body, nil
	}
	body, err = skipTags(body)
	return h, body, err
}

// skipTags passes over tagged fields: none are defined for request headers that
// a client sends (KIP-482).
func skipTags(b []byte) ([]byte, error) {
	count, n := binary.Uvarint(b)
	if n <= 0 || count > uint64(len(b)) {
		return nil, errHeaderTags
	}
	b = b[n:]
	for range count {
		if _, n = binary.Uvarint(b); n <= 0 {
			return nil, errHeaderTags
		}
		b = b[n:]
		size, n := binary.Uvarint(b)
		if n <= 0 || size > uint64(len(b)-n) {
			return nil, errHeaderTags
		}
		b = b[n+int(size):]
	}
	return b, nil
}

// flexibleFrom is the first flexible version of every API (KIP-482), and
// newestVersion the newest that kmsg knows, -1 for a key that it doesn't. A
// version beyond the newest is taken as flexible when that one is.
var flexibleFrom, newestVersion = func() (from, newest [kmsg.MaxKey + 1]int16) {
	for key := range from {
		from[key], newest[key] = neverFlexible, -1
		req := kmsg.RequestForKey(int16(key))
		if req == nil {
			continue
		}
		newest[key] = req.MaxVersion()
		for v := req.MaxVersion(); v >= 0; v-- {
			if req.SetVersion(v); !req.IsFlexible() {
				break
			}
			from[key] = v
		}
	}
	return from, newest
}()

const neverFlexible = 1<<15 - 1

// RequestIsFlexible says that the request header has tagged fields. It is false
// for a key that kmsg doesn't know.
func RequestIsFlexible(key, version int16) bool {
	return key >= 0 && int(key) < len(flexibleFrom) && flexibleFrom[key] != neverFlexible && version >= flexibleFrom[key]
}

// ResponseIsFlexible says that the response header has tagged fields.
func ResponseIsFlexible(key, version int16) bool {
	return key != ApiVersionsKey && RequestIsFlexible(key, version)
}

// known says that kmsg has this version of the API.
func known(key, version int16) bool {
	return key >= 0 && int(key) < len(newestVersion) && version >= 0 && version <= newestVersion[key]
}

// Name is Kafka's name of an API.
func Name(key int16) string {
	if !known(key, 0) {
		return fmt.Sprintf("key %d", key)
	}
	return kmsg.NameForKey(key)
}
