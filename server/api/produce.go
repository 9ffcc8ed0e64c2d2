package api

import (
	"errors"
	"runtime"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/cluster/metadata"
	"github.com/barnabas-mq/barnabas/cluster/replica"
	"github.com/barnabas-mq/barnabas/internal/park"
	"github.com/barnabas-mq/barnabas/protocol"
	"github.com/barnabas-mq/barnabas/protocol/batch"
	"github.com/barnabas-mq/barnabas/storage"
)

// produce serves Produce v0 to v13: one batch of message format v2 for each
// partition, or a message set of an older format before v3. Topic ids are KIP-516,
// record errors KIP-467, leaders and endpoints KIP-951.
func (h *Handlers) produce(c *Call, req *kmsg.ProduceRequest, resp *kmsg.ProduceResponse) {
	pc := produceCall{h: h, c: c, req: req, resp: resp, img: h.Image(), nowMs: h.Clock.Now().UnixMilli()}
	if before, ok := c.Net.State.(*produceCall); ok {
		pc.resume(before)
	}
	failed := pc.verify()
	switch {
	case failed == nil:
		failed = pc.appendAll()
	case !errors.Is(failed, storage.ErrBusy):
		pc.failAll(failed)
	}
	switch {
	case errors.Is(failed, storage.ErrBusy):
		kept := new(produceCall)
		*kept = pc
		c.Net.State = kept
		c.Net.Requeue()
	case req.Acks == 0 && failed != nil:
		// There is no response that could carry the error: a closed connection
		// makes the client ask for metadata again.
		c.Hangup("produce with acks=0 failed: " + failed.Error())
	case req.Acks == 0:
		c.NoReply()
	case len(pc.waits) == 0:
		pc.reply()
	default:
		pc.park()
	}
}

// produceCall is one Produce on its way.
type produceCall struct {
	h     *Handlers
	c     *Call
	req   *kmsg.ProduceRequest
	resp  *kmsg.ProduceResponse
	img   *metadata.Image
	nowMs int64
	// rows is how many partitions are done, and failed the first error of one.
	rows   int
	failed error
	// prepared is the row, counted from 1, whose batch the event loop prepared
	// in place before its append would have had to wait. To prepare it again
	// would take what the broker wrote into it for the producer's own.
	prepared int
	// txn is what the records of a transaction were verified for.
	txn produceTxn
	// waits are the appends that may not be answered yet.
	waits  []produceWait
	waiter *park.Waiter
}

type produceWait struct {
	p     *replica.Partition
	a     replica.Appended
	row   *kmsg.ProduceResponseTopicPartition
	watch replica.Watch
}

// resume goes on where an event loop found that it would have to wait.
func (pc *produceCall) resume(before *produceCall) {
	pc.resp.Topics = before.resp.Topics
	pc.rows, pc.failed, pc.waits = before.rows, before.failed, before.waits
	pc.prepared, pc.nowMs, pc.txn = before.prepared, before.nowMs, before.txn
}

// appendAll appends every partition's batch and fills the rows of the response.
// It returns the first error, and storage.ErrBusy at once.
func (pc *produceCall) appendAll() error {
	n := 0
	for i := range pc.req.Topics {
		t, out := &pc.req.Topics[i], pc.topicRow(i)
		for j := range t.Partitions {
			if n++; n <= pc.rows {
				continue
			}
			row := &out.Partitions[j]
			row.Default()
			row.Partition, row.BaseOffset, row.LogAppendTime, row.LogStartOffset = t.Partitions[j].Partition, -1, -1, -1
			p, err := pc.appendOne(t, &t.Partitions[j], row)
			if errors.Is(err, storage.ErrBusy) {
				return err
			}
			if pc.rows = n; err == nil {
				continue
			}
			pc.fail(row, p, err)
			if pc.failed == nil {
				pc.failed = err
			}
		}
	}
	return pc.failed
}

// topicRow is a topic's part of the response.
func (pc *produceCall) topicRow(i int) *kmsg.ProduceResponseTopic {
	if pc.resp.Topics == nil {
		pc.resp.Topics = make([]kmsg.ProduceResponseTopic, len(pc.req.Topics))
	}
	t, out := &pc.req.Topics[i], &pc.resp.Topics[i]
	if out.Partitions == nil {
		out.Topic, out.TopicID = t.Topic, t.TopicID
		out.Partitions = make([]kmsg.ProduceResponseTopicPartition, len(t.Partitions))
	}
	return out
}

// failAll answers every partition with the same error.
func (pc *produceCall) failAll(err error) {
	for i := range pc.req.Topics {
		t, out := &pc.req.Topics[i], pc.topicRow(i)
		for j := range t.Partitions {
			row := &out.Partitions[j]
			row.Default()
			row.Partition = t.Partitions[j].Partition
			pc.fail(row, nil, err)
		}
	}
}

// appendOne appends one partition's batch. The partition is returned once the
// request is sound as far as it can be seen without the records.
func (pc *produceCall) appendOne(t *kmsg.ProduceRequestTopic, in *kmsg.ProduceRequestTopicPartition, row *kmsg.ProduceResponseTopicPartition) (*replica.Partition, error) {
	if acks := pc.req.Acks; acks < -1 || acks > 1 {
		return nil, protocol.Errorf(kerr.InvalidRequiredAcks, "acks is 0, 1 or -1, not %d", acks)
	}
	p, err := pc.find(t, in.Partition)
	if err != nil {
		return nil, err
	}
	if p.Internal() && pc.c.Header.ClientID != adminClientID {
		return nil, protocol.Errorf(kerr.InvalidTopicException, "clients can't write to the internal topic %s", p.TopicPartition().Topic)
	}
	var guard storage.VerificationGuard
	if pc.txn != nil {
		if err := pc.txn[pc.rows].err; err != nil {
			return nil, err
		}
		guard = pc.txn[pc.rows].guard
	}
	var v batch.View
	old := pc.req.Version < firstBatchProduce
	if !old {
		if v, err = onlyBatch(in.Records, pc.req.Version); err != nil {
			return nil, err
		}
	}
	cfg := p.Config()
	o := cfg.Batch
	o.NowMs, o.NoZstd = pc.nowMs, pc.req.Version >= firstBatchProduce && pc.req.Version < 7
	o.Topic, o.Partition = p.TopicPartition().Topic, in.Partition
	switch {
	case old:
		if v, err = pc.prepareOld(in.Records, o); err != nil || v == nil {
			return p, err
		}
	case pc.prepared != pc.rows+1:
		if v, err = pc.prepare(v, o); err != nil {
			return p, err
		}
		pc.prepared = pc.rows + 1
	}
	if limit := cfg.Log.SegmentBytes; limit > 0 && int64(len(v)) > limit {
		return p, protocol.Errorf(kerr.RecordListTooLarge, "the batch of %d bytes is larger than segment.bytes, %d", len(v), limit)
	}
	a, err := p.Append(v, replica.AppendOptions{Acks: pc.req.Acks, LeaderEpoch: -1, NoWait: pc.c.Net.OnLoop(), Guard: guard})
	if err != nil {
		return p, err
	}
	row.BaseOffset, row.LogStartOffset = a.FirstOffset, a.LogStartOffset
	switch {
	case o.LogAppendTime:
		row.LogAppendTime = pc.nowMs
	case a.Duplicate:
		row.LogAppendTime = v.MaxTimestamp() // as Kafka answers a repeat
	}
	if pc.req.Acks == 0 {
		return p, nil
	}
	done, err := p.Acked(&a)
	if !done {
		pc.waits = append(pc.waits, produceWait{p: p, a: a, row: row})
	}
	return p, err
}

// quickDecodedBytes is what a batch may expand to without waiting its turn, and
// thereby how long the check may take on an event loop: a few milliseconds.
const quickDecodedBytes = 4 << 20

// heavyDecodes is how many batches that expand to more are checked at once: many
// clients that each send a small batch of hundreds of megabytes must not take all
// processors from the others.
func heavyDecodes() int { return max(1, runtime.GOMAXPROCS(0)/2) }

// prepare checks a batch and rewrites it as the topic asks. On an event loop it
// fails with storage.ErrBusy where that would take long.
func (pc *produceCall) prepare(v batch.View, o batch.Options) (batch.View, error) {
	loop := pc.c.Net.OnLoop()
	if loop && (o.Recompress && o.Codec != v.Codec() || batch.WorkingBytes(v) >= batch.LargeBytes) {
		return nil, storage.ErrBusy
	}
	if v.Codec() == batch.None || o.MaxDecodedBytes > 0 && o.MaxDecodedBytes <= quickDecodedBytes {
		out, _, err := batch.Prepare(v, o)
		return out, err
	}
	quick := o
	quick.MaxDecodedBytes = quickDecodedBytes
	out, _, err := batch.Prepare(v, quick)
	if !errors.Is(err, kerr.MessageTooLarge) {
		return out, err
	}
	if loop {
		return nil, storage.ErrBusy
	}
	pc.h.heavy <- struct{}{}
	defer func() { <-pc.h.heavy }()
	out, _, err = batch.Prepare(v, o)
	return out, err
}

func (pc *produceCall) find(t *kmsg.ProduceRequestTopic, partition int32) (*replica.Partition, error) {
	if pc.req.Version < 13 {
		return pc.h.partition(pc.img, t.Topic, partition)
	}
	_, p, err := pc.h.partitionByID(pc.img, t.TopicID, partition)
	return p, err
}

// onlyBatch is the one batch of message format v2 that Produce v3 and later
// carry for a partition.
func onlyBatch(records []byte, version int16) (batch.View, error) {
	if len(records) == 0 {
		return nil, protocol.Errorf(kerr.InvalidRecord, "Produce v%d must have a record batch for every partition", version)
	}
	v, rest, err := batch.Next(records)
	switch {
	case errors.Is(err, batch.ErrTruncated):
		return nil, protocol.Errorf(kerr.InvalidRecord, "Produce v%d must have a whole record batch for every partition", version)
	case err != nil:
		return nil, err
	}
	if len(rest) > 0 {
		return nil, protocol.Errorf(kerr.InvalidRecord, "Produce v%d must have exactly one record batch for every partition", version)
	}
	return v, nil
}

// withoutLogStart are the errors with which Kafka does not tell where the log of
// a partition starts.
var withoutLogStart = map[int16]bool{
	kerr.UnknownTopicOrPartition.Code: true, kerr.NotLeaderForPartition.Code: true, kerr.UnknownTopicID.Code: true,
	kerr.MessageTooLarge.Code: true, kerr.RecordListTooLarge.Code: true, kerr.CorruptMessage.Code: true,
	kerr.KafkaStorageError.Code: true, kerr.UnsupportedCompressionType.Code: true, kerr.RequestTimedOut.Code: true,
}

// fail fills a row with an error. p is nil when the request itself was wrong.
func (pc *produceCall) fail(row *kmsg.ProduceResponseTopicPartition, p *replica.Partition, err error) {
	row.ErrorCode, row.ErrorMessage = knownCode(protocol.Code(err), pc.req.Version, firstStorageErrorProduce), protocol.Message(err)
	pc.c.CountError(row.ErrorCode)
	row.BaseOffset, row.LogAppendTime, row.LogStartOffset = -1, -1, -1
	if p != nil && !withoutLogStart[row.ErrorCode] {
		row.LogStartOffset = p.LogStart()
	}
	var bad *batch.InvalidRecordsError
	if !errors.As(err, &bad) {
		return
	}
	for i := range bad.Records {
		e := kmsg.NewProduceResponseTopicPartitionErrorRecord()
		e.RelativeOffset, e.ErrorMessage = bad.Records[i].Index, kmsg.StringPtr(bad.Records[i].Msg)
		row.ErrorRecords = append(row.ErrorRecords, e)
	}
}

// park waits for the replicas, or for the disk when flush.messages asks for it.
// Only acks=all has a time-out, as in Kafka.
func (pc *produceCall) park() {
	wait := park.Forever
	if pc.req.Acks == replica.AcksAll {
		wait = time.Duration(pc.req.TimeoutMillis) * time.Millisecond
	}
	kept := new(produceCall)
	*kept = *pc
	kept.waiter = pc.h.Waits.NewWaiter(func() (done bool) {
		done = true
		pc.h.guard(kept.c, func() { done = kept.again() })
		return done
	})
	if !kept.again() {
		kept.waiter.Park(wait)
	}
}

// again looks at every append that may not be answered yet; when there is none
// left, or no time, it ends the request.
func (pc *produceCall) again() (done bool) {
	for i := range pc.waits {
		pc.waits[i].watch.Stop()
	}
	left := pc.waits[:0]
	for i := range pc.waits {
		w := &pc.waits[i]
		ok, err := w.p.Acked(&w.a)
		if !ok && pc.waiter.Expired() {
			ok, err = true, protocol.Errorf(kerr.RequestTimedOut, "the in-sync replicas did not confirm the records in %d ms", pc.req.TimeoutMillis)
		}
		switch {
		case !ok:
			left = append(left, *w)
		case err != nil:
			pc.fail(w.row, w.p, err)
		}
	}
	if pc.waits = left; len(left) == 0 {
		pc.reply()
		return true
	}
	for i := range pc.waits {
		w := &pc.waits[i]
		if ok, _ := w.p.WatchAck(&w.a, pc.waiter, &w.watch); ok {
			pc.waiter.Wake()
		}
	}
	return false
}

func (pc *produceCall) reply() {
	if pc.req.Version >= 10 {
		pc.tellLeaders()
	}
	pc.c.Reply()
}

// tellLeaders names the leaders of partitions that are led elsewhere, so that the
// client need not ask for metadata first (KIP-951).
func (pc *produceCall) tellLeaders() {
	var nodes []node
	for i := range pc.resp.Topics {
		t := &pc.resp.Topics[i]
		for j := range t.Partitions {
			row := &t.Partitions[j]
			if row.ErrorCode != kerr.NotLeaderForPartition.Code {
				continue
			}
			if at, ok := leaderOf(pc.img, t.Topic, t.TopicID, row.Partition); ok {
				row.CurrentLeader.LeaderID, row.CurrentLeader.LeaderEpoch = at.Leader, at.LeaderEpoch
				nodes = pc.h.addNode(nodes, pc.c, pc.img, at.Leader)
			}
		}
	}
	for _, n := range nodes {
		b := kmsg.NewProduceResponseBroker()
		b.NodeID, b.Host, b.Port, b.Rack = n.id, n.host, n.port, n.rack
		pc.resp.Brokers = append(pc.resp.Brokers, b)
	}
}
