package api

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/cluster/metadata"
	"github.com/barnabas-mq/barnabas/internal/clock"
	"github.com/barnabas-mq/barnabas/internal/memnet"
	"github.com/barnabas-mq/barnabas/internal/telemetry"
	"github.com/barnabas-mq/barnabas/protocol"
	"github.com/barnabas-mq/barnabas/server/network"
)

// testBroker serves Table over an in-memory network, with a controller that
// makes topics on the spot.
type testBroker struct {
	t       *testing.T
	h       *Handlers
	metrics *telemetry.Registry
	mem     *memnet.Network
	log     lockedLog

	image atomic.Pointer[metadata.Image]
	// decide takes the controller's decisions, where a test makes them.
	decide chan func()
	// creations are the names of each CreateTopics that the controller decided.
	creations [][]string
	// refuse makes the controller fail.
	refuse error
}

const (
	testListener = "PLAINTEXT"
	testAddr     = "broker:9092"
	testCluster  = "Ylk07O2lTgyaVM_yBBs2Vw"
)

// newTestBroker starts a broker with id 1; change may set more of its handlers.
func newTestBroker(t *testing.T, change func(*Handlers)) *testBroker {
	t.Helper()
	b := &testBroker{t: t, metrics: telemetry.NewRegistry(), mem: memnet.New()}
	img := metadata.New(testCluster).WithController(1).Apply(&metadata.RegisterBrokerRecord{
		BrokerID: 1, Rack: "r1", Endpoints: []metadata.Endpoint{{Listener: testListener}},
	})
	b.image.Store(img)
	log := slog.New(slog.NewTextHandler(&b.log, nil))
	b.h = &Handlers{
		Clock: clock.Real(), Log: log, NodeID: 1, Image: b.image.Load, Controller: b,
		AutoCreate: func() bool { return true },
	}
	if change != nil {
		change(b.h)
	}
	srv := network.New(network.Options{Handler: NewDispatcher(b.h, b.metrics), Std: true, Log: log})
	l, err := b.mem.Listen(testAddr)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l, testListener) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := errors.Join(srv.Shutdown(ctx), <-served); err != nil {
			t.Error(err)
		}
		if t.Failed() { // why the broker hung up, if it did
			t.Logf("the broker's log:\n%s", b.log.String())
		}
	})
	return b
}

// apply adds metadata records.
func (b *testBroker) apply(records ...metadata.Record) {
	b.image.Store(b.image.Load().Apply(records...))
}

// addTopic makes a topic whose partitions are led by broker 1, and returns its
// id.
func (b *testBroker) addTopic(name string, partitions int) metadata.TopicID {
	id := metadata.TopicID{1}
	copy(id[1:], name)
	records := []metadata.Record{&metadata.TopicRecord{Name: name, ID: id, Internal: protocol.IsInternalTopic(name)}}
	for i := range partitions {
		records = append(records, &metadata.PartitionRecord{TopicID: id, Partition: metadata.Partition{
			Index: int32(i), Replicas: []int32{1}, ISR: []int32{1}, Leader: 1,
		}})
	}
	b.apply(records...)
	return id
}

// Handle implements Controller.
func (b *testBroker) Handle(req kmsg.Request, done func(kmsg.Response, error)) {
	if b.decide == nil {
		b.handle(req, done)
		return
	}
	b.decide <- func() { b.handle(req, done) }
}

func (b *testBroker) handle(req kmsg.Request, done func(kmsg.Response, error)) {
	create, ok := req.(*kmsg.CreateTopicsRequest)
	if !ok || b.refuse != nil {
		done(nil, errors.Join(b.refuse, fmt.Errorf("no answer to %T", req)))
		return
	}
	var names []string
	for _, t := range create.Topics {
		names = append(names, t.Topic)
		b.addTopic(t.Topic, 1)
	}
	b.creations = append(b.creations, names)
	go done(create.ResponseKind(), nil)
}

// lockedLog keeps what was logged.
type lockedLog struct {
	mu   sync.Mutex
	text []byte
}

func (l *lockedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, p...)
	return len(p), nil
}

func (l *lockedLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.text)
}

// testClient is one connection to a testBroker.
type testClient struct {
	t    *testing.T
	conn net.Conn
	// correlation is that of the last request.
	correlation int32
}

// dial connects from a host.
func (b *testBroker) dial(host string) *testClient {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := b.mem.Dialer(host)(ctx, "memnet", testAddr)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { conn.Close() })
	return &testClient{t: b.t, conn: conn}
}

// send writes one frame, its size in front.
func (c *testClient) send(frame []byte) {
	c.t.Helper()
	out := binary.BigEndian.AppendUint32(nil, uint32(len(frame)))
	if _, err := c.conn.Write(append(out, frame...)); err != nil {
		c.t.Fatal(err)
	}
}

// receive reads one frame without its size; nil when the broker hung up.
func (c *testClient) receive() []byte {
	c.t.Helper()
	frame, err := c.read()
	if err != nil && err != io.EOF && !errors.Is(err, net.ErrClosed) {
		c.t.Fatal(err)
	}
	return frame
}

// read is one frame without its size. io.EOF is a broker that has hung up,
// net.ErrClosed a connection that the test has closed.
func (c *testClient) read() ([]byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(c.conn, size[:]); err != nil {
		return nil, err
	}
	frame := make([]byte, binary.BigEndian.Uint32(size[:]))
	_, err := io.ReadFull(c.conn, frame)
	return frame, err
}

// askAs sends a request in a version and decodes the answer into its type.
func askAs[R kmsg.Response](c *testClient, version int16, req kmsg.Request) R {
	c.t.Helper()
	resp, err := tryAs[R](c, version, req)
	if err != nil {
		c.t.Fatal(err)
	}
	return resp
}

// tryAs is askAs for any goroutine.
func tryAs[R kmsg.Response](c *testClient, version int16, req kmsg.Request) (none R, err error) {
	c.correlation++
	req.SetVersion(version)
	what := fmt.Sprintf("%s v%d", protocol.Name(req.Key()), version)
	f := kmsg.NewRequestFormatter(kmsg.FormatterClientID("test"))
	if _, err := c.conn.Write(f.AppendRequest(nil, req, c.correlation)); err != nil {
		return none, fmt.Errorf("%s: %w", what, err)
	}
	frame, err := c.read()
	if err == io.EOF {
		err = errors.New("the broker hung up")
	}
	if err != nil {
		return none, fmt.Errorf("%s: %w", what, err)
	}
	if got := int32(binary.BigEndian.Uint32(frame)); got != c.correlation {
		return none, fmt.Errorf("%s: correlation id %d, want %d", what, got, c.correlation)
	}
	body := frame[4:]
	if protocol.ResponseIsFlexible(req.Key(), version) {
		body = body[1:]
	}
	resp := req.ResponseKind()
	resp.SetVersion(version)
	if err := resp.ReadFrom(body); err != nil {
		return none, fmt.Errorf("%s: %w", what, err)
	}
	return resp.(R), nil
}
