package api

import (
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"

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

// oldReadsMax bounds how often a read goes on behind batches that have nothing
// for an old client, such as the markers of transactions, and oldSkipBytes is how
// much is read then: more than a million markers in a row are passed.
const (
	oldReadsMax  = 100
	oldSkipBytes = 1 << 20
)

// readOlder reads for a version before firstZstdFetch.
func (f *fetchCall) readOlder(p *replica.Partition, r replica.ReadRequest) (replica.ReadResult, error) {
	if err := f.refuseZstd(p); err != nil {
		return replica.ReadResult{}, err
	}
	if f.version < firstBatchFetch {
		return f.readOld(p, r)
	}
	return p.Read(r)
}

// readOld reads and converts for a version before firstBatchFetch. Batches that
// have nothing for such a client are passed over, so that it gets ahead; it can't
// be told to skip them.
func (f *fetchCall) readOld(p *replica.Partition, r replica.ReadRequest) (replica.ReadResult, error) {
	if f.version < firstFairFetch && r.MaxBytes > 0 {
		r.AtLeastOne = true
	}
	from := r.Offset
	limit := r.MaxBytes
	for range oldReadsMax {
		res, err := p.Read(r)
		if err != nil || res.SizeBytes() == 0 {
			return res, err
		}
		next, err := f.convertDown(p, &res, from, limit)
		if err != nil {
			return replica.ReadResult{}, err
		}
		if res.SizeBytes() > 0 || next <= r.Offset || next >= res.HighWatermark {
			return res, nil
		}
		r.Offset, r.MaxBytes = next, max(limit, oldSkipBytes)
	}
	return replica.ReadResult{}, protocol.Errorf(kerr.UnknownServerError, "nothing for Fetch v%d stands behind offset %d", f.version, from)
}

// convertDown replaces what was read by messages from offset from on. next is
// where a read may go on when there are none.
func (f *fetchCall) convertDown(p *replica.Partition, res *replica.ReadResult, from int64, maxBytes int) (next int64, err error) {
	stored, err := wholeRead(res)
	res.Release()
	if err != nil {
		return 0, protocol.Errorf(kerr.KafkaStorageError, "convert %v for Fetch v%d: %w", p.TopicPartition(), f.version, err)
	}
	o := batch.DownOptions{FromOffset: from, MaxBytes: maxBytes, MaxDecodedBytes: p.Config().Batch.MaxDecodedBytes}
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

// chargeOld counts converted records, which lie in memory until they are sent,
// against the memory budget.
func (f *fetchCall) chargeOld() {
	if n := f.got(); f.version < firstBatchFetch && n > f.charged {
		f.c.Net.Charge(n - f.charged)
		f.charged = n
	}
}
