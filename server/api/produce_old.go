package api

import (
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/barnabas-mq/barnabas/protocol"
	"github.com/barnabas-mq/barnabas/protocol/batch"
	"github.com/barnabas-mq/barnabas/storage"
)

// firstBatchProduce is the first version of Produce that carries record batches
// only. Those before it carry message sets of format v0 and v1, which are stored
// as batches; a batch is taken from them too, as Kafka always took it.
const firstBatchProduce = 3

// prepareOld makes a batch of what Produce before firstBatchProduce carries. It is
// nil for a set without a whole message. Nothing of it runs on an event loop.
func (pc *produceCall) prepareOld(records []byte, o batch.Options) (batch.View, error) {
	if pc.c.Net.OnLoop() {
		return nil, storage.ErrBusy
	}
	if batch.PeekMagic(records) == 2 {
		v, err := onlyBatchOld(records)
		if v == nil || err != nil {
			return nil, err
		}
		return pc.prepare(v, o)
	}
	quick := o
	if o.MaxDecodedBytes == 0 || o.MaxDecodedBytes > quickDecodedBytes {
		quick.MaxDecodedBytes = quickDecodedBytes
	}
	v, s, err := batch.ConvertUp(records, quick)
	if errors.Is(err, kerr.MessageTooLarge) && quick.MaxDecodedBytes != o.MaxDecodedBytes {
		pc.h.bulky <- struct{}{}
		defer func() { <-pc.h.bulky }()
		v, s, err = batch.ConvertUp(records, o)
	}
	if err == nil {
		pc.h.metrics.convertedUp(s.NumRecords)
	}
	return v, err
}

// onlyBatchOld is the one batch of a request that should carry messages, nil
// where it is not whole.
func onlyBatchOld(records []byte) (batch.View, error) {
	v, rest, err := batch.Next(records)
	switch {
	case errors.Is(err, batch.ErrTruncated):
		return nil, nil
	case err != nil:
		return nil, err
	}
	if _, _, err := batch.Next(rest); !errors.Is(err, batch.ErrTruncated) {
		return nil, protocol.Errorf(kerr.InvalidRecord, "only one record batch may be sent for a partition")
	}
	return v, nil
}

// firstStorageErrorProduce is the first version of Produce whose clients know
// KAFKA_STORAGE_ERROR.
const firstStorageErrorProduce = 4

// knownCode is a code as a client understands it that may be older than the code:
// one that asks for the leader again is in the right way with a broken disk too.
func knownCode(code, version, storageErrorSince int16) int16 {
	if code == kerr.KafkaStorageError.Code && version < storageErrorSince {
		return kerr.NotLeaderForPartition.Code
	}
	return code
}
