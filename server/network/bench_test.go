package network_test

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"runtime"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/barnabas-mq/barnabas/server/network"
)

// ackHandler answers every request with a few bytes, as Produce does.
type ackHandler struct{}

func (ackHandler) Classify(network.FrameHead) network.Class { return network.Class{Inline: true} }

func (ackHandler) Serve(r *network.Request) { r.Complete(answer(r.Frame, nil)) }

// BenchmarkRequests measures the network layer alone: connections x requests in
// flight x request size. CPU includes the client's side.
func BenchmarkRequests(b *testing.B) {
	for _, tc := range []struct{ conns, depth, size int }{
		{1, 1, 200}, {1, 1, 11 << 10}, {4, 5, 11 << 10}, {4, 2, 1 << 20}, {1000, 1, 200},
	} {
		for _, std := range []bool{false, true} {
			b.Run(fmt.Sprintf("conns=%d/depth=%d/size=%d/std=%v", tc.conns, tc.depth, tc.size, std), func(b *testing.B) {
				f := start(b, network.Options{Handler: ackHandler{}, Std: std})
				benchRequests(b, f, tc.conns, tc.depth, tc.size)
			})
		}
	}
}

func benchRequests(b *testing.B, f *fixture, conns, depth, size int) {
	msg := request(keyEcho, 1, make([]byte, size-8))
	clients := make([]net.Conn, conns)
	for i := range clients {
		nc, err := net.Dial("tcp", f.Addrs()[0].String())
		if err != nil {
			b.Fatal(err)
		}
		defer nc.Close()
		clients[i] = nc
	}
	b.SetBytes(int64(size))
	b.ResetTimer()
	cpu := cpuTime()
	var g errgroup.Group
	for i, nc := range clients {
		n := b.N / conns
		if i < b.N%conns {
			n++
		}
		g.Go(func() error { return drive(nc, msg, n, depth) })
	}
	if err := g.Wait(); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(cpuTime()-cpu)/1e3/float64(b.N), "cpu-us/op")
}

// drive keeps depth of n requests in flight.
func drive(nc net.Conn, msg []byte, n, depth int) error {
	ack := make([]byte, 8)
	for sent, got := 0, 0; got < n; {
		for ; sent < n && sent-got < depth; sent++ {
			if _, err := nc.Write(msg); err != nil {
				return err
			}
		}
		if _, err := io.ReadFull(nc, ack); err != nil {
			return err
		}
		if binary.BigEndian.Uint32(ack) != 4 {
			return fmt.Errorf("answer %x", ack)
		}
		got++
	}
	return nil
}

// BenchmarkRegions measures what a Fetch response costs: a mapped region of 3 MiB.
func BenchmarkRegions(b *testing.B) {
	for _, key := range []int{keyMappedRegion, keyRegion} {
		b.Run(fmt.Sprintf("mapped=%v", key == keyMappedRegion), func(b *testing.B) {
			f := start(b, network.Options{})
			nc, err := net.Dial("tcp", f.Addrs()[0].String())
			if err != nil {
				b.Fatal(err)
			}
			defer nc.Close()
			buf := make([]byte, 256<<10)
			b.SetBytes(largeBytes)
			b.ResetTimer()
			cpu := cpuTime()
			for range b.N {
				if _, err := nc.Write(request(key, 1, nil)); err != nil {
					b.Fatal(err)
				}
				for got := 0; got < largeBytes+8; {
					n, err := nc.Read(buf)
					if err != nil {
						b.Fatal(err)
					}
					got += n
				}
			}
			b.ReportMetric(float64(cpuTime()-cpu)/1e3/float64(b.N), "cpu-us/op")
		})
	}
}

// BenchmarkIdleConnections reports the memory that one idle connection costs after
// a request, both ends' Go memory and not the kernel's. The client's end is raw.
func BenchmarkIdleConnections(b *testing.B) {
	for _, std := range []bool{false, true} {
		b.Run(fmt.Sprintf("std=%v", std), func(b *testing.B) {
			f := start(b, network.Options{Handler: ackHandler{}, Std: std})
			const conns = 2000
			fds := make([]net.Conn, 0, conns)
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			for range conns {
				nc, err := net.Dial("tcp", f.Addrs()[0].String())
				if err != nil {
					b.Fatal(err)
				}
				defer nc.Close()
				if err := drive(nc, request(keyEcho, 1, nil), 1, 1); err != nil {
					b.Fatal(err)
				}
				fds = append(fds, nc)
			}
			runtime.GC()
			runtime.ReadMemStats(&after)
			b.ReportMetric(float64(after.HeapAlloc+after.StackInuse-before.HeapAlloc-before.StackInuse)/conns, "B/conn")
			runtime.KeepAlive(fds)
			for range b.N {
			}
		})
	}
}
