package network_test

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"testing"

	"github.com/barnabas-mq/barnabas/server/network"
)

// echo answers every request with its own bytes.
type echo struct{}

func (echo) Classify(network.FrameHead) network.Class { return network.Class{Inline: true} }

func (echo) Serve(r *network.Request) { r.Complete(frameOf(r.Frame)) }

func frameOf(body []byte) network.Response {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(body)))
	return network.Response{Segs: []network.Seg{{Bytes: append(b, body...)}}}
}

func TestEchoSmoke(t *testing.T) {
	s := network.New(network.Options{Handler: echo{}, Listeners: []network.Listener{{Name: "PLAINTEXT", Addr: "127.0.0.1:0"}}})
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	nc, err := net.Dial("tcp", s.Addrs()[0].String())
	if err != nil {
		t.Fatal(err)
	}
	msg := append(binary.BigEndian.AppendUint32(nil, 12), "0123456789ab"...)
	for range 3 {
		if _, err := nc.Write(msg); err != nil {
			t.Fatal(err)
		}
	}
	got := make([]byte, 3*len(msg))
	if _, err := io.ReadFull(nc, got); err != nil {
		t.Fatal(err)
	}
	if err := s.Shutdown(context.Background()); err != nil {
		t.Fatal(err)
	}
}
