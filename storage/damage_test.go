package storage

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/barnabas-mq/barnabas/internal/telemetry"
	"github.com/barnabas-mq/barnabas/internal/vfs"
	"github.com/barnabas-mq/barnabas/protocol"
	"github.com/barnabas-mq/barnabas/storage/segment"
)

// TestDamagedFiles damages one file after a clean stop: the log opens, with all
// its records where they are not what was damaged.
func TestDamagedFiles(t *testing.T) {
	for name, test := range map[string]struct {
		file    string
		content string // "" removes it
		end     int64
	}{
		"recovery points":    {"../recovery-point-offset-checkpoint", "0\n5\nxyz\n", 40},
		"high watermarks":    {"../replication-offset-checkpoint", "garbage", 40},
		"log starts":         {"../log-start-offset-checkpoint", "0\n1\n", 40},
		"epochs":             {"leader-epoch-checkpoint", "0\n1\n0", 40},
		"topic id":           {"partition.metadata", "", 40},
		"topic id, torn":     {"partition.metadata", "version: 0\ntop", 40},
		"producers":          {"00000000000000000040.snapshot", "torn", 40},
		"index gone":         {"00000000000000000016.index", "", 40},
		"index cut":          {"00000000000000000016.index", "12345", 40},
		"time index gone":    {"00000000000000000032.timeindex", "", 40},
		"clean mark":         {"../.kafka_cleanshutdown", "{", 40},
		"active log garbage": {"00000000000000000032.log", strings.Repeat("no batch at all ", 300), 32},
		"active log gone":    {"00000000000000000032.log", "", 32},
	} {
		t.Run(name, func(t *testing.T) {
			w, l := opened(t)
			for i := range int32(40) {
				if _, err := l.Append(AppendRequest{Batches: makeBatch(1000+int64(i), "x", 1, stamp(1, 0, i))}); err != nil {
					t.Fatal(err)
				}
				l.SetHighWatermark(int64(i) + 1)
				w.settle()
			}
			if err := w.close(); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(l.Dir(), test.file)
			if _, err := w.fs.Stat(path); err != nil {
				t.Fatalf("the test damages a file that is not there: %v", err)
			}
			if test.content == "" {
				if err := w.fs.Remove(path); err != nil {
					t.Fatal(err)
				}
			} else {
				w.write(path, test.content)
			}
			w.logger = telemetry.Discard()
			w.mustOpen()
			l = w.log()
			w.settle()
			if _, err := l.SizeBytes(); err != nil {
				t.Fatal(err)
			}
			all := contents(t, l)
			if got := l.LogEndOffset(); got != test.end || int64(len(all)) != test.end {
				t.Fatalf("%d batches, the log ends at %d: %v", len(all), got, l.Err())
			}
			if l.LatestEpoch() != 0 {
				t.Fatalf("the leader epoch is %d", l.LatestEpoch())
			}
			states, err := l.Producers()
			if err != nil || len(states) != 1 || int64(states[0].LastSequence) != test.end-1 {
				t.Fatalf("producers %+v, %v", states, err)
			}
		})
	}
}

// TestEmptyCheckpoints opens what Apache Kafka leaves when it dies before its first
// write of the checkpoints: none of them counts as damaged, and nothing is missing.
func TestEmptyCheckpoints(t *testing.T) {
	w, l := opened(t)
	for range 40 {
		put(t, l, 1, 1)
		w.settle()
	}
	if err := w.close(); err != nil {
		t.Fatal(err)
	}
	files := []string{"../recovery-point-offset-checkpoint", "../replication-offset-checkpoint", "../log-start-offset-checkpoint", "leader-epoch-checkpoint"}
	for _, name := range files {
		w.write(filepath.Join(l.Dir(), name), "")
	}
	w.mustOpen()
	l = w.log()
	w.settle()
	if got := len(contents(t, l)); got != 40 || l.LatestEpoch() != 0 {
		t.Errorf("%d batches, leader epoch %d: %v", got, l.LatestEpoch(), l.Err())
	}
	for _, name := range files {
		if _, err := w.fs.Stat(filepath.Join(l.Dir(), name) + segment.CorruptSuffix); err == nil {
			t.Errorf("%s was set aside as damaged", name)
		}
	}
	w.close()
}

// TestRottenSegment damages an old, synced segment: the others are served, and
// reads of the damaged part say so.
func TestRottenSegment(t *testing.T) {
	w, l := opened(t)
	for range 40 {
		put(t, l, 1, 1)
		w.settle()
	}
	if err := w.close(); err != nil {
		t.Fatal(err)
	}
	w.write(filepath.Join(l.Dir(), segment.FileName(16, segment.LogSuffix)), strings.Repeat("rot", 300))
	w.mustOpen()
	l = w.log()
	for _, offset := range []int64{0, 33} {
		if r, err := l.Read(ReadRequest{Offset: offset, Limit: 40, MaxBytes: 1, AtLeastOne: true}); err != nil || len(r.Data) == 0 {
			t.Fatalf("offset %d beside the rot: %v", offset, err)
		}
	}
	if _, err := l.Read(ReadRequest{Offset: 17, Limit: 40, MaxBytes: 1, AtLeastOne: true}); protocol.Code(err) != kerr.CorruptMessage.Code {
		t.Fatalf("offset 17 in the rot: %v", err)
	}
	put(t, l, 1, 1)
	if l.Err() != nil {
		t.Fatal(l.Err())
	}
}

// TestHoleIsSetAside damages an unsynced segment before the last one: what
// follows is kept beside the log, not served and not deleted.
func TestHoleIsSetAside(t *testing.T) {
	w, l := opened(t)
	for range 40 {
		put(t, l, 1, 1) // the flushes of the rolls never run
	}
	w.abandon()
	w.fs.Kill()
	path := filepath.Join(l.Dir(), segment.FileName(16, segment.LogSuffix))
	f, err := w.fs.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte("rot"), 200); err != nil {
		t.Fatal(err)
	}
	w.mustOpen()
	l = w.log()
	if got := l.LogEndOffset(); got != 18 {
		t.Fatalf("the log ends at %d", got)
	}
	entries, err := w.fs.ReadDir(l.Dir())
	if err != nil {
		t.Fatal(err)
	}
	aside := 0
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), segment.CorruptSuffix) {
			aside++
		}
	}
	if aside < 2 { // the tail of 16, and the segment 32
		t.Fatalf("%d files were set aside", aside)
	}
	if put(t, l, 1, 1) != 18 {
		t.Fatal("the log does not go on")
	}
}

// TestFailures takes the disk away from one partition: it is offline with the
// storage error, the other serves, and it comes back by itself with all that was
// acknowledged.
func TestFailures(t *testing.T) {
	for name, test := range map[string]struct {
		kind  vfs.OpKind
		err   error
		reads bool // go on meanwhile
	}{
		"write fails": {vfs.OpWrite, syscall.EIO, false},
		"disk full":   {vfs.OpWrite, syscall.ENOSPC, true},
		"sync fails":  {vfs.OpSync, syscall.EIO, false},
	} {
		t.Run(name, func(t *testing.T) {
			w, l := opened(t)
			var told []error
			w.store.env.OnOffline = func(_ TopicPartition, err error) { told = append(told, err) }
			other, err := w.store.OpenLog(TopicPartition{"other", 1}, TopicID{4}, testLogConfig())
			if err != nil {
				t.Fatal(err)
			}
			for range 5 {
				put(t, l, 1, 1)
			}
			w.fs.SetFault(func(op vfs.Op) error {
				if op.Kind == test.kind && strings.HasPrefix(op.Name, l.Dir()+"/0") {
					return test.err
				}
				return nil
			})
			if test.kind == vfs.OpSync {
				l.WhenFlushed(5, func(err error) {
					if protocol.Code(err) != kerr.KafkaStorageError.Code {
						t.Errorf("a failed sync: %v", err)
					}
				})
				w.settle()
			}
			_, err = l.Append(AppendRequest{Batches: makeBatch(1, "lost", 1, nil)})
			if !errors.Is(err, ErrOffline) {
				t.Fatalf("an append to a failing disk: %v", err)
			}
			if _, err := l.Read(ReadRequest{Offset: 0, Limit: 5, MaxBytes: 1, AtLeastOne: true}); (err == nil) != test.reads {
				t.Fatalf("a read meanwhile: %v", err)
			}
			put(t, other, 1, 1)
			w.settle()
			w.clock.Advance(2 * time.Second)
			if l.Err() == nil {
				t.Fatal("back while the disk still fails")
			}
			w.fs.SetFault(nil)
			w.clock.Advance(2 * time.Second)
			w.settle()
			if l.Err() != nil {
				t.Fatalf("not back: %v", l.Err())
			}
			if len(told) != 2 || told[0] == nil || told[1] != nil {
				t.Fatalf("told %v", told)
			}
			if put(t, l, 1, 1) != 5 {
				t.Fatal("an offset was lost or used twice")
			}
			if got := contents(t, l); len(got) != 6 {
				t.Fatalf("%d batches", len(got))
			}
			w.fs.Crash(3)
		})
	}
}

// TestPagesLostByAFailedSync is Linux's trap: after a failed fsync a second one
// succeeds without the data. The partition may only return when it has written
// them again.
func TestPagesLostByAFailedSync(t *testing.T) {
	for seed := range uint64(20) {
		w, l := opened(t)
		for range 5 {
			put(t, l, 1, 1)
		}
		w.fs.FailAt(1, syscall.EIO)
		l.WhenFlushed(5, func(error) {})
		w.settle()
		w.clock.Advance(2 * time.Second)
		flushed := false
		l.WhenFlushed(5, func(err error) { flushed = err == nil })
		w.settle()
		if !flushed {
			t.Fatalf("not back: %v", l.Err())
		}
		w.abandon()
		w.fs.Crash(seed)
		w.mustOpen()
		if got := contents(t, w.log()); len(got) != 5 {
			t.Fatalf("seed %d: %d of 5 batches that were synced in the end", seed, len(got))
		}
	}
}

// TestFolderLeftByTwoStops crashes, starts and stops cleanly without opening the log:
// its indexes are still as the crash left them, and the start after that must not take
// them for whole.
func TestFolderLeftByTwoStops(t *testing.T) {
	w, l := opened(t)
	put(t, l, 5000, 3)
	if err := l.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := w.store.writeCheckpoints(); err != nil {
		t.Fatal(err)
	}
	w.settle()
	w.abandon()
	w.fs.Kill()
	w.mustOpen()
	if w.store.CleanStart() {
		t.Fatal("the crash was not seen")
	}
	if err := w.close(); err != nil {
		t.Fatal(err)
	}
	w.mustOpen()
	if !w.store.CleanStart() {
		t.Fatal("the stop was clean")
	}
	l = w.log()
	if found, ok, err := l.OffsetForTimestamp(5000); err != nil || !ok || found.Offset != 0 {
		t.Fatalf("the first record by its time: %+v, %v, %v", found, ok, err)
	}
	if found, ok, err := l.MaxTimestamp(); err != nil || !ok || found.TimestampMs < 5000 {
		t.Fatalf("the newest record: %+v, %v, %v", found, ok, err)
	}
}
