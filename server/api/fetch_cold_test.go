package api

import (
	"io/fs"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/cluster/metadata"
	"github.com/barnabas-mq/barnabas/internal/vfs"
	"github.com/barnabas-mq/barnabas/server/network"
)

// coldFetch reads records of t-0 that an event loop leaves to the executor: to compare
// epochs takes the log's lock.
func coldFetch(minBytes int32) []byte {
	r := fetchRequest("t", metadata.TopicID{}, 0, 0)
	r.MinBytes = minBytes
	p := &r.Topics[0].Partitions[0]
	p.LastFetchedEpoch = 0
	r.SetVersion(12)
	return kmsg.NewRequestFormatter(kmsg.FormatterClientID("test")).AppendRequest(nil, r, 1)[4:]
}

// TestFetchesThatWaitForTheDiskAreReadOneByOne has a client send a hundred of them at
// once and read no answer: the broker does not read for it what it does not take.
func TestFetchesThatWaitForTheDiskAreReadOneByOne(t *testing.T) {
	d := newDataBroker(t)
	d.make("t", 1, nil)
	var begun atomic.Int64
	d.h.FetchMaxBytes = func() int { begun.Add(1); return 55 << 20 }
	dial := d.onLoops()
	greedy, other := dial(), dial()
	if row := other.produceTo("t", 0, values(0, string(incompressible(900<<10)))); row.ErrorCode != 0 {
		t.Fatal(row.ErrorCode)
	}
	if err := greedy.conn.(*net.TCPConn).SetReadBuffer(64 << 10); err != nil {
		t.Fatal(err)
	}
	const n = 100
	for range n {
		greedy.send(coldFetch(1))
	}
	until(t, "the first of them", func() bool { return begun.Load() > 0 })
	for range n {
		askAs[*kmsg.ApiVersionsResponse](other, 0, kmsg.NewPtrApiVersionsRequest())
	}
	if got := begun.Load(); got > n/2 {
		t.Errorf("%d of %d fetches were begun", got, n)
	}
	for range n {
		if len(greedy.receive()) < 900<<10 {
			t.Fatal("a short answer")
		}
	}
}

// TestFetchesThatWaitForTheDiskAreFewAtOnce has other clients take all the places for
// them: the next waits for one, and who reads what is in memory does not.
func TestFetchesThatWaitForTheDiskAreFewAtOnce(t *testing.T) {
	d := newDataBroker(t)
	d.make("t", 1, nil)
	dial := d.onLoops()
	late, other := dial(), dial()
	other.mustProduce("t", 0, "v")
	for range coldReads {
		d.h.cold <- struct{}{}
	}
	late.send(coldFetch(1))
	answered := make(chan []byte, 1)
	go func() {
		frame, _ := late.read()
		answered <- frame
	}()
	for range 100 {
		if rows := other.fetch(fetchRequest("t", metadata.TopicID{}, 0, 0)).Topics[0].Partitions; len(rows[0].RecordBatches) == 0 {
			t.Fatal("nothing was read")
		}
	}
	if len(answered) > 0 {
		t.Error("it did not wait for a place")
	}
	<-d.h.cold
	if len(<-answered) == 0 {
		t.Error("no answer")
	}
}

// openFS counts the files that are open.
type openFS struct {
	vfs.FS
	open atomic.Int64
}

type openFile struct {
	vfs.File
	fs *openFS
}

func (f *openFS) OpenFile(name string, flag int, perm fs.FileMode) (vfs.File, error) {
	file, err := f.FS.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	f.open.Add(1)
	return &openFile{file, f}, nil
}

func (f *openFile) Close() error {
	f.fs.open.Add(-1)
	return f.File.Close()
}

// closeSpy tells when its first connection has closed.
type closeSpy struct {
	network.Handler
	once   sync.Once
	closed chan struct{}
}

func (s *closeSpy) Serve(r *network.Request) {
	s.once.Do(func() { r.Conn.OnClose(func() { close(s.closed) }) })
	s.Handler.Serve(r)
}

// TestFetchOfAPeerThatLeftGivesItsFilesBack has a client close behind a fetch that
// would wait for more than there is: what was found is given back.
func TestFetchOfAPeerThatLeftGivesItsFilesBack(t *testing.T) {
	disk := &openFS{FS: vfs.NewMem()}
	t.Cleanup(func() { // when the store is closed
		if n := disk.open.Load(); n != 0 {
			t.Errorf("%d files are still open", n)
		}
	})
	stall := &stallFS{FS: disk}
	d := newDataBrokerOn(t, stall)
	d.make("t", 1, nil)
	d.make("slow", 1, nil)
	spy := &closeSpy{Handler: NewDispatcher(d.h, nil), closed: make(chan struct{})}
	c := loopsOf(t, spy, network.Limits{})()
	if row := c.produceTo("t", 0, values(0, string(incompressible(900<<10)))); row.ErrorCode != 0 {
		t.Fatal(row.ErrorCode)
	}
	c.mustProduce("slow", 0, "v")
	stalled, release := stall.stall("slow-0")
	produce := produceRequest("slow", metadata.TopicID{}, 0, -1, values(0, string(incompressible(100<<10))))
	produce.SetVersion(9)
	c.send(kmsg.NewRequestFormatter(kmsg.FormatterClientID("test")).AppendRequest(nil, produce, 1)[4:])
	<-stalled
	c.send(coldFetch(1 << 20))
	c.conn.Close()
	<-spy.closed
	close(release)
}
