package storage

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/barnabas-mq/barnabas/protocol/batch"
	"github.com/barnabas-mq/barnabas/storage/segment"
)

// A folder that was made elsewhere is opened with its own offsets, also by the
// start after a crash.
func TestAdopt(t *testing.T) {
	w, _ := opened(t)
	from := filepath.Join("/data", ImportFolder, "t-4")
	if err := w.fs.MkdirAll(from, 0o755); err != nil {
		t.Fatal(err)
	}
	b := makeBatch(5, "old", 3, nil)
	batch.View(b).SetBaseOffset(40)
	w.write(filepath.Join(from, segment.FileName(40, segment.LogSuffix)), string(b))
	w.write(filepath.Join(from, partitionMetadataFile), string(EncodePartitionMetadata(testID)))
	for _, name := range []string{filepath.Join(from, segment.FileName(40, segment.LogSuffix)), filepath.Join(from, partitionMetadataFile)} {
		f, err := w.fs.OpenFile(name, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{from, filepath.Dir(from), "/data"} {
		if err := w.fs.SyncDir(dir); err != nil {
			t.Fatal(err)
		}
	}
	tp := TopicPartition{Topic: "t", Partition: 4}
	a := Adoption{TopicPartition: tp, Path: from, LogStartOffset: 41, LogEndOffset: 43}
	if err := w.store.Adopt([]Adoption{a}); err != nil {
		t.Fatal(err)
	}
	if err := w.store.Adopt([]Adoption{a}); err == nil || !strings.Contains(err.Error(), "is there already") {
		t.Errorf("adopted twice: %v", err)
	}
	check := func(when string) {
		t.Helper()
		l, err := w.store.OpenLog(tp, testID, testLogConfig())
		if err != nil {
			t.Fatal(err)
		}
		if l.LogStartOffset() != 41 || l.LogEndOffset() != 43 || l.HighWatermark() != 43 {
			t.Errorf("%s: from %d to %d, high watermark %d", when, l.LogStartOffset(), l.LogEndOffset(), l.HighWatermark())
		}
		res, err := l.Read(ReadRequest{Offset: 41, Limit: 43, MaxBytes: 1 << 20})
		if err != nil || string(res.Data) != string(b) {
			t.Errorf("%s: read %d bytes, %v", when, len(res.Data), err)
		}
	}
	w.fs.Crash(1)
	if err := w.open(); err != nil {
		t.Fatal(err)
	}
	check("after a crash")
	if _, err := w.store.OpenLog(TopicPartition{Topic: "u"}, testID, testLogConfig()); err != nil {
		t.Fatal(err)
	}
	a.TopicPartition = TopicPartition{Topic: "u"}
	if err := w.store.Adopt([]Adoption{a}); err == nil {
		t.Error("adopted over an open log")
	}
}
