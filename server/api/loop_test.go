package api

import (
	"context"
	"io/fs"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/cluster/metadata"
	"github.com/barnabas-mq/barnabas/cluster/replica"
	"github.com/barnabas-mq/barnabas/internal/vfs"
	"github.com/barnabas-mq/barnabas/protocol/batch"
	"github.com/barnabas-mq/barnabas/server/network"
)

// stallFS is a disk on which writes to one partition's log stand still until the
// test lets them go.
type stallFS struct {
	vfs.FS
	mu      sync.Mutex
	folder  string
	stalled chan struct{} // closed when a write has begun to wait
	release chan struct{}
}

type stallFile struct {
	vfs.File
	fs *stallFS
}

func (s *stallFS) OpenFile(name string, flag int, perm fs.FileMode) (vfs.File, error) {
	f, err := s.FS.OpenFile(name, flag, perm)
	if err != nil || !strings.HasSuffix(name, ".log") {
		return f, err
	}
	return &stallFile{File: f, fs: s}, nil
}

func (f *stallFile) WriteAt(p []byte, off int64) (int, error) {
	f.fs.wait(f.Name())
	return f.File.WriteAt(p, off)
}

func (f *stallFile) Write(p []byte) (int, error) {
	f.fs.wait(f.Name())
	return f.File.Write(p)
}

func (s *stallFS) wait(name string) {
	s.mu.Lock()
	folder, stalled, release := s.folder, s.stalled, s.release
	if folder == "" || !strings.Contains(name, folder) {
		s.mu.Unlock()
		return
	}
	select {
	case <-stalled:
	default:
		close(stalled)
	}
	s.mu.Unlock()
	<-release
}

func (s *stallFS) stall(folder string) (stalled, release chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.folder, s.stalled, s.release = folder, make(chan struct{}), make(chan struct{})
	return s.stalled, s.release
}

// onLoops serves the same handlers on one event loop.
func (d *dataBroker) onLoops() (dial func() *testClient) { return d.onLoopsWithin(network.Limits{}) }

func (d *dataBroker) onLoopsWithin(limits network.Limits) (dial func() *testClient) {
	d.t.Helper()
	return loopsOf(d.t, NewDispatcher(d.h, nil), limits)
}

func loopsOf(t *testing.T, h network.Handler, limits network.Limits) (dial func() *testClient) {
	t.Helper()
	srv := network.New(network.Options{
		Handler: h, Loops: 1, Limits: limits,
		Listeners: []network.Listener{{Name: testListener, Addr: "127.0.0.1:0"}},
	})
	if err := srv.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := srv.Shutdown(ctx); err != nil {
			t.Error(err)
		}
	})
	return func() *testClient {
		conn, err := net.Dial("tcp", srv.Addrs()[0].String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return &testClient{t: t, conn: conn}
	}
}

// TestStalledPartitionDoesNotStopTheLoop holds a write to one partition, on an
// executor, while others produce to it and to another one over the same loop.
func TestStalledPartitionDoesNotStopTheLoop(t *testing.T) {
	disk := &stallFS{FS: vfs.NewMem()}
	d := newDataBrokerOn(t, disk)
	d.make("slow", 1, nil)
	d.make("quick", 1, nil)
	dial := d.onLoops()
	big, small, other := dial(), dial(), dial()
	stalled, release := disk.stall("slow-0")
	// Larger than what is served on a loop.
	first := later[*kmsg.ProduceResponse](big, 9, produceRequest("slow", metadata.TopicID{}, 0, -1, values(0, strings.Repeat("x", 100<<10))))
	<-stalled
	second := later[*kmsg.ProduceResponse](small, 9, produceRequest("slow", metadata.TopicID{}, 0, -1, values(0, "v")))
	for range 10 {
		got := later[*kmsg.ProduceResponse](other, 9, produceRequest("quick", metadata.TopicID{}, 0, -1, values(0, "v")))
		if row := soon(t, got).Topics[0].Partitions[0]; row.ErrorCode != 0 {
			t.Fatal(kerr.ErrorForCode(row.ErrorCode))
		}
	}
	close(release)
	a, b := soon(t, first).Topics[0].Partitions[0], soon(t, second).Topics[0].Partitions[0]
	if a.ErrorCode != 0 || a.BaseOffset != 0 || b.ErrorCode != 0 || b.BaseOffset != 1 {
		t.Fatalf("%+v, %+v", a, b)
	}
}

// TestRequeueKeepsTheOrder pipelines an idempotent producer's batches while its
// partition is held: they are stored in order although the first attempt of each
// was given up.
func TestRequeueKeepsTheOrder(t *testing.T) {
	disk := &stallFS{FS: vfs.NewMem()}
	d := newDataBrokerOn(t, disk)
	d.make("slow", 1, nil)
	d.make("quick", 1, nil)
	dial := d.onLoops()
	big, pipe := dial(), dial()
	stalled, release := disk.stall("slow-0")
	first := later[*kmsg.ProduceResponse](big, 9, produceRequest("slow", metadata.TopicID{}, 0, -1, values(0, strings.Repeat("x", 100<<10))))
	<-stalled
	f := kmsg.NewRequestFormatter(kmsg.FormatterClientID("test"))
	const n = 20
	for i := range int32(n) {
		b := batch.NewBuilder(batch.BuilderOptions{Producer: &batch.ProducerStamp{ID: 7, BaseSequence: i}})
		b.Add(0, nil, []byte("v"))
		v := b.Build()
		// The other partition is done before the held one stops the request.
		req := produceRequest("quick", metadata.TopicID{}, 0, -1, values(0, "v"))
		held := kmsg.NewProduceRequestTopic()
		held.Topic = "slow"
		held.Partitions = append(held.Partitions, kmsg.ProduceRequestTopicPartition{Records: v})
		req.Topics = append(req.Topics, held)
		req.SetVersion(9)
		pipe.send(f.AppendRequest(nil, req, i)[4:])
	}
	close(release)
	soon(t, first)
	for i := range int64(n) {
		frame := pipe.receive()
		resp := kmsg.NewPtrProduceResponse()
		resp.SetVersion(9)
		if err := resp.ReadFrom(frame[5:]); err != nil {
			t.Fatal(err)
		}
		quick, slow := resp.Topics[0].Partitions[0], resp.Topics[1].Partitions[0]
		if quick.ErrorCode != 0 || quick.BaseOffset != i || slow.ErrorCode != 0 || slow.BaseOffset != 1+i {
			t.Fatalf("answer %d: %+v, %+v", i, quick, slow)
		}
	}
}

// TestLoopLeavesHeavyBatchesToTheExecutor sends what is small on the wire only.
func TestLoopLeavesHeavyBatchesToTheExecutor(t *testing.T) {
	d := newDataBroker(t)
	d.make("t", 1, func(c *replica.TopicConfig, _ *metadata.Partition) { c.Batch.MaxDecodedBytes = 64 << 20 })
	d.make("zstd", 1, func(c *replica.TopicConfig, _ *metadata.Partition) {
		c.Batch.Recompress, c.Batch.Codec = true, batch.Zstd
	})
	c := d.onLoops()()
	b := batch.NewBuilder(batch.BuilderOptions{Codec: batch.Zstd})
	b.Add(0, nil, make([]byte, 2*quickDecodedBytes))
	if v := b.Build(); len(v) > 60<<10 {
		t.Fatalf("%d bytes would not be served on a loop anyway", len(v))
	} else if row := c.produceTo("t", 0, v); row.ErrorCode != 0 {
		t.Fatal(kerr.ErrorForCode(row.ErrorCode))
	}
	if row := c.produceTo("zstd", 0, values(0, "v")); row.ErrorCode != 0 {
		t.Fatal(kerr.ErrorForCode(row.ErrorCode))
	}
}

// TestHeavyBatchesWaitForEachOther has every place for batches that take long to
// check taken: those that don't are served all the same.
func TestHeavyBatchesWaitForEachOther(t *testing.T) {
	d := newDataBroker(t)
	d.make("t", 1, nil)
	dial := d.onLoops()
	zstd := func(valueBytes int) batch.View {
		b := batch.NewBuilder(batch.BuilderOptions{Codec: batch.Zstd})
		b.Add(0, nil, make([]byte, valueBytes))
		return b.Build()
	}
	for range heavyDecodes() {
		d.h.heavy <- struct{}{}
	}
	heavy := later[*kmsg.ProduceResponse](dial(), 9, produceRequest("t", metadata.TopicID{}, 0, -1, zstd(2*quickDecodedBytes)))
	// An executor serves what is as large as this on the wire.
	light := batch.NewBuilder(batch.BuilderOptions{Codec: batch.LZ4})
	light.Add(0, nil, incompressible(200<<10))
	c := dial()
	for i, v := range []batch.View{zstd(1000), light.Build()} {
		if row := c.produceTo("t", 0, v); row.ErrorCode != 0 || row.BaseOffset != int64(i) {
			t.Fatalf("%+v", row)
		}
	}
	for range heavyDecodes() {
		<-d.h.heavy
	}
	if row := (<-heavy).Topics[0].Partitions[0]; row.ErrorCode != 0 || row.BaseOffset != 2 {
		t.Fatalf("%+v", row)
	}
}

func incompressible(sizeBytes int) []byte {
	b := make([]byte, sizeBytes)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}
