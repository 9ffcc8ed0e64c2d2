package importer

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/barnabas-mq/barnabas/internal/vfs"
	"github.com/barnabas-mq/barnabas/protocol/batch"
	"github.com/barnabas-mq/barnabas/storage"
	"github.com/barnabas-mq/barnabas/storage/producer"
	"github.com/barnabas-mq/barnabas/storage/segment"
)

// Contents is what reading a partition from end to end has found.
type Contents struct {
	LogStartOffset, LogEndOffset int64
	Records, SizeBytes           int64
	// LatestEpoch is the newest leader epoch of a batch, -1 for none.
	LatestEpoch int32
	// MaxProducerID is -1 for none.
	MaxProducerID int64
	// Open are the transactions without an end.
	Open []OpenTransaction
	// Converted is how many segments had messages of format v0 or v1.
	Converted int
	// CutBytes is what an unclean stop had left behind the last whole batch.
	CutBytes int64
	// Segments are all segments' ages and sizes, which retention looks at.
	Segments []SegmentAge
}

// OpenTransaction is one that Kafka's coordinator had not ended.
type OpenTransaction struct {
	ProducerID    int64
	ProducerEpoch int16
	FirstOffset   int64
}

// SegmentAge is a segment's newest timestamp, its size, and the offset after it.
type SegmentAge struct{ MaxTimestampMs, SizeBytes, EndOffset int64 }

// transfer reads one partition and, with a folder to write to, copies it there.
type transfer struct {
	ctx   context.Context
	s     *Source
	c     *copyOf
	files *partitionFiles
	// to is the folder that the copy goes to, "" to only read.
	to string
	// moved is told of bytes read, as they are.
	moved func(n int64)

	out       Contents
	producers producer.Table
	// aborted are the transactions that ended in the segment that is read.
	aborted []segment.AbortedTxn
	// end is the offset after what was read.
	end int64
}

// run reads the partition; what it finds damaged is an error that says where.
func (t *transfer) run(id storage.TopicID) (Contents, error) {
	t.out = Contents{LatestEpoch: noEpoch, MaxProducerID: batch.NoProducerID}
	if t.to != "" {
		if err := t.s.fs.MkdirAll(t.to, 0o755); err != nil {
			return t.out, err
		}
	}
	for i, base := range t.files.bases {
		if err := t.segment(base, i == len(t.files.bases)-1); err != nil {
			return t.out, err
		}
	}
	if err := t.settle(); err != nil {
		return t.out, err
	}
	if t.to == "" {
		return t.out, nil
	}
	return t.out, t.finish(id)
}

// segment reads, checks and copies one segment.
func (t *transfer) segment(base int64, last bool) (err error) {
	if base < t.end {
		return fmt.Errorf("%s begins before offset %d, where the segment before it ends", t.c.logPath(base), t.end)
	}
	in, err := vfs.OpenRegular(t.s.fs, t.c.logPath(base))
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := t.create(segment.FileName(base, segment.LogSuffix))
	if err != nil {
		return err
	}
	t.aborted = t.aborted[:0]
	r := newBatchReader(in, t.c.logPath(base), t.files.sizes[base], base)
	age, converted, err := t.batches(r, out)
	var bad *segment.CorruptError
	if errors.As(err, &bad) && last && t.mayCut(r) {
		t.out.CutBytes, err = r.sizeLog-r.pos, nil
		t.moved(t.out.CutBytes)
	}
	if err := errors.Join(err, out.close()); err != nil {
		return err
	}
	t.end = max(r.nextOffset(), base)
	if converted {
		t.out.Converted++
	}
	t.out.SizeBytes += age.SizeBytes
	age.EndOffset = t.end
	t.out.Segments = append(t.out.Segments, age)
	if t.to == "" {
		return nil
	}
	// What was not synced before the broker died may be missing in an index.
	if converted || !t.c.in.clean && t.end > t.c.in.points[t.c.TopicPartition] {
		return t.makeIndexes(base, age.SizeBytes)
	}
	return t.copyIndexes(base)
}

// mayCut says that what makes no sense is what a crash left: not synced, at the
// end of a folder that was not stopped cleanly.
func (t *transfer) mayCut(r *batchReader) bool {
	return !t.c.in.clean && r.nextOffset() >= t.c.in.points[t.c.TopicPartition]
}

func (t *transfer) batches(r *batchReader, out *fileOut) (age SegmentAge, converted bool, err error) {
	age.MaxTimestampMs = batch.NoTimestamp
	for n := 0; ; n++ {
		if n%64 == 0 {
			if err := t.ctx.Err(); err != nil {
				return age, converted, err
			}
		}
		before := r.pos
		v, err := r.next()
		if errors.Is(err, io.EOF) {
			return age, converted, nil
		}
		if err != nil {
			return age, converted, err
		}
		t.moved(r.pos - before)
		converted = converted || r.converted
		if err := t.note(v); err != nil {
			return age, converted, fmt.Errorf("%s, the batch at offset %d: %w", r.path, v.BaseOffset(), err)
		}
		age.MaxTimestampMs = max(age.MaxTimestampMs, v.MaxTimestamp())
		age.SizeBytes += int64(len(v))
		if err := out.write(v); err != nil {
			return age, converted, err
		}
	}
}

// note keeps what counts of a batch.
func (t *transfer) note(v batch.View) error {
	t.out.Records += t.readable(v)
	t.out.LatestEpoch = max(t.out.LatestEpoch, v.PartitionLeaderEpoch())
	if !v.HasProducerID() {
		return nil
	}
	t.out.MaxProducerID = max(t.out.MaxProducerID, v.ProducerID())
	b := producer.Batch{
		ProducerID: v.ProducerID(), Epoch: v.ProducerEpoch(), BaseSequence: v.BaseSequence(), LastSequence: v.LastSequence(),
		FirstOffset: v.BaseOffset(), LastOffset: v.LastOffset(), TimestampMs: v.MaxTimestamp(), Transactional: v.IsTransactional(),
	}
	if v.IsControl() {
		m, ok, err := batch.ParseMarker(v)
		if err != nil || !ok {
			return err
		}
		b.Marker = &producer.Marker{CoordinatorEpoch: m.CoordinatorEpoch, Commit: m.Commit}
	}
	for _, e := range t.producers.Replay(b) {
		if !e.Committed {
			t.aborted = append(t.aborted, segment.AbortedTxn{
				ProducerID: e.ProducerID, FirstOffset: e.FirstOffset, LastOffset: e.LastOffset, LastStableOffset: e.LastStableOffset,
			})
		}
	}
	return nil
}

// readable is how many of a batch's records readers get: those not below the log's
// start, and no markers of transactions. Of a compacted batch that the start divides it
// is the most that there can be.
func (t *transfer) readable(v batch.View) int64 {
	if v.IsControl() {
		return 0
	}
	return max(min(int64(v.NumRecords()), v.NextOffset()-t.start()), 0)
}

// start is the partition's log start offset.
func (t *transfer) start() int64 {
	start := t.c.in.starts[t.c.TopicPartition]
	if len(t.files.bases) > 0 {
		start = max(start, t.files.bases[0])
	}
	return start
}

// settle compares what was read with what the folder's checkpoints say.
func (t *transfer) settle() error {
	tp, f := t.c.TopicPartition, t.c.in
	if point, ok := f.points[tp]; ok && point > t.end {
		return fmt.Errorf("it ends at offset %d, and everything up to %d was on the disk once: files are missing", t.end, point)
	}
	t.out.LogStartOffset = t.start()
	t.out.LogEndOffset = max(t.end, t.out.LogStartOffset)
	if t.out.SizeBytes > 0 && t.end < t.out.LogStartOffset {
		// Kafka would delete all of it at its start, which is not for a copy to do.
		return fmt.Errorf("it ends at offset %d, and %s has it begin at %d: files are missing, or the checkpoint is wrong. "+
			"Apache Kafka would delete all of its records at its next start; without its line there the import takes them",
			t.end, startFile, t.out.LogStartOffset)
	}
	for _, e := range t.producers.Entries() {
		if e.CurrentTxnFirstOffset >= 0 {
			t.out.Open = append(t.out.Open, OpenTransaction{ProducerID: e.ProducerID, ProducerEpoch: e.Epoch, FirstOffset: e.CurrentTxnFirstOffset})
		}
	}
	return nil
}

// copyIndexes copies the indexes of a segment.
func (t *transfer) copyIndexes(base int64) error {
	for _, suffix := range t.files.side[base] {
		if err := t.copyFile(segment.FileName(base, suffix)); err != nil {
			return err
		}
	}
	return nil
}

// indexInterval is how many bytes of the log an entry of a new index stands for.
const indexInterval = 4096

// makeIndexes makes the indexes of a segment from its batches, durable as all else:
// a log looks at them only behind its recovery point.
func (t *transfer) makeIndexes(base, sizeBytes int64) error {
	if len(t.aborted) > 0 {
		var b []byte
		for _, a := range t.aborted {
			b = segment.EncodeAbortedTxn(b, a)
		}
		if err := t.writeFile(segment.FileName(base, segment.TxnIndexSuffix), b); err != nil {
			return err
		}
	}
	if sizeBytes == 0 {
		return nil
	}
	fsys := t.s.fs
	env := &segment.Env{FS: fsys, Files: segment.NewFiles(fsys, 4), Maps: segment.NewMaps(0)}
	s, err := segment.Open(env, t.to, base, segment.Sizes{LogBytes: sizeBytes, IndexBytes: -1, TimeIndexBytes: -1, TxnIndexBytes: -1})
	if err != nil && !errors.Is(err, segment.ErrCorruptIndex) {
		return err
	}
	defer s.Close()
	if err := s.RebuildIndexes(indexInterval); err != nil {
		return err
	}
	if err := s.Seal(); err != nil {
		return err
	}
	return s.SyncIndexes()
}

// finish adds what belongs to the partition and not to a segment.
func (t *transfer) finish(id storage.TopicID) error {
	atEnd := false
	for _, at := range t.files.snapshots {
		if at > t.end {
			continue
		}
		atEnd = atEnd || at == t.end
		if err := t.copyFile(segment.FileName(at, segment.SnapshotSuffix)); err != nil {
			return err
		}
	}
	if !atEnd && t.producers.Len() > 0 {
		// As a clean stop leaves it: without one the producers would be forgotten.
		if err := t.writeFile(segment.FileName(t.end, segment.SnapshotSuffix), t.producers.Encode()); err != nil {
			return err
		}
	}
	if t.files.hasEpochs {
		if err := t.copyFile(epochFile); err != nil {
			return err
		}
	}
	if err := t.writeFile(partitionFile, storage.EncodePartitionMetadata(id)); err != nil {
		return err
	}
	return t.s.fs.SyncDir(t.to)
}

func (t *transfer) copyFile(name string) error {
	if t.to == "" {
		return nil
	}
	in, err := vfs.OpenRegular(t.s.fs, filepath.Join(t.c.path, name))
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := t.create(name)
	if err != nil {
		return err
	}
	_, err = io.Copy(out.w, in)
	return errors.Join(err, out.close())
}

func (t *transfer) writeFile(name string, b []byte) error {
	out, err := t.create(name)
	if err != nil {
		return err
	}
	return errors.Join(out.write(b), out.close())
}

// fileOut is a file of the copy, nothing at all when the partition is only read.
type fileOut struct {
	f vfs.File
	w *bufio.Writer
}

func (t *transfer) create(name string) (*fileOut, error) {
	if t.to == "" {
		return &fileOut{}, nil
	}
	if strings.ContainsRune(name, filepath.Separator) {
		return nil, fmt.Errorf("%q is no file name", name)
	}
	f, err := t.s.fs.OpenFile(filepath.Join(t.to, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, err
	}
	return &fileOut{f: f, w: bufio.NewWriterSize(f, windowBytes)}, nil
}

func (o *fileOut) write(b []byte) error {
	if o.f == nil {
		return nil
	}
	_, err := o.w.Write(b)
	return err
}

// close makes the file durable.
func (o *fileOut) close() error {
	if o.f == nil {
		return nil
	}
	return errors.Join(o.w.Flush(), o.f.Sync(), o.f.Close())
}
