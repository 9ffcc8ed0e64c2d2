package api

import (
	"bytes"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/cluster/metadata"
	"github.com/barnabas-mq/barnabas/cluster/replica"
)

// bigValues makes a topic of one partition with n values of a fourth of a megabyte, in
// one segment.
func (d *dataBroker) bigValues(c *testClient, n int) {
	d.t.Helper()
	d.make("t", 1, func(c *replica.TopicConfig, _ *metadata.Partition) { c.Log.SegmentBytes = 64 << 20 })
	for i := range n {
		c.mustProduce("t", 0, string(bytes.Repeat([]byte{byte(i)}, 256<<10)))
	}
}

// oldGreedyFetch asks for two gigabytes.
func oldGreedyFetch(offset int64) *kmsg.FetchRequest {
	req := fetchRequest("t", [16]byte{}, 0, offset)
	req.MaxBytes = 2<<30 - 1
	req.Topics[0].Partitions[0].PartitionMaxBytes = 2<<30 - 1
	return req
}

func TestOldAnswerIsBounded(t *testing.T) {
	d := newDataBroker(t)
	c := d.dial("client")
	const n = 80
	d.bigValues(c, n)
	for version := int16(0); version < firstBatchFetch; version++ {
		answers := 0
		for offset := int64(0); offset < n; answers++ {
			set := askAs[*kmsg.FetchResponse](c, version, oldGreedyFetch(offset)).Topics[0].Partitions[0].RecordBatches
			first, vs := oldContents(t, magicOf(version), set)
			if first != offset || len(set) > oldAnswerMaxBytes || len(set) < oldAnswerMaxBytes/2 && offset+int64(len(vs)) < n {
				t.Fatalf("v%d from %d: %d bytes from %d", version, offset, len(set), first)
			}
			offset += int64(len(vs))
		}
		if answers != 2 {
			t.Errorf("v%d: %d answers", version, answers)
		}
	}
}

// TestOldFetchAsksForMemoryFirst leaves no room for conversions.
func TestOldFetchAsksForMemoryFirst(t *testing.T) {
	d := newDataBroker(t)
	d.bigValues(d.dial("producer"), 8)
	if !d.h.converting.TryAcquire(oldBytesMax) {
		t.Fatal("the memory is taken from the start")
	}
	c := d.dial("consumer")
	got := later[*kmsg.FetchResponse](c, 1, oldGreedyFetch(0))
	until(t, "a request that waits for memory", func() bool {
		// Behind one who waits nobody gets even a byte of what is free.
		d.h.converting.Release(1)
		waits := !d.h.converting.TryAcquire(1)
		if waits {
			d.h.converting.Release(oldBytesMax - 1)
		}
		return waits
	})
	if row := soon(t, got).Topics[0].Partitions[0]; len(row.RecordBatches) < 8*256<<10 {
		t.Errorf("%d bytes", len(row.RecordBatches))
	}
	until(t, "the memory that an answer held", func() bool { return d.h.converting.TryAcquire(oldBytesMax) })
}

// TestOldAnswerHoldsItsMemoryUntilItIsRead keeps an answer unread, on a connection
// whose other end has room for none of it.
func TestOldAnswerHoldsItsMemoryUntilItIsRead(t *testing.T) {
	d := newDataBroker(t)
	d.bigValues(d.dial("producer"), 16)
	c := d.dial("consumer")
	req := oldGreedyFetch(0)
	req.SetVersion(1)
	if _, err := c.conn.Write(kmsg.NewRequestFormatter().AppendRequest(nil, req, 1)); err != nil {
		t.Fatal(err)
	}
	free := func(sizeBytes int64) bool {
		ok := d.h.converting.TryAcquire(sizeBytes)
		if ok {
			d.h.converting.Release(sizeBytes)
		}
		return ok
	}
	until(t, "an answer of four megabytes", func() bool { return !free(oldBytesMax) && free(oldBytesMax-5<<20) })
	d.clk.Advance(oldHold - 1)
	if free(oldBytesMax - 4<<20) {
		t.Error("an unread answer holds no memory")
	}
	d.clk.Advance(1)
	until(t, "the memory of a slow reader", func() bool { return d.h.converting.TryAcquire(oldBytesMax) })
}
