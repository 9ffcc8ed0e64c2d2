package replica

import (
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/barnabas-mq/barnabas/cluster/metadata"
	"github.com/barnabas-mq/barnabas/internal/park"
	"github.com/barnabas-mq/barnabas/protocol"
	"github.com/barnabas-mq/barnabas/storage"
)

func wantCode(t *testing.T, err error, want *kerr.Error) {
	t.Helper()
	if got := protocol.Code(err); want == nil && err != nil || want != nil && got != want.Code {
		t.Fatalf("error %v, want %v", err, want)
	}
}

func mustAppend(t *testing.T, p *Partition, n int, acks int16) Appended {
	t.Helper()
	a, err := p.Append(records(n, 1000), AppendOptions{Acks: acks, LeaderEpoch: -1})
	if err != nil {
		t.Fatalf("append: %v", err)
	}
	return a
}

func consumer(offset int64) ReadRequest {
	return ReadRequest{Offset: offset, MaxBytes: 1 << 20, AtLeastOne: true, LeaderEpoch: -1, LastFetchedEpoch: -1, Follower: -1}
}

// parkOnAck parks a waiter as a produce does and returns where its end is seen.
func parkOnAck(w *world, p *Partition, a Appended) chan error {
	end := make(chan error, 1)
	k := new(Watch)
	var waiter *park.Waiter
	waiter = w.pool.NewWaiter(func() bool {
		k.Stop()
		done, err := p.WatchAck(&a, waiter, k)
		if done {
			end <- err
		}
		return done
	})
	waiter.Wake()
	waiter.Park(park.Forever)
	w.pool.WaitIdle()
	return end
}

func notYet(t *testing.T, end chan error) {
	t.Helper()
	select {
	case err := <-end:
		t.Fatalf("answered too early, with %v", err)
	default:
	}
}

func TestOneReplicaAcksAtOnce(t *testing.T) {
	w := started(t)
	w.publish(nil, topic("t", led(1, 0, 1)))
	p := w.partition("t", 0)
	a := mustAppend(t, p, 3, AcksAll)
	if done, err := p.Acked(&a); !done || err != nil {
		t.Fatalf("acked %v, %v; with one replica acks=all is done when it is written", done, err)
	}
	if p.HighWatermark() != 3 || w.log("t", 0).HighWatermark() != 3 {
		t.Fatalf("high watermark %d, the log knows %d; want 3", p.HighWatermark(), w.log("t", 0).HighWatermark())
	}
	res, err := p.Read(consumer(0))
	if err != nil || res.SizeBytes() == 0 || res.HighWatermark != 3 || res.LastStableOffset != 3 {
		t.Fatalf("read %+v, %v", res, err)
	}
}

func TestFlushBeforeAck(t *testing.T) {
	w := started(t)
	w.store.made = func(l *fakeLog) { l.flush = true }
	w.publish(nil, topic("t", led(1, 0, 1)))
	p, log := w.partition("t", 0), w.log("t", 0)
	one, all := mustAppend(t, p, 1, 1), mustAppend(t, p, 1, AcksAll)
	endOne, endAll := parkOnAck(w, p, one), parkOnAck(w, p, all)
	notYet(t, endOne)
	notYet(t, endAll)
	if res, _ := p.Read(consumer(0)); res.HighWatermark != 0 || res.SizeBytes() != 0 {
		t.Fatalf("records that are not on disk are visible: %+v", res)
	}
	log.flushAll(nil)
	w.pool.WaitIdle()
	wantCode(t, <-endOne, nil)
	wantCode(t, <-endAll, nil)
	if p.HighWatermark() != 2 {
		t.Fatalf("high watermark %d after the flush, want 2", p.HighWatermark())
	}
}

func TestFailedFlushFailsTheProduce(t *testing.T) {
	w := started(t)
	w.store.made = func(l *fakeLog) { l.flush = true }
	w.publish(nil, topic("t", led(1, 0, 1)))
	p, log := w.partition("t", 0), w.log("t", 0)
	end := parkOnAck(w, p, mustAppend(t, p, 1, 1))
	log.locked(func() { log.failing = storage.ErrOffline })
	log.flushAll(errors.New("input/output error"))
	w.pool.WaitIdle()
	wantCode(t, <-end, kerr.KafkaStorageError)
	_, err := p.Append(records(1, 0), AppendOptions{Acks: 1, LeaderEpoch: -1})
	wantCode(t, err, kerr.KafkaStorageError)
	// The log is back, without the record.
	log.locked(func() { log.failing, log.end, log.batches, log.flush = nil, 0, nil, false })
	w.m.LogChanged(p.TopicPartition())
	if a := mustAppend(t, p, 1, AcksAll); a.FirstOffset != 0 || p.HighWatermark() != 1 {
		t.Fatalf("first offset %d, high watermark %d; want 0 and 1", a.FirstOffset, p.HighWatermark())
	}
}

func TestFollowersMoveTheHighWatermark(t *testing.T) {
	w := started(t)
	now := topic("t", led(1, 3, 1, 2, 3))
	w.publish(nil, now)
	p := w.partition("t", 0)
	end := parkOnAck(w, p, mustAppend(t, p, 5, AcksAll))
	fetch := func(id int32, offset int64) ReadResult {
		t.Helper()
		r := consumer(offset)
		r.Follower = id
		res, err := p.Read(r)
		if err != nil {
			t.Fatalf("broker %d fetches at %d: %v", id, offset, err)
		}
		return res
	}
	if res := fetch(2, 0); res.SizeBytes() == 0 {
		t.Fatal("a follower sees nothing beyond the high watermark")
	}
	fetch(2, 5)
	w.pool.WaitIdle()
	notYet(t, end) // broker 3 is in sync and has not been heard of
	fetch(3, 0)
	notYet(t, end)
	fetch(3, 5)
	w.pool.WaitIdle()
	wantCode(t, <-end, nil)
	if p.HighWatermark() != 5 {
		t.Fatalf("high watermark %d, want 5", p.HighWatermark())
	}
	r := consumer(0)
	r.Follower = 9
	_, err := p.Read(r)
	wantCode(t, err, kerr.NotLeaderForPartition)
}

func TestShrunkISRCompletesWithoutTraffic(t *testing.T) {
	w := started(t)
	now := topic("t", led(1, 3, 1, 2))
	w.publish(nil, now)
	p := w.partition("t", 0)
	end := parkOnAck(w, p, mustAppend(t, p, 5, AcksAll))
	notYet(t, end)
	next := topic("t", &metadata.Partition{Leader: 1, LeaderEpoch: 3, PartitionEpoch: 1, Replicas: []int32{1, 2}, ISR: []int32{1}})
	w.publish(now, next)
	w.pool.WaitIdle()
	wantCode(t, <-end, nil)
}

func TestMinInSyncReplicas(t *testing.T) {
	w := started(t)
	w.cfg.MinInSyncReplicas = 2
	now := topic("t", &metadata.Partition{Leader: 1, Replicas: []int32{1, 2}, ISR: []int32{1}})
	w.publish(nil, now)
	p := w.partition("t", 0)
	_, err := p.Append(records(1, 0), AppendOptions{Acks: AcksAll, LeaderEpoch: -1})
	wantCode(t, err, kerr.NotEnoughReplicas)
	mustAppend(t, p, 1, 1)
	if p.HighWatermark() != 0 {
		t.Fatal("the high watermark moves while too few replicas are in sync")
	}
	// Enough for the append, too few when it is to be answered.
	two := topic("t", &metadata.Partition{Leader: 1, PartitionEpoch: 1, Replicas: []int32{1, 2}, ISR: []int32{1, 2}})
	w.publish(now, two)
	a := mustAppend(t, p, 1, AcksAll)
	r := consumer(2)
	r.Follower = 2
	if _, err := p.Read(r); err != nil {
		t.Fatal(err)
	}
	w.publish(two, topic("t", &metadata.Partition{Leader: 1, PartitionEpoch: 2, Replicas: []int32{1, 2}, ISR: []int32{1}}))
	done, err := p.Acked(&a)
	if !done {
		t.Fatal("not answered")
	}
	wantCode(t, err, kerr.NotEnoughReplicasAfterAppend)
}

func TestLeaderEpochs(t *testing.T) {
	w := started(t)
	w.publish(nil, topic("t", led(1, 4, 1)))
	p := w.partition("t", 0)
	for _, c := range []struct {
		epoch int32
		want  *kerr.Error
	}{{-1, nil}, {4, nil}, {3, kerr.FencedLeaderEpoch}, {5, kerr.UnknownLeaderEpoch}} {
		r := consumer(0)
		r.LeaderEpoch = c.epoch
		_, err := p.Read(r)
		wantCode(t, err, c.want)
		_, err = p.Offset(OffsetQuery{TimestampMs: TimestampLatest, LeaderEpoch: c.epoch})
		wantCode(t, err, c.want)
		_, err = p.EndOffsetForEpoch(c.epoch, 4)
		wantCode(t, err, c.want)
		_, err = p.Append(records(1, 0), AppendOptions{Acks: 1, LeaderEpoch: c.epoch})
		wantCode(t, err, c.want)
	}
	if latest := w.log("t", 0).EpochAt(0); latest != 4 {
		t.Fatalf("the log's epoch is %d, want 4 although nothing was written when it began", latest)
	}
}

func TestDemotionFailsWaitingProducesFirst(t *testing.T) {
	w := started(t)
	now := topic("t", led(1, 3, 1, 2))
	w.publish(nil, now)
	p := w.partition("t", 0)
	end := parkOnAck(w, p, mustAppend(t, p, 1, AcksAll))
	next := topic("t", led(2, 4, 1, 2))
	w.publish(now, next)
	w.pool.WaitIdle()
	wantCode(t, <-end, kerr.NotLeaderForPartition)
	_, err := p.Append(records(1, 0), AppendOptions{Acks: 1, LeaderEpoch: -1})
	wantCode(t, err, kerr.NotLeaderForPartition)
	// Leading again does not revive what was appended before.
	a := Appended{ticket: ticket{end: 1, epoch: 3}}
	w.publish(next, topic("t", led(1, 5, 1, 2)))
	if _, err := p.Read(consumer(0)); err != nil {
		t.Fatal(err)
	}
	_, err = p.Acked(&a)
	wantCode(t, err, kerr.NotLeaderForPartition)
}

func TestNewLeaderHidesOffsetsUntilFollowersHaveThem(t *testing.T) {
	w := started(t)
	w.store.made = func(l *fakeLog) { l.end, l.mark = 10, 4 }
	w.publish(nil, topic("t", led(1, 7, 1, 2)))
	p := w.partition("t", 0)
	_, err := p.Offset(OffsetQuery{TimestampMs: TimestampLatest, LeaderEpoch: -1})
	wantCode(t, err, kerr.OffsetNotAvailable)
	if at, err := p.Offset(OffsetQuery{TimestampMs: TimestampLatest, LeaderEpoch: -1, Follower: true}); err != nil || at.Offset != 10 {
		t.Fatalf("a follower is told %+v, %v; want the log's end, 10", at, err)
	}
	r := consumer(10)
	r.Follower = 2
	if _, err := p.Read(r); err != nil {
		t.Fatal(err)
	}
	if at, err := p.Offset(OffsetQuery{TimestampMs: TimestampLatest, LeaderEpoch: -1}); err != nil || at.Offset != 10 || at.LeaderEpoch != 7 {
		t.Fatalf("latest %+v, %v; want 10 in epoch 7", at, err)
	}
}

func TestDeletedTopicWakesWhoWaits(t *testing.T) {
	w := started(t)
	now := topic("t", led(1, 0, 1, 2))
	w.publish(nil, now)
	p := w.partition("t", 0)
	end := parkOnAck(w, p, mustAppend(t, p, 1, AcksAll))
	res, err := p.Read(consumer(0))
	if err != nil {
		t.Fatal(err)
	}
	fetched := make(chan error, 1)
	var k Watch
	waiter := w.pool.NewWaiter(func() bool {
		_, err := p.Read(consumer(0))
		fetched <- err
		return true
	})
	if !p.WatchRead(&res, waiter, &k) {
		t.Fatal("nothing has changed, yet the watch was refused")
	}
	waiter.Park(time.Hour)
	w.publish(now, nil)
	w.pool.WaitIdle()
	wantCode(t, <-end, kerr.UnknownTopicOrPartition)
	wantCode(t, <-fetched, kerr.UnknownTopicOrPartition)
	if _, ok := w.m.Partition("t", 0); ok || !slices.Contains(w.store.deleted, storage.TopicPartition{Topic: "t"}) || !slices.Contains(w.told, "deleted t") {
		t.Fatalf("found %v, files deleted %v, told %v", ok, w.store.deleted, w.told)
	}
	// The same name again is another partition.
	w.publish(nil, topic("t", led(1, 0, 1)))
	if again := w.partition("t", 0); again == p || again.HighWatermark() != 0 {
		t.Fatal("a topic that was made again inherits something")
	}
}

func TestWatchRefusesWhatHasChanged(t *testing.T) {
	w := started(t)
	w.publish(nil, topic("t", led(1, 0, 1)))
	p := w.partition("t", 0)
	res, _ := p.Read(consumer(0))
	mustAppend(t, p, 1, 1) // between the read and the watch
	waiter := w.pool.NewWaiter(func() bool { return true })
	var k Watch
	if p.WatchRead(&res, waiter, &k) {
		t.Fatal("the append between read and watch was missed")
	}
	k.Stop()
}

func TestFetchIsWokenByBytes(t *testing.T) {
	w := started(t)
	w.publish(nil, topic("t", led(1, 0, 1), led(1, 0, 1)))
	size := int64(len(records(1, 0)))
	var watches [2]Watch
	woken := 0
	waiter := w.pool.NewWaiter(func() bool { woken++; return true })
	waiter.Need(3 * size)
	for i := range watches {
		p := w.partition("t", int32(i))
		mustAppend(t, p, 1, 1)
		mustAppend(t, p, 1, 1) // what is there already does not count
		res, _ := p.Read(consumer(2))
		p.WatchRead(&res, waiter, &watches[i])
	}
	waiter.Park(time.Hour)
	mustAppend(t, w.partition("t", 0), 1, 1)
	mustAppend(t, w.partition("t", 1), 1, 1)
	w.pool.WaitIdle()
	if woken != 0 {
		t.Fatal("woken with two thirds of min.bytes")
	}
	mustAppend(t, w.partition("t", 0), 1, 1)
	w.pool.WaitIdle()
	if woken != 1 {
		t.Fatalf("woken %d times with all of min.bytes, want once", woken)
	}
}

func TestColdPartitionOpensOnFirstUse(t *testing.T) {
	w := newWorld(t)
	w.publish(nil, topic("t", led(1, 0, 1))) // the first image
	p := w.partition("t", 0)
	if w.store.opens != 0 || !p.Cold() {
		t.Fatalf("opened %d logs before anybody asked", w.store.opens)
	}
	w.store.failing = errors.New("input/output error")
	_, err := p.Read(consumer(0))
	wantCode(t, err, kerr.KafkaStorageError)
	_, err = p.Read(consumer(0))
	wantCode(t, err, kerr.KafkaStorageError)
	if w.store.opens != 1 {
		t.Fatalf("a log that can't be opened was tried %d times at once", w.store.opens)
	}
	w.store.failing = nil
	w.clk.Advance(retryOpenAfter)
	if _, err := p.Read(consumer(0)); err != nil || p.Cold() {
		t.Fatalf("after the disk is well: %v", err)
	}
}

func TestNoWaitDoesNothingWhenItWouldWait(t *testing.T) {
	w := newWorld(t)
	w.publish(nil, topic("t", led(1, 0, 1)))
	p := w.partition("t", 0)
	o := AppendOptions{Acks: 1, LeaderEpoch: -1, NoWait: true}
	if _, err := p.Append(records(1, 0), o); !errors.Is(err, storage.ErrBusy) || w.store.opens != 0 {
		t.Fatalf("a cold partition: %v, %d opens; want ErrBusy and none", err, w.store.opens)
	}
	mustAppend(t, p, 1, 1)
	w.log("t", 0).busy = true
	if _, err := p.Append(records(1, 0), o); !errors.Is(err, storage.ErrBusy) {
		t.Fatalf("a log in use: %v, want ErrBusy", err)
	}
	w.log("t", 0).busy = false
	if a, err := p.Append(records(1, 0), o); err != nil || a.FirstOffset != 1 {
		t.Fatalf("%+v, %v", a, err)
	}
}

func TestOffsets(t *testing.T) {
	w := started(t)
	w.publish(nil, topic("t", led(1, 2, 1)))
	p := w.partition("t", 0)
	if _, err := p.Append(records(10, 1000), AppendOptions{Acks: 1, LeaderEpoch: -1}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ ts, offset, at int64 }{
		{TimestampLatest, 10, -1}, {TimestampEarliest, 0, -1}, {TimestampEarliestLocal, 0, -1},
		{TimestampMax, 9, 1009}, {TimestampLatestTiered, -1, -1}, {TimestampEarliestPendingUpload, -1, -1},
		{1004, 4, 1004}, {0, 0, 1000}, {1010, -1, -1},
	} {
		got, err := p.Offset(OffsetQuery{TimestampMs: c.ts, LeaderEpoch: -1})
		if err != nil || got.Offset != c.offset || got.TimestampMs != c.at {
			t.Errorf("timestamp %d: %+v, %v; want offset %d at %d", c.ts, got, err, c.offset, c.at)
		}
	}
	for _, c := range []struct {
		offset int64
		low    int64
		want   *kerr.Error
	}{{11, -1, kerr.OffsetOutOfRange}, {-2, -1, kerr.OffsetOutOfRange}, {4, 4, nil}, {2, 4, nil}, {-1, 10, nil}} {
		low, err := p.DeleteRecords(c.offset)
		wantCode(t, err, c.want)
		if low != c.low {
			t.Errorf("delete to %d: low watermark %d, want %d", c.offset, low, c.low)
		}
	}
	_, err := p.Read(consumer(3))
	wantCode(t, err, kerr.OffsetOutOfRange)
	_, err = p.Read(consumer(11))
	wantCode(t, err, kerr.OffsetOutOfRange)
	w.cfg.Log.Delete = false
	w.m.OnMetadata(&metadata.Delta{Configs: []metadata.ConfigResource{metadata.TopicResource("t")}}, w.img)
	_, err = p.DeleteRecords(10)
	wantCode(t, err, kerr.PolicyViolation)
}

func TestDivergingEpoch(t *testing.T) {
	w := started(t)
	now := topic("t", led(1, 1, 1))
	w.publish(nil, now)
	p := w.partition("t", 0)
	mustAppend(t, p, 5, 1)
	w.publish(now, topic("t", led(1, 3, 1)))
	mustAppend(t, p, 5, 1)
	read := func(offset int64, epoch int32) (ReadResult, error) {
		r := consumer(offset)
		r.LastFetchedEpoch = epoch
		return p.Read(r)
	}
	if res, err := read(5, 1); err != nil || res.Diverging != nil || res.SizeBytes() == 0 {
		t.Fatalf("a reader in step: %+v, %v", res, err)
	}
	for _, c := range []struct {
		offset int64
		epoch  int32
		want   EpochEnd
	}{{8, 1, EpochEnd{1, 5}}, {8, 2, EpochEnd{1, 5}}} {
		res, err := read(c.offset, c.epoch)
		if err != nil || res.Diverging == nil || *res.Diverging != c.want || res.SizeBytes() != 0 {
			t.Errorf("offset %d epoch %d: %+v, %v; want %+v and no records", c.offset, c.epoch, res.Diverging, err, c.want)
		}
	}
	_, err := read(5, 9)
	wantCode(t, err, kerr.OffsetOutOfRange)
}

func TestHooksOfInternalTopics(t *testing.T) {
	w := started(t)
	one := topic("__consumer_offsets", led(1, 0, 1, 2), led(2, 0, 1, 2))
	one.Internal = true
	w.publish(nil, one)
	two := topic("__consumer_offsets", led(2, 1, 1, 2), led(1, 1, 1, 2))
	two.Internal = true
	w.publish(one, two)
	three := topic("__consumer_offsets", led(2, 1, 1, 2), led(1, 2, 1, 2))
	three.Internal = true
	w.publish(two, three)
	w.publish(three, nil)
	want := []string{
		"elected __consumer_offsets-0 0", "resigned __consumer_offsets-0 1", "elected __consumer_offsets-1 1", "elected __consumer_offsets-1 2",
		"resigned __consumer_offsets-0 1", "resigned __consumer_offsets-1 2", "deleted __consumer_offsets",
	}
	if !slices.Equal(w.told, want) {
		t.Fatalf("told\n%q\nwant\n%q", w.told, want)
	}
}

func TestCoordinatorLogWaitsForTheHighWatermark(t *testing.T) {
	w := started(t)
	w.publish(nil, topic("__consumer_offsets", led(1, 5, 1, 2)))
	log, err := w.m.CoordinatorLog("__consumer_offsets", 0)
	if err != nil {
		t.Fatal(err)
	}
	end := make(chan error, 2)
	first, err := log.Append(5, records(3, 0), func(err error) { end <- err })
	if err != nil || first != 0 || log.LogEndOffset() != 3 || log.HighWatermark() != 0 {
		t.Fatalf("first %d, %v; log end %d, high watermark %d", first, err, log.LogEndOffset(), log.HighWatermark())
	}
	log.WhenCommitted(5, 3, func(err error) { end <- err })
	w.pool.WaitIdle()
	notYet(t, end)
	b, err := log.Read(0, 1)
	if err != nil || len(b) == 0 {
		t.Fatalf("a coordinator can't read what is not committed yet: %v", err)
	}
	_, err = log.Append(4, records(1, 0), func(error) { t.Error("called although Append failed") })
	wantCode(t, err, kerr.FencedLeaderEpoch)
	r := consumer(3)
	r.Follower = 2
	if _, err := w.partition("__consumer_offsets", 0).Read(r); err != nil {
		t.Fatal(err)
	}
	w.pool.WaitIdle()
	wantCode(t, <-end, nil)
	wantCode(t, <-end, nil)
}

// Whether a partition was ever written is told without opening it.
func TestWritten(t *testing.T) {
	w := newWorld(t)
	tp := storage.TopicPartition{Topic: "__consumer_offsets"}
	if w.m.Written(tp.Topic, 0) {
		t.Error("a partition that is not here was written")
	}
	w.publish(nil, topic(tp.Topic, led(1, 5, 1)))
	opens := w.store.opens
	if w.m.Written(tp.Topic, 0) {
		t.Error("a partition without a folder was written")
	}
	w.store.found = map[storage.TopicPartition]bool{tp: true}
	if !w.m.Written(tp.Topic, 0) || w.store.opens != opens {
		t.Errorf("one with a folder was not, or it was opened (%d times)", w.store.opens-opens)
	}
	w.store.found = nil
	log, err := w.m.CoordinatorLog(tp.Topic, 0)
	if err != nil {
		t.Fatal(err)
	}
	if w.m.Written(tp.Topic, 0) {
		t.Error("an open partition without records was written")
	}
	if _, err := log.Append(5, records(1, 0), func(error) {}); err != nil || !w.m.Written(tp.Topic, 0) {
		t.Errorf("one with a record was not (%v)", err)
	}
}

func TestHotEnd(t *testing.T) {
	var h hot
	h.reset(100)
	if h.from() != 100 {
		t.Fatalf("hot from %d after a start, want the log end", h.from())
	}
	end := int64(100)
	for range 10 {
		end++
		h.appended(end, hotBytes/2)
	}
	if h.from() < end-2 || h.from() > end-1 {
		t.Fatalf("hot from %d of %d, want the last one or two halves", h.from(), end)
	}
	if h.from() == math.MaxInt64 {
		t.Fatal("nothing is hot")
	}
}
