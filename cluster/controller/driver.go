package controller

import (
	"cmp"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/cluster/metadata"
	"github.com/barnabas-mq/barnabas/protocol"
)

const (
	// maxQueued bounds the requests that wait; each is charged to its
	// connection's memory as well.
	maxQueued = 10_000
	// maxBatchRecords ends a turn: further requests go into the next batch. One
	// request adds at most maxPartitionsPerRequest and its configs.
	maxBatchRecords = 10_000
)

// Log is the committed log of metadata batches, as the driver uses it.
type Log interface {
	// Propose returns once data is committed and applied, if this node leads
	// term.
	Propose(term uint64, data []byte) (index uint64, err error)
}

// Options is what a driver is made of.
type Options struct {
	NodeID int32
	// ClusterID is the id that a new cluster gets.
	ClusterID string
	Config    Config
	Rand      *rand.Rand
	Log       *slog.Logger
	// Room is nil while the disk has room for a change that a client asks for;
	// frees says that the change makes room. Without it there always is.
	Room func(frees bool) error
}

// Driver runs the machine: it takes the requests that wait, lets the machine
// decide each on the image as the ones before it leave it, proposes all records
// as one batch, waits until it is committed, applied and published, and answers.
// One batch is in flight.
//
// It is the state machine of the log as well: what the log commits becomes the
// next image, whoever proposed it.
type Driver struct {
	opts    Options
	machine *Machine

	wake    chan struct{}
	stop    chan struct{}
	stopped chan struct{}

	mu sync.Mutex
	// queue are the requests that wait.
	queue  []call
	closed bool
	// state is the newest applied image, committed what publishers have yet to
	// hear of.
	state     *metadata.Image
	committed []change
	// replay leads on from state before Start, when nobody needs the images in
	// between.
	replay  *metadata.Replay
	started bool
	// term is this node's term as leader, 0 while it does not lead.
	term uint64

	// The driver's goroutine owns the rest.
	log        Log
	publishers []metadata.Publisher
	published  *metadata.Image
}

// call is a waiting request, a decision that is no request of Kafka's, or a step
// that runs between two turns.
type call struct {
	req    kmsg.Request
	decide func(m *Machine, img *metadata.Image) (Decision, error)
	done   func(kmsg.Response, error)
	step   func()
}

// name is what a call asks for, in errors.
func (c *call) name() string {
	if c.req == nil {
		return "a change"
	}
	return kmsg.NameForKey(c.req.Key())
}

type change struct {
	delta *metadata.Delta
	img   *metadata.Image
}

// New makes a driver without a log. The log gets it as its state machine, then
// Start gets the log.
func New(o Options) *Driver {
	img := metadata.New(o.ClusterID)
	return &Driver{
		opts: o, machine: NewMachine(o.Config, o.Rand), state: img, published: img,
		wake: make(chan struct{}, 1), stop: make(chan struct{}), stopped: make(chan struct{}),
	}
}

// Start begins to decide; log commits into this driver.
func (d *Driver) Start(log Log) {
	d.mu.Lock()
	d.started = true
	d.log, d.published = log, d.stateLocked()
	d.mu.Unlock()
	go d.run()
}

// Subscribe gives the publishers the whole image, and every change from then on,
// in their order. It returns once they have the image.
func (d *Driver) Subscribe(publishers ...metadata.Publisher) {
	done := make(chan struct{})
	queued := d.enqueue(call{step: func() {
		defer close(done)
		d.publishers = append(d.publishers, publishers...)
		for _, p := range publishers {
			p.OnMetadata(metadata.Whole(d.published), d.published)
		}
	}})
	if queued == nil {
		select {
		case <-done:
		case <-d.stopped:
		}
	}
}

// Handle decides req. done runs once, on the driver's goroutine, after all
// publishers have heard of the decision; it must not block.
func (d *Driver) Handle(req kmsg.Request, done func(kmsg.Response, error)) {
	if err := d.enqueue(call{req: req, done: done}); err != nil {
		done(nil, err)
	}
}

var errQueueFull = protocol.Errorf(kerr.RequestTimedOut, "%d requests wait for the controller already", maxQueued)

func (d *Driver) enqueue(c call) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return errClosed()
	}
	if len(d.queue) >= maxQueued {
		return errQueueFull
	}
	d.queue = append(d.queue, c)
	d.wakeUp()
	return nil
}

func (d *Driver) wakeUp() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

func errClosed() error { return protocol.Errorf(kerr.NotController, "the controller has stopped") }

// Image is the newest applied image; publishers may not have heard of it yet.
func (d *Driver) Image() *metadata.Image {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.stateLocked()
}

func (d *Driver) stateLocked() *metadata.Image {
	if d.replay != nil {
		d.state, d.replay = d.replay.Image(), nil
	}
	return d.state
}

// Close ends the driver; requests that wait are refused. The log is closed
// first, so that no batch is in flight.
func (d *Driver) Close() {
	d.mu.Lock()
	first, started := !d.closed, d.started
	d.closed = true
	d.mu.Unlock()
	if !started {
		return
	}
	if first {
		close(d.stop)
	}
	<-d.stopped
}

func (d *Driver) run() {
	defer close(d.stopped)
	for {
		select {
		case <-d.wake:
			d.turn()
		case <-d.stop:
			d.mu.Lock()
			rest := d.queue
			d.queue = nil
			d.mu.Unlock()
			refuse(rest, errClosed())
			return
		}
	}
}

func refuse(calls []call, err error) {
	for _, c := range calls {
		if c.done != nil {
			c.done(nil, err)
		}
	}
}

// turn publishes what is new, then decides what waits.
func (d *Driver) turn() {
	d.publish()
	d.mu.Lock()
	calls, img, term := d.queue, d.stateLocked(), d.term
	d.queue = nil
	d.mu.Unlock()
	for len(calls) > 0 {
		if calls[0].step != nil {
			calls[0].step()
			calls = calls[1:]
			continue
		}
		calls = d.batch(calls, img, term)
		img = d.Image()
	}
}

// verdict is a decided request that waits for its batch.
type verdict struct {
	decision Decision
	err      error
	done     func(kmsg.Response, error)
}

// batch decides requests up to the bound of one batch or up to a step, carries
// them out, and returns the rest.
func (d *Driver) batch(calls []call, img *metadata.Image, term uint64) (rest []call) {
	if term == 0 {
		n := 0
		for n < len(calls) && calls[n].step == nil {
			n++
		}
		refuse(calls[:n], protocol.Errorf(kerr.NotController, "this node is not the active controller"))
		return calls[n:]
	}
	var records []metadata.Record
	var verdicts []verdict
	view := img
	for len(calls) > 0 && calls[0].step == nil && len(records) < maxBatchRecords {
		c := calls[0]
		calls = calls[1:]
		v := verdict{done: c.done}
		if c.decide != nil {
			v.decision, v.err = c.decide(d.machine, view)
		} else if v.err = d.room(c.req); v.err == nil {
			v.decision, v.err = d.machine.Handle(view, c.req)
		}
		if v.err == nil && len(v.decision.Records) > 0 {
			next, _, err := view.Next(view.Offset+1, v.decision.Records)
			if err != nil {
				v.err = fmt.Errorf("decide %s: %w", c.name(), err)
			} else {
				view = next
				records = append(records, v.decision.Records...)
			}
		}
		verdicts = append(verdicts, v)
	}
	err := d.commit(term, records)
	for _, v := range verdicts {
		d.answer(v, err)
	}
	return calls
}

// room refuses what clients ask for while the disk is full: a metadata log that
// met a full disk would end the broker. What the broker itself needs is tried all
// the same.
func (d *Driver) room(req kmsg.Request) error {
	if d.opts.Room == nil {
		return nil
	}
	switch req.(type) {
	case *kmsg.DeleteTopicsRequest, *kmsg.IncrementalAlterConfigsRequest, *kmsg.AlterConfigsRequest: // a shorter retention frees room
		return d.opts.Room(true)
	case *kmsg.CreateTopicsRequest, *kmsg.CreatePartitionsRequest, *kmsg.AllocateProducerIDsRequest, *kmsg.AlterClientQuotasRequest,
		*kmsg.AlterUserSCRAMCredentialsRequest, *kmsg.UpdateFeaturesRequest, *kmsg.ElectLeadersRequest, *kmsg.AlterPartitionAssignmentsRequest:
		return d.opts.Room(false)
	}
	return nil
}

// commit returns once the records are committed, applied and published.
func (d *Driver) commit(term uint64, records []metadata.Record) error {
	if len(records) == 0 {
		return nil
	}
	if _, err := d.log.Propose(term, metadata.EncodeBatch(term, records)); err != nil {
		d.opts.Log.Error("metadata change failed; whether it was made shows after a restart", "err", err)
		return protocol.Errorf(kerr.KafkaStorageError, "%w", err)
	}
	d.publish()
	return nil
}

// answer also refuses what only read: it may have seen what was not committed.
func (d *Driver) answer(v verdict, err error) {
	if err = cmp.Or(v.err, err); err != nil {
		v.done(nil, err)
		return
	}
	if v.decision.Finish != nil {
		v.decision.Finish(d.published)
	}
	v.done(v.decision.Response, nil)
}

// publish tells the publishers of everything that was applied since.
func (d *Driver) publish() {
	d.mu.Lock()
	news := d.committed
	d.committed = nil
	d.mu.Unlock()
	for _, c := range news {
		d.published = c.img
		for _, p := range d.publishers {
			p.OnMetadata(c.delta, c.img)
		}
	}
}

// Apply takes the next committed batch; the log calls it. A batch whose stamp is
// not its entry's term was decided by a leader that had lost its place.
func (d *Driver) Apply(index, term uint64, data []byte) error {
	stamp, records, err := metadata.DecodeBatch(data)
	if err != nil {
		return err
	}
	if stamp != term {
		d.opts.Log.Warn("dropped a metadata batch of an earlier term", "index", index, "term", term, "stamp", stamp)
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.started {
		if d.replay == nil {
			d.replay = d.state.Replay()
		}
		return d.replay.Apply(int64(index), records)
	}
	next, delta, err := d.state.Next(int64(index), records)
	if err != nil {
		return err
	}
	d.becomeLocked(next, delta)
	return nil
}

func (d *Driver) becomeLocked(img *metadata.Image, delta *metadata.Delta) {
	d.state = img
	if d.started {
		d.committed = append(d.committed, change{delta: delta, img: img})
		d.wakeUp()
	}
}

// Snapshot is the whole applied state; the log calls it.
func (d *Driver) Snapshot() ([]byte, error) { return d.Image().Encode(), nil }

// Restore starts from a snapshot; the log calls it before Start.
func (d *Driver) Restore(snapshot []byte, index, _ uint64) error {
	img, err := metadata.Decode(snapshot)
	if err != nil {
		return err
	}
	if img.ClusterID != d.opts.ClusterID {
		return fmt.Errorf("the metadata log is of cluster %s, the data folder of cluster %s", img.ClusterID, d.opts.ClusterID)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.state = img
	return nil
}

// LeaderChange tells who decides from now on; the log calls it.
func (d *Driver) LeaderChange(_, term uint64, self bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	controller := int32(-1)
	d.term = 0
	if self {
		controller, d.term = d.opts.NodeID, term
	}
	d.becomeLocked(d.stateLocked().WithController(controller), &metadata.Delta{})
}
