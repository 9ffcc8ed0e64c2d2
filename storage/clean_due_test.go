package storage

import (
	"testing"
	"time"
)

// TestOnlyAnAppendRolls waits long after segment.ms and max.compaction.lag.ms: as in
// Apache Kafka 4.4, the active segment stays as it is until another record comes.
func TestOnlyAnAppendRolls(t *testing.T) {
	w := newCleaningWorld(t)
	w.mustOpen()
	cfg := compactConfig()
	cfg.SegmentMs, cfg.MaxCompactionLagMs = 3000, 3000
	l := w.compactedLog(cfg)
	w.put(l, "k", "1")
	w.put(l, "k", "2")
	for range 20 {
		w.tick()
	}
	w.store.RunRetention()
	if state, ok := l.Compaction(); !ok || l.Segments() != 1 || state.CleanedTo != 0 || state.ActiveBytes == 0 {
		t.Fatalf("%d segments, %+v", l.Segments(), state)
	}
	w.put(l, "other", "3")
	w.tick()
	if got := w.records(l); got != "1:k=2 2:other=3" {
		t.Errorf("after one more record: %s", got)
	}
}

// A log that nobody uses after a start is cleaned all the same, by the cleaner's first
// look; one that is empty is not opened for that.
func TestIdleLogsAreCleanedAfterAStart(t *testing.T) {
	w := newCleaningWorld(t)
	w.cfg.RetentionCheck = -1
	w.mustOpen()
	empty := TopicPartition{Topic: testTopic.Topic, Partition: 1}
	must(w.store.OpenLog(empty, testID, compactConfig()))
	w.fill(w.compactedLog(compactConfig()), 50)
	if err := w.close(); err != nil {
		t.Fatal(err)
	}
	w.mustOpen()
	l, other := w.compactedLog(compactConfig()), must(w.store.OpenLog(empty, testID, compactConfig()))
	if l.loaded.Load() || other.loaded.Load() {
		t.Fatal("a clean start has loaded a log")
	}
	w.tick()
	if base := active(l.list()).BaseOffset(); l.cleanedTo.Load() != base || base == 0 {
		t.Errorf("cleaned to %d of %d", l.cleanedTo.Load(), base)
	}
	if other.loaded.Load() {
		t.Error("an empty log was loaded")
	}
}

func TestCleanerSleepsWithoutCompactedLogs(t *testing.T) {
	w := newCleaningWorld(t)
	w.mustOpen()
	before := w.clock.Pending()
	l := w.log()
	if w.clock.Pending() != before {
		t.Fatal("a log that is only deleted woke the cleaner")
	}
	l.Reconfigure(compactConfig())
	if w.clock.Pending() != before+1 {
		t.Fatal("the cleaner sleeps on")
	}
	l.Reconfigure(testLogConfig())
	w.tick()
	if w.clock.Pending() != before {
		t.Fatal("the cleaner stays awake")
	}
	w.close()
}

// TestCleaningIsDue is about the settings that say when a log is cleaned.
func TestCleaningIsDue(t *testing.T) {
	w := newCleaningWorld(t)
	w.mustOpen()
	cfg := compactConfig()
	cfg.MinCompactionLagMs = 60_000
	l := w.compactedLog(cfg)
	w.fill(l, 30)
	w.tick()
	if l.cleanedTo.Load() >= 0 {
		t.Fatal("cleaned what is too young")
	}
	w.clock.Advance(61 * time.Second)
	w.settle()
	cleaned := l.cleanedTo.Load()
	if cleaned < 0 {
		t.Fatal("not cleaned once it was old enough")
	}
	// Hardly dirty, but overdue.
	cfg = compactConfig()
	cfg.MinCleanableRatio = 1
	l.Reconfigure(cfg)
	w.fill(l, 30)
	w.tick()
	if l.cleanedTo.Load() != cleaned {
		t.Fatal("cleaned although it is not dirty enough")
	}
	cfg.MaxCompactionLagMs = 5000
	l.Reconfigure(cfg)
	w.clock.Advance(5 * time.Second)
	w.settle()
	if l.cleanedTo.Load() == cleaned {
		t.Fatal("not cleaned although max.compaction.lag.ms has passed")
	}
	w.close()
}

func TestSegmentRollsForCompaction(t *testing.T) {
	w := newCleaningWorld(t)
	w.mustOpen()
	cfg := compactConfig()
	cfg.MaxCompactionLagMs = 5000
	l := w.compactedLog(cfg)
	w.put(l, "a", "1")
	w.clock.Advance(5001 * time.Millisecond)
	w.put(l, "b", "1")
	if l.Segments() != 2 {
		t.Fatalf("%d segments: the first record can't be compacted in time", l.Segments())
	}
	w.close()
}

// TestCleaningStopsAtTheHighWatermark: what may yet be cut is not cleaned.
func TestCleaningStopsAtTheHighWatermark(t *testing.T) {
	w := newCleaningWorld(t)
	w.mustOpen()
	l := w.compactedLog(compactConfig())
	w.fill(l, 50)
	second := l.list()[1].BaseOffset()
	l.SetHighWatermark(second + 1)
	w.tick()
	if l.cleanedTo.Load() != second {
		t.Fatalf("cleaned to %d, not %d", l.cleanedTo.Load(), second)
	}
	w.close()
}
