package harness

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Wire is one plain connection that sends a request and reads its answer, for what must not depend on a client's
// own retries and caches.
type Wire struct {
	conn   net.Conn
	format *kmsg.RequestFormatter
	nextID int32
	buf    []byte
}

// Dial connects.
func Dial(addr string, timeout time.Duration) (*Wire, error) {
	conn, err := net.DialTimeout("tcp", addr, timeout)
	if err != nil {
		return nil, err
	}
	return &Wire{conn: conn, format: kmsg.NewRequestFormatter(kmsg.FormatterClientID("compat"))}, nil
}

// Close ends the connection.
func (w *Wire) Close() { w.conn.Close() }

// Ask sends req in the version set on it and decodes the answer.
func (w *Wire) Ask(req kmsg.Request, timeout time.Duration) (kmsg.Response, error) {
	w.nextID++
	if err := w.conn.SetDeadline(time.Now().Add(timeout)); err != nil {
		return nil, err
	}
	w.buf = w.format.AppendRequest(w.buf[:0], req, w.nextID)
	if _, err := w.conn.Write(w.buf); err != nil {
		return nil, err
	}
	var size [4]byte
	if _, err := io.ReadFull(w.conn, size[:]); err != nil {
		return nil, err
	}
	const limit = 1 << 30
	n := binary.BigEndian.Uint32(size[:])
	if n < 5 || n > limit {
		return nil, fmt.Errorf("a response of %d bytes", n)
	}
	frame := make([]byte, n)
	if _, err := io.ReadFull(w.conn, frame); err != nil {
		return nil, err
	}
	if got := int32(binary.BigEndian.Uint32(frame)); got != w.nextID {
		return nil, fmt.Errorf("the answer carries correlation id %d, not %d", got, w.nextID)
	}
	resp, body := req.ResponseKind(), frame[4:]
	if _, versions := resp.(*kmsg.ApiVersionsResponse); resp.IsFlexible() && !versions {
		body = body[1:]
	}
	return resp, resp.ReadFrom(body)
}

// probe asks once whether the broker serves. A refused connection is known at once; the limits are for a busy machine.
func probe(addr string) error {
	w, err := Dial(addr, 5*time.Second)
	if err != nil {
		return err
	}
	defer w.Close()
	req := kmsg.NewPtrMetadataRequest()
	req.Version = 7
	req.Topics = []kmsg.MetadataRequestTopic{}
	resp, err := w.Ask(req, 5*time.Second)
	if err != nil {
		return err
	}
	if len(resp.(*kmsg.MetadataResponse).Brokers) == 0 {
		return errors.New("the metadata names no broker yet")
	}
	return nil
}
