package api

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"golang.org/x/sync/semaphore"

	"github.com/barnabas-mq/barnabas/cluster/replica"
	"github.com/barnabas-mq/barnabas/protocol"
	"github.com/barnabas-mq/barnabas/protocol/batch"
)

const (
	// firstBatchFetch is the first version of Fetch that answers record batches.
	// Versions before it get message sets of format v1, and those before
	// firstV1Fetch of v0.
	firstBatchFetch = 4
	firstV1Fetch    = 2
	// firstFairFetch is the first version whose clients rotate the partitions of
	// their requests and expect one message from the first of them only (KIP-74).
	firstFairFetch = 3
	// firstZstdFetch is the first version whose clients know zstd (KIP-110).
	firstZstdFetch = 10
	// firstStorageErrorFetch is the first whose clients know KAFKA_STORAGE_ERROR.
	firstStorageErrorFetch = 6
)

// Records for an old client are converted in memory. oldAnswerMaxBytes bounds those of
// one answer, whatever the client asks for, unless its first batch alone is larger. A
// partition's are read by pieces of oldPieceBytes, or one batch that is larger, at most
// oldReadsMax of them: that many go on behind batches that have nothing for an old
// client, such as the markers of transactions, of which more than a million in a row
// are passed.
//
// All conversions together hold oldBytesMax. Room is asked for before the first byte is
// read and given back when the answer has been sent. A slow reader gives it back after
// oldHold: from then on only the bound of all unread responses counts its answer.
const (
	oldAnswerMaxBytes = 16 << 20
	oldPieceBytes     = 1 << 20
	oldReadsMax       = 100
	oldBytesMax       = 64 << 20
	oldHold           = 2 * time.Second
	// oldGrowth is how much larger than its batch a set of very small messages is.
	oldGrowth = 6
)

// oldFetch is what a Fetch before firstBatchFetch needs in addition.
type oldFetch struct {
	deadline time.Time
	// room is its part of oldBytesMax, nil before any; readBytes is what of it is for
	// stored batches, the rest is for messages.
	room      *room
	readBytes int
	// chargedBytes is what has been charged to the memory budget.
	chargedBytes int
}

// room is a part of a bound of memory.
type room struct {
	of    *semaphore.Weighted
	bytes atomic.Int64
}

// takeRoom waits for a part, which must not be above the whole.
func takeRoom(of *semaphore.Weighted, sizeBytes int) *room {
	r := &room{of: of}
	r.bytes.Store(int64(sizeBytes))
	// It has no error: there is no end to the wait.
	_ = of.Acquire(context.Background(), int64(sizeBytes))
	return r
}

// shrink gives back what is held above sizeBytes. At any time, by anyone.
func (r *room) shrink(sizeBytes int) {
	for n := int64(sizeBytes); ; {
		have := r.bytes.Load()
		if have <= n {
			return
		}
		if r.bytes.CompareAndSwap(have, n) {
			r.of.Release(have - n)
			return
		}
	}
}

func (r *room) letGo() { r.shrink(0) }

// readOlder reads for a version before firstZstdFetch. Before firstBatchFetch that only
// tells how much there is: convert reads it.
func (f *fetchCall) readOlder(p *replica.Partition, r replica.ReadRequest) (replica.ReadResult, error) {
	if err := f.refuseZstd(p); err != nil {
		return replica.ReadResult{}, err
	}
	r.AtLeastOne = f.oneAtLeast(r)
	return p.Read(r)
}

// oneAtLeast says that a read may give a batch that is larger than asked for. Clients
// before firstFairFetch would starve without.
func (f *fetchCall) oneAtLeast(r replica.ReadRequest) bool {
	return r.AtLeastOne || f.version < firstFairFetch && r.MaxBytes > 0
}

// againOld goes on after a wait on a goroutine of its own: it may have to wait for
// memory, which the pool's must not.
func (f *fetchCall) againOld() {
	f.parked.remove(f.waiter)
	f.wait = f.old.deadline.Sub(f.h.Clock.Now())
	if f.waiter.Expired() {
		f.wait = 0
	}
	go f.h.guard(f.c, f.first)
}

// convert replaces what look has found by messages, once there is memory for them.
func (f *fetchCall) convert() {
	got := f.got()
	if got == 0 {
		return
	}
	found := make([]bool, len(f.parts))
	for i := range f.parts {
		found[i] = f.parts[i].sizeBytes() > 0
		f.parts[i].read.Release()
	}
	f.hold(got)
	defer f.holdOnlyAnswer()
	if !f.parked.open() {
		return // nobody reads the answer
	}
	left, atLeastOne := min(f.maxBytes, f.messageBytes(got)), true
	for i := range f.parts {
		if !found[i] {
			continue
		}
		p := &f.parts[i]
		p.read, p.err = f.readOld(p.partition, f.request(p, left, atLeastOne))
		if n := p.sizeBytes(); n > 0 {
			left, atLeastOne = max(left-n, 0), false
		}
	}
}

// messageBytes is what stored batches may become.
func (f *fetchCall) messageBytes(storedBytes int) int {
	return max(min(oldGrowth*storedBytes, f.maxBytes), storedBytes, oldPieceBytes)
}

// hold waits for the memory to read and convert batches; nothing may be held yet.
func (f *fetchCall) hold(storedBytes int) {
	f.old.readBytes = max(storedBytes, oldPieceBytes)
	n := min(f.old.readBytes+f.messageBytes(storedBytes), oldBytesMax)
	f.old.room = takeRoom(f.h.converting, n)
	if more := n - f.old.chargedBytes; more > 0 {
		f.c.Net.Charge(more)
		f.old.chargedBytes = n
	}
}

// holdOnlyAnswer gives back what the conversion needed beyond its messages, and later
// those of a slow reader.
func (f *fetchCall) holdOnlyAnswer() {
	n := f.got()
	if n > 0 {
		f.h.Clock.AfterFunc(oldHold, f.old.room.letGo)
	}
	f.old.room.shrink(n)
}

// letGo gives back all that is held.
func (f *fetchCall) letGo() {
	if f.old != nil && f.old.room != nil {
		f.old.room.letGo()
	}
}

// readOld reads and converts for a version before firstBatchFetch. Batches that have
// nothing for such a client are passed over, so that it gets ahead; it can't be told to
// skip them.
func (f *fetchCall) readOld(p *replica.Partition, r replica.ReadRequest) (replica.ReadResult, error) {
	asked, atLeastOne := r, f.oneAtLeast(r)
	var set []byte
	var last replica.ReadResult
	r.AtLeastOne = true
	for range oldReadsMax {
		room := asked.MaxBytes - len(set)
		if r.MaxBytes = min(max(room, 1), oldPieceBytes); len(set) == 0 && r.Offset > asked.Offset {
			r.MaxBytes = oldPieceBytes
		}
		res, err := p.Read(r)
		if err != nil && len(set) > 0 {
			return last, nil // its error comes with the next Fetch
		} else if err != nil {
			return res, err
		}
		n := res.SizeBytes()
		larger := n > max(r.MaxBytes, room) && (len(set) > 0 || !atLeastOne)
		if n == 0 || larger || !f.mayRead(n, len(set)) {
			res.Release()
			res.Data = set
			return res, nil
		}
		next, err := f.convertDown(p, &res, set, asked)
		if err != nil {
			return replica.ReadResult{}, err
		}
		set = res.Data
		if next <= r.Offset || next >= res.HighWatermark || len(set) > 0 && len(set) >= asked.MaxBytes {
			return res, nil
		}
		r.Offset, last = next, res
	}
	if len(set) > 0 {
		return last, nil
	}
	return replica.ReadResult{}, protocol.Errorf(kerr.UnknownServerError, "nothing for Fetch v%d stands behind offset %d", f.version, asked.Offset)
}

// mayRead says that there is memory for a batch behind those that were found. The first
// of an answer gets it in any case.
func (f *fetchCall) mayRead(sizeBytes, setBytes int) bool {
	if sizeBytes <= f.old.readBytes {
		return true
	}
	if setBytes > 0 || f.got() > 0 {
		return false
	}
	f.letGo() // nobody waits while holding some
	f.hold(sizeBytes)
	return true
}

// convertDown replaces what was read by set with the messages of it added, from the
// asked offset on. next is where a read may go on.
func (f *fetchCall) convertDown(p *replica.Partition, res *replica.ReadResult, set []byte, asked replica.ReadRequest) (next int64, err error) {
	stored, err := wholeRead(res)
	res.Release()
	if err != nil {
		return 0, protocol.Errorf(kerr.KafkaStorageError, "convert %v for Fetch v%d: %w", p.TopicPartition(), f.version, err)
	}
	o := batch.DownOptions{FromOffset: asked.Offset, Set: set, MaxBytes: asked.MaxBytes, MaxDecodedBytes: p.Config().Batch.MaxDecodedBytes}
	if f.version >= firstV1Fetch {
		o.Magic = 1
	}
	d, err := f.convertQuickly(stored, o)
	if err != nil {
		return 0, fmt.Errorf("convert %v for Fetch v%d: %w", p.TopicPartition(), f.version, err)
	}
	f.h.metrics.convertedDown(d.NumRecords)
	res.Data = d.Set
	return d.NextOffset, nil
}

// convertQuickly is ConvertDown, one after the other where it may take long or
// much memory.
func (f *fetchCall) convertQuickly(stored []byte, o batch.DownOptions) (batch.Down, error) {
	if len(stored) <= quickDecodedBytes {
		quick := o
		quick.MaxDecodedBytes = quickDecodedBytes
		d, err := batch.ConvertDown(stored, quick)
		if !errors.Is(err, kerr.MessageTooLarge) {
			return d, err
		}
	}
	f.h.bulky <- struct{}{}
	defer func() { <-f.h.bulky }()
	return batch.ConvertDown(stored, o)
}

// wholeRead is what was read, in memory.
func wholeRead(res *replica.ReadResult) ([]byte, error) {
	if res.Region == nil {
		return res.Data, nil
	}
	b := make([]byte, res.Region.Len())
	n, err := res.Region.ReadAt(b, 0)
	if n < len(b) {
		return nil, fmt.Errorf("read %d of %d bytes: %w", n, len(b), err)
	}
	return b, nil
}

// refuseZstd fails the read of a topic whose records are stored in zstd for
// versions that can't tell them from garbage, as in Kafka. What single producers
// compressed with zstd is not looked for.
func (f *fetchCall) refuseZstd(p *replica.Partition) error {
	if o := &p.Config().Batch; o.Recompress && o.Codec == batch.Zstd {
		return protocol.Errorf(kerr.UnsupportedCompressionType, "zstd needs Fetch v%d or newer", firstZstdFetch)
	}
	return nil
}
