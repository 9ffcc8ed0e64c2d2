package controller

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/cluster/metadata"
)

// fakeLog commits what is proposed into its driver at once, or does what hold and
// refuse say.
type fakeLog struct {
	d *Driver

	mu      sync.Mutex
	term    uint64
	index   uint64
	batches [][]byte
	refuse  error
	// hold, if set, is waited for before a proposal is committed; each waiting
	// proposal is announced on held.
	hold, held chan struct{}
}

func (l *fakeLog) Propose(term uint64, data []byte) (uint64, error) {
	if l.hold != nil {
		l.held <- struct{}{}
		<-l.hold
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.refuse != nil {
		return 0, l.refuse
	}
	if term != l.term {
		return 0, errors.New("not the leader")
	}
	l.index++
	l.batches = append(l.batches, data)
	return l.index, l.d.Apply(l.index, term, data)
}

func newDriver(t *testing.T) (*Driver, *fakeLog) {
	t.Helper()
	d := New(Options{NodeID: 1, ClusterID: cluster, Config: testConfig(), Rand: rand.New(rand.NewPCG(1, 2)), Log: quiet()})
	l := &fakeLog{d: d, term: 3}
	d.LeaderChange(77, 3, true)
	return d, l
}

func startDriver(t *testing.T) (*Driver, *fakeLog) {
	d, l := newDriver(t)
	d.Start(l)
	t.Cleanup(d.Close)
	return d, l
}

type outcome struct {
	resp kmsg.Response
	err  error
}

func ask(d *Driver, req kmsg.Request) chan outcome {
	out := make(chan outcome, 1)
	req.SetVersion(req.MaxVersion())
	d.Handle(req, func(resp kmsg.Response, err error) { out <- outcome{resp, err} })
	return out
}

// recorder is a publisher that writes down what it hears, and in which order.
type recorder struct {
	name string
	log  *[]string
	img  *metadata.Image
}

func (r *recorder) OnMetadata(d *metadata.Delta, img *metadata.Image) {
	var names []string
	for _, c := range d.Topics {
		names = append(names, c.Name())
	}
	r.img = img
	*r.log = append(*r.log, fmt.Sprintf("%s topics=%s brokers=%v", r.name, strings.Join(names, ","), d.Brokers))
}

func TestDriverPublishesThenAnswers(t *testing.T) {
	d, l := startDriver(t)
	if got := <-ask(d, registration(1, 1)); got.err != nil || got.resp.(*kmsg.BrokerRegistrationResponse).BrokerEpoch != 1 {
		t.Fatalf("%+v", got)
	}
	var heard []string
	a, b := &recorder{name: "a", log: &heard}, &recorder{name: "b", log: &heard}
	d.Subscribe(a, b)
	d.Handle(createTopics(topic("t", 1, 1)), func(kmsg.Response, error) { heard = append(heard, "answer") })
	<-ask(d, createTopics(topic("u", 1, 1)))
	// Both requests may have gone into one batch; the order within is the same.
	text := strings.Join(heard, "; ")
	if !strings.HasPrefix(text, "a topics= brokers=[1]; b topics= brokers=[1]; a topics=t") || !strings.Contains(text, "answer") ||
		strings.Index(text, "answer") < strings.Index(text, "b topics=t") {
		t.Fatalf("heard %s", text)
	}
	if a.img.ControllerID != 1 || a.img != d.Image() || a.img.Offset != int64(l.index) {
		t.Fatalf("published image at %d of controller %d", a.img.Offset, a.img.ControllerID)
	}
}

// TestDriverBatchesWhatWaits: while one batch is on its way, all that waits goes
// into the next, and each request sees what those before it decided.
func TestDriverBatchesWhatWaits(t *testing.T) {
	d, l := newDriver(t)
	l.hold, l.held = make(chan struct{}), make(chan struct{})
	d.Start(l)
	t.Cleanup(d.Close)
	first := ask(d, registration(1, 1))
	<-l.held
	var waits []chan outcome
	for _, name := range []string{"t", "t", "u"} {
		waits = append(waits, ask(d, createTopics(topic(name, 1, 1))))
	}
	del := ask(d, deleteTopics(byName("t")))
	l.hold <- struct{}{}
	if got := <-first; got.err != nil {
		t.Fatal(got.err)
	}
	<-l.held
	l.hold <- struct{}{}
	var lines []string
	for _, w := range waits {
		lines = append(lines, createdLines((<-w).resp)...)
	}
	same(t, "created", lines, "t: 0", "t: 36 Topic 't' already exists.", "u: 0")
	if got := <-del; got.err != nil || got.resp.(*kmsg.DeleteTopicsResponse).Topics[0].ErrorCode != 0 {
		t.Fatalf("%+v", got)
	}
	if len(l.batches) != 2 {
		t.Fatalf("%d batches", len(l.batches))
	}
	if _, ok := d.Image().Topic("u"); !ok || d.Image().TopicCount() != 1 {
		t.Fatal("the image is another")
	}
}

// TestDriverDropsFailedDecisions: what could not be committed has not happened,
// and who read it is refused as well.
func TestDriverDropsFailedDecisions(t *testing.T) {
	d, l := startDriver(t)
	<-ask(d, registration(1, 1))
	l.hold, l.held = make(chan struct{}), make(chan struct{})
	blocker := ask(d, createTopics(topic("first", 1, 1)))
	<-l.held
	create := ask(d, createTopics(topic("t", 1, 1)))
	reads := ask(d, createTopics(topic("t", 1, 1))) // would answer that t exists
	l.hold <- struct{}{}
	<-blocker
	<-l.held
	l.mu.Lock()
	l.refuse = errors.New("the disk is broken")
	l.mu.Unlock()
	l.hold <- struct{}{}
	for _, w := range []chan outcome{create, reads} {
		if got := <-w; !errors.Is(got.err, kerr.KafkaStorageError) || !errors.Is(got.err, l.refuse) {
			t.Fatalf("%+v", got)
		}
	}
	if _, ok := d.Image().Topic("t"); ok {
		t.Fatal("a decision that failed is in the image")
	}
	l.mu.Lock()
	l.refuse = nil
	l.mu.Unlock()
	again := ask(d, createTopics(topic("t", 1, 1)))
	<-l.held
	l.hold <- struct{}{}
	same(t, "again", createdLines((<-again).resp), "t: 0")
}

func TestDriverThatDoesNotLead(t *testing.T) {
	d, l := startDriver(t)
	<-ask(d, registration(1, 1))
	d.LeaderChange(78, 4, false)
	if got := <-ask(d, createTopics(topic("t", 1, 1))); !errors.Is(got.err, kerr.NotController) {
		t.Fatalf("%+v", got)
	}
	heard := &recorder{name: "a", log: new([]string)}
	d.Subscribe(heard)
	if len(*heard.log) != 1 {
		t.Fatal("nobody hears of the metadata while another node leads")
	}
	if got := d.Image().ControllerID; got != -1 {
		t.Fatalf("controller %d", got)
	}
	// It still follows what others commit, and a batch of a leader that had lost
	// its place is dropped.
	records := []metadata.Record{&metadata.TopicRecord{Name: "theirs", ID: metadata.TopicID{1}}}
	if err := d.Apply(l.index+1, 5, metadata.EncodeBatch(4, records)); err != nil {
		t.Fatal(err)
	}
	if _, ok := d.Image().Topic("theirs"); ok {
		t.Fatal("a batch with an old stamp is applied")
	}
	if err := d.Apply(l.index+2, 5, metadata.EncodeBatch(5, records)); err != nil {
		t.Fatal(err)
	}
	if _, ok := d.Image().Topic("theirs"); !ok {
		t.Fatal("a batch of another leader is not applied")
	}
	if err := d.Apply(l.index+3, 5, metadata.EncodeBatch(5, records)); err == nil {
		t.Fatal("a batch that does not fit is applied")
	}
	if err := d.Apply(l.index+3, 5, []byte("garbage")); err == nil {
		t.Fatal("garbage is applied")
	}
}

func TestDriverRefusesBeyondItsQueue(t *testing.T) {
	d, l := newDriver(t)
	l.hold, l.held = make(chan struct{}), make(chan struct{})
	d.Start(l)
	first := ask(d, registration(1, 1))
	<-l.held
	answers := make(chan error, maxQueued+1)
	for range maxQueued + 1 {
		d.Handle(createTopics(), func(_ kmsg.Response, err error) { answers <- err })
	}
	if err := <-answers; !errors.Is(err, kerr.RequestTimedOut) {
		t.Fatalf("the request beyond the bound: %v", err)
	}
	close(l.hold)
	<-first
	for range maxQueued {
		if err := <-answers; err != nil {
			t.Fatal(err)
		}
	}
	d.Close()
	if got := <-ask(d, createTopics()); !errors.Is(got.err, kerr.NotController) {
		t.Fatalf("after the end: %+v", got)
	}
}

func TestCloseRefusesWhatWaits(t *testing.T) {
	d, l := newDriver(t)
	l.hold, l.held = make(chan struct{}), make(chan struct{})
	d.Start(l)
	first := ask(d, registration(1, 1))
	<-l.held
	second := ask(d, createTopics(topic("t", 1, 1)))
	closed := make(chan struct{})
	go func() {
		d.Close()
		close(closed)
	}()
	for d.enqueue(call{req: createTopics(), done: func(kmsg.Response, error) {}}) == nil {
		// Close has not come yet; what is queued meanwhile is answered.
	}
	close(l.hold)
	go func() {
		for range l.held {
		}
	}()
	<-closed
	close(l.held)
	if got := <-first; got.err != nil {
		t.Fatal(got.err)
	}
	// The second was decided or refused, but it was answered.
	if got := <-second; got.err != nil && !errors.Is(got.err, kerr.NotController) {
		t.Fatal(got.err)
	}
}

func TestCloseBeforeStart(t *testing.T) {
	d, _ := newDriver(t)
	d.Close()
	if got := <-ask(d, createTopics()); !errors.Is(got.err, kerr.NotController) {
		t.Fatalf("%+v", got)
	}
}

func TestSnapshotAndRestore(t *testing.T) {
	d, _ := startDriver(t)
	<-ask(d, registration(1, 1))
	<-ask(d, createTopics(topic("t", 3, 1)))
	snapshot, err := d.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	again, _ := newDriver(t)
	if err := again.Restore(snapshot, 2, 3); err != nil {
		t.Fatal(err)
	}
	if again.Image().Hash() != d.Image().Hash() {
		t.Fatal("another image")
	}
	other := New(Options{NodeID: 1, ClusterID: "other", Config: testConfig(), Log: quiet()})
	if err := other.Restore(snapshot, 2, 3); err == nil || !strings.Contains(err.Error(), cluster) {
		t.Fatalf("a snapshot of another cluster: %v", err)
	}
	if err := other.Restore(snapshot[:20], 2, 3); err == nil {
		t.Fatal("a cut snapshot is taken")
	}
}

// A full disk refuses what clients ask for, and nothing that the broker needs.
func TestFullDiskRefusesChanges(t *testing.T) {
	d, l := newDriver(t)
	var least []bool
	d.opts.Room = func(frees bool) error {
		least = append(least, frees)
		return kerr.KafkaStorageError
	}
	d.Start(l)
	t.Cleanup(d.Close)
	for _, req := range []kmsg.Request{kmsg.NewPtrCreateTopicsRequest(), kmsg.NewPtrCreatePartitionsRequest(), kmsg.NewPtrDeleteTopicsRequest(), kmsg.NewPtrIncrementalAlterConfigsRequest()} {
		if got := <-ask(d, req); !errors.Is(got.err, kerr.KafkaStorageError) {
			t.Errorf("%T: %v", req, got.err)
		}
	}
	if fmt.Sprint(least) != "[false false true true]" {
		t.Errorf("asked for room %v", least)
	}
	if got := <-ask(d, kmsg.NewPtrBrokerRegistrationRequest()); errors.Is(got.err, kerr.KafkaStorageError) {
		t.Error(got.err)
	}
}
