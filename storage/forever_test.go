package storage

import (
	"math"
	"strings"
	"testing"
	"time"
)

// TestForever gives as long a time as the configuration takes: what it is for is never
// removed, be the end of that time beyond all timestamps.
func TestForever(t *testing.T) {
	w := newCleaningWorld(t)
	w.mustOpen()
	cfg := compactConfig()
	cfg.DeleteRetentionMs, cfg.FileDeleteDelayMs = math.MaxInt64, math.MaxInt64
	l := w.compactedLog(cfg)
	w.put(l, "gone", "1")
	w.put(l, "gone", "")
	for range 3 {
		w.fill(l, 30)
		w.tick()
		w.clock.Advance(24 * time.Hour)
	}
	if got := w.records(l); !strings.HasPrefix(got, "1:gone= ") {
		t.Errorf("the tombstone: %s", got)
	}
	entries, err := w.fs.ReadDir("/data/orders-0")
	if err != nil {
		t.Fatal(err)
	}
	retired := 0
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".deleted") {
			retired++
		}
	}
	if retired == 0 {
		t.Error("the segments that were replaced are removed")
	}
	w.close()
}
