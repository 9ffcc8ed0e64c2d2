package replica

import (
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/barnabas-mq/barnabas/cluster/metadata"
	"github.com/barnabas-mq/barnabas/internal/clock"
	"github.com/barnabas-mq/barnabas/internal/park"
	"github.com/barnabas-mq/barnabas/protocol/batch"
	"github.com/barnabas-mq/barnabas/storage"
)

// fakeLog is a log in memory whose flushes and failures the test decides.
type fakeLog struct {
	mu      sync.Mutex
	batches []batch.View
	start   int64
	end     int64
	mark    int64
	epochs  []storage.TimestampOffset // LeaderEpoch and Offset only
	flush   bool
	flushes []flushWait
	failing error
	broken  error
	busy    bool
	synced  int
	// unstable is how far the last stable offset is behind the high watermark.
	unstable int64
}

type flushWait struct {
	upTo int64
	f    func(error)
}

func (l *fakeLog) Append(r storage.AppendRequest) (storage.AppendResult, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failing != nil {
		return storage.AppendResult{}, l.failing
	}
	if n := len(l.epochs); n > 0 && r.LeaderEpoch < l.epochs[n-1].LeaderEpoch {
		return storage.AppendResult{}, storage.ErrFencedEpoch
	}
	first := l.end
	for b := r.Batches; len(b) > 0; {
		v, rest, err := batch.Next(b)
		if err != nil {
			return storage.AppendResult{}, err
		}
		v.SetBaseOffset(l.end)
		v.SetPartitionLeaderEpoch(r.LeaderEpoch)
		l.batches = append(l.batches, append(batch.View(nil), v...))
		l.end = v.NextOffset()
		b = rest
	}
	return storage.AppendResult{FirstOffset: first, LastOffset: l.end - 1, LogStartOffset: l.start, FlushBeforeAck: l.flush}, nil
}

func (l *fakeLog) TryAppend(r storage.AppendRequest) (storage.AppendResult, error) {
	if l.busy {
		return storage.AppendResult{}, storage.ErrBusy
	}
	return l.Append(r)
}

func (l *fakeLog) StartVerification(storage.Verification, bool) (storage.VerificationGuard, error) {
	return 1, nil
}

// LastStableOffset is what the test says, or the high watermark.
func (l *fakeLog) LastStableOffset(highWatermark int64) (n int64) {
	l.locked(func() { n = highWatermark - l.unstable })
	return n
}

func (l *fakeLog) Producers() ([]storage.ProducerState, error) { return nil, nil }

func (l *fakeLog) Loaded() bool { return true }

func (l *fakeLog) Read(r storage.ReadRequest) (storage.ReadResult, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	res := storage.ReadResult{LogStartOffset: l.start, LogEndOffset: l.end}
	for _, v := range l.batches {
		if v.NextOffset() <= r.Offset {
			continue
		}
		if v.NextOffset() > r.Limit || len(res.Data)+len(v) > r.MaxBytes && !(r.AtLeastOne && len(res.Data) == 0) {
			break
		}
		res.Data = append(res.Data, v...)
	}
	return res, nil
}

func (l *fakeLog) locked(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f()
}

func (l *fakeLog) LogStartOffset() (n int64)     { l.locked(func() { n = l.start }); return n }
func (l *fakeLog) LogEndOffset() (n int64)       { l.locked(func() { n = l.end }); return n }
func (l *fakeLog) HighWatermark() (n int64)      { l.locked(func() { n = l.mark }); return n }
func (l *fakeLog) SetHighWatermark(n int64)      { l.locked(func() { l.mark = n }) }
func (l *fakeLog) Writable() (err error)         { l.locked(func() { err = l.broken }); return err }
func (l *fakeLog) Reconfigure(storage.LogConfig) {}

func (l *fakeLog) WhenFlushed(upTo int64, f func(error)) {
	l.locked(func() { l.flushes = append(l.flushes, flushWait{upTo, f}) })
}

// flushAll ends every flush that was asked for.
func (l *fakeLog) flushAll(err error) {
	var waits []flushWait
	l.locked(func() { waits, l.flushes = l.flushes, nil })
	for _, w := range waits {
		w.f(err)
	}
}

func (l *fakeLog) OffsetForTimestamp(ts int64) (storage.TimestampOffset, bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, v := range l.batches {
		off, at, ok, err := batch.OffsetForTimestamp(v, ts, l.start, 0)
		if ok || err != nil {
			return storage.TimestampOffset{Offset: off, TimestampMs: at, LeaderEpoch: v.PartitionLeaderEpoch()}, ok, err
		}
	}
	return storage.TimestampOffset{}, false, nil
}

func (l *fakeLog) MaxTimestamp() (best storage.TimestampOffset, ok bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, v := range l.batches {
		off, at, found, err := batch.OffsetOfMaxTimestamp(v, 0)
		if err != nil {
			return best, false, err
		}
		if found && (!ok || at > best.TimestampMs) {
			best, ok = storage.TimestampOffset{Offset: off, TimestampMs: at, LeaderEpoch: v.PartitionLeaderEpoch()}, true
		}
	}
	return best, ok, nil
}

func (l *fakeLog) CompactedTo() int64 { return -1 }

func (l *fakeLog) EndOffsetForEpoch(epoch int32) (int32, int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := len(l.epochs) - 1; i >= 0; i-- {
		switch e := l.epochs[i]; {
		case e.LeaderEpoch > epoch:
		case i == len(l.epochs)-1 && e.LeaderEpoch == epoch:
			return epoch, l.end
		case i == len(l.epochs)-1:
			return -1, -1
		default:
			return e.LeaderEpoch, l.epochs[i+1].Offset
		}
	}
	return -1, -1
}

func (l *fakeLog) OffsetsBefore(int64) ([]int64, error) {
	return []int64{l.LogEndOffset(), l.LogStartOffset()}, nil
}

func (l *fakeLog) EpochAt(offset int64) int32 {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := int32(-1)
	for _, e := range l.epochs {
		if e.Offset <= offset {
			at = e.LeaderEpoch
		}
	}
	return at
}

func (l *fakeLog) AssignEpoch(epoch int32) error {
	l.locked(func() {
		if n := len(l.epochs); n == 0 || l.epochs[n-1].LeaderEpoch < epoch {
			l.epochs = append(l.epochs, storage.TimestampOffset{LeaderEpoch: epoch, Offset: l.end})
		}
	})
	return nil
}

func (l *fakeLog) RecoveryPoint() int64 { return 0 }
func (l *fakeLog) Flush() error         { l.locked(func() { l.synced++ }); return nil }

func (l *fakeLog) DeleteRecordsTo(offset int64) (int64, error) {
	l.locked(func() { l.start = max(l.start, offset) })
	return l.LogStartOffset(), nil
}

// fakeStore has one log for every partition that was opened.
type fakeStore struct {
	mu      sync.Mutex
	logs    map[storage.TopicPartition]*fakeLog
	deleted []storage.TopicPartition
	opens   int
	found   map[storage.TopicPartition]bool
	failing error
	made    func(*fakeLog)
	// gate, where it is not nil, is what opening a log waits for.
	gate chan struct{}
}

func (s *fakeStore) OpenLog(tp storage.TopicPartition, _ storage.TopicID, _ storage.LogConfig) (Log, error) {
	if s.gate != nil {
		<-s.gate
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opens++
	if s.failing != nil {
		return nil, s.failing
	}
	l := s.logs[tp]
	if l == nil {
		l = &fakeLog{}
		if s.made != nil {
			s.made(l)
		}
		s.logs[tp] = l
	}
	return l, nil
}

func (s *fakeStore) Delete(tp storage.TopicPartition) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deleted = append(s.deleted, tp)
	delete(s.logs, tp)
	return nil
}

func (s *fakeStore) Found(tp storage.TopicPartition) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.found[tp]
}

// world is a manager of broker 1 over a fakeStore.
type world struct {
	t     *testing.T
	clk   *clock.Manual
	pool  *park.Pool
	store *fakeStore
	m     *Manager
	img   *metadata.Image
	told  []string
	cfg   TopicConfig
}

func newWorld(t *testing.T) *world {
	clk := clock.NewManual(time.Unix(1_700_000_000, 0))
	w := &world{
		t: t, clk: clk, pool: park.NewPool(clk, 2), store: &fakeStore{logs: map[storage.TopicPartition]*fakeLog{}},
		img: metadata.New("cluster"), cfg: TopicConfig{MinInSyncReplicas: 1, Log: storage.LogConfig{Delete: true}},
	}
	tell := func(what string) func(string, int32, int32) {
		return func(topic string, partition, epoch int32) {
			w.told = append(w.told, what+" "+storage.TopicPartition{Topic: topic, Partition: partition}.String()+" "+itoa(epoch))
		}
	}
	w.m = NewManager(Options{
		NodeID: 1, Store: w.store, Clock: clk, Log: slog.New(slog.DiscardHandler), Pool: w.pool,
		TopicConfig: func(*metadata.Image, string) TopicConfig { return w.cfg },
	}, Hooks{Elected: tell("elected"), Resigned: tell("resigned"), TopicsDeleted: func(ts []*metadata.Topic) {
		for _, t := range ts {
			w.told = append(w.told, "deleted "+t.Name)
		}
	}})
	return w
}

// publish replaces a topic's partitions and publishes the change; no partitions
// delete it.
func (w *world) publish(old, now *metadata.Topic) {
	w.m.OnMetadata(&metadata.Delta{Topics: []metadata.TopicChange{{Old: old, New: now}}}, w.img)
}

func topic(name string, parts ...*metadata.Partition) *metadata.Topic {
	for i, p := range parts {
		p.Index = int32(i)
	}
	return &metadata.Topic{Name: name, ID: metadata.TopicID{1, byte(len(name))}, Partitions: parts}
}

func led(leader, epoch int32, replicas ...int32) *metadata.Partition {
	return &metadata.Partition{Leader: leader, LeaderEpoch: epoch, Replicas: replicas, ISR: replicas}
}

func itoa(n int32) string { return storage.TopicPartition{Partition: n}.String()[1:] }

// started is a world whose first image is behind it.
func started(t *testing.T) *world {
	w := newWorld(t)
	w.m.OnMetadata(&metadata.Delta{}, w.img)
	return w
}

func (w *world) partition(name string, i int32) *Partition {
	w.t.Helper()
	p, ok := w.m.Partition(name, i)
	if !ok {
		w.t.Fatalf("no partition %s-%d", name, i)
	}
	return p
}

func (w *world) log(name string, i int32) *fakeLog {
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	return w.store.logs[storage.TopicPartition{Topic: name, Partition: i}]
}

func records(n int, ts int64) []byte {
	b := batch.NewBuilder(batch.BuilderOptions{})
	for i := range n {
		b.Add(ts+int64(i), nil, []byte("v"))
	}
	return b.Build()
}
