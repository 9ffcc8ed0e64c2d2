package replica

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestProgressProperties holds the arithmetic against what replication promises,
// for clusters of one to four replicas, under any order of events.
func TestProgressProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int32Range(1, 4).Draw(t, "replicas")
		replicas := make([]int32, n)
		for i := range replicas {
			replicas[i] = int32(i + 1)
		}
		g := progress{self: 1, minISR: rapid.IntRange(1, 3).Draw(t, "minISR")}
		g.assign(replicas, slices.Clone(replicas))
		g.lead(0, 0, 0)
		written, synced := int64(0), int64(0) // our log, as the test knows it
		highest := int64(0)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 5).Draw(t, "step") {
			case 0:
				written += rapid.Int64Range(1, 10).Draw(t, "records")
				flush := rapid.Bool().Draw(t, "flush")
				if !flush && g.flushedEnd >= g.flushingEnd {
					synced = written // nobody asked to wait for the disk
				}
				g.appended(written, flush)
			case 1:
				if g.flushingEnd > g.flushedEnd {
					end := rapid.Int64Range(g.flushedEnd, g.flushingEnd).Draw(t, "flushed")
					g.flushed(end)
					synced = max(synced, end)
					if end == g.flushingEnd {
						synced = written
					}
				}
			case 2:
				id := rapid.Int32Range(1, 5).Draw(t, "follower")
				end := rapid.Int64Range(0, written).Draw(t, "end")
				known := g.follower(id, end)
				if want := id != 1 && slices.Contains(replicas, id); known != want {
					t.Fatalf("follower(%d) = %v with replicas %v", id, known, replicas)
				}
			case 3:
				isr := []int32{1}
				for _, id := range replicas[1:] {
					if rapid.Bool().Draw(t, "inSync") {
						isr = append(isr, id)
					}
				}
				g.assign(replicas, isr)
			case 4:
				g.minISR = rapid.IntRange(1, 4).Draw(t, "newMinISR")
			case 5:
				for _, id := range replicas[1:] {
					g.follower(id, written)
				}
			}
			before := g.highWatermark
			moved := g.advanceHighWatermark()
			checkProgress(t, &g, before, moved, written, synced)
			if g.highWatermark < highest {
				t.Fatalf("the high watermark went back from %d to %d", highest, g.highWatermark)
			}
			highest = g.highWatermark
		}
	})
}

func checkProgress(t *rapid.T, g *progress, before int64, moved bool, written, synced int64) {
	if g.logEnd != written || g.ackedEnd > synced || g.highWatermark > g.ackedEnd {
		t.Fatalf("log end %d of %d, counted %d of %d synced, high watermark %d", g.logEnd, written, g.ackedEnd, synced, g.highWatermark)
	}
	if moved != (g.highWatermark != before) {
		t.Fatalf("moved %v from %d to %d", moved, before, g.highWatermark)
	}
	few := len(g.isr) < min(g.minISR, len(g.replicas))
	if few && moved {
		t.Fatalf("the high watermark moved with ISR %v below %d", g.isr, g.minISR)
	}
	everyone := g.ackedEnd
	for _, id := range g.isr[1:] {
		end, ok := g.ends[id]
		if !ok {
			end = -1
		}
		everyone = min(everyone, end)
		if moved && end < g.highWatermark {
			t.Fatalf("replica %d of ISR %v has %d, high watermark %d", id, g.isr, end, g.highWatermark)
		}
	}
	if !few && g.highWatermark < everyone {
		t.Fatalf("every in-sync replica has %d, the high watermark stands at %d", everyone, g.highWatermark)
	}
}

func TestProgressOneReplicaNeedsNobody(t *testing.T) {
	g := progress{self: 1, minISR: 2}
	g.assign([]int32{1}, []int32{1})
	g.lead(0, 7, 3)
	if !g.advanceHighWatermark() || g.highWatermark != 7 {
		t.Fatalf("high watermark %d after the start, want the log end 7", g.highWatermark)
	}
	g.appended(10, false)
	if !g.advanceHighWatermark() || g.highWatermark != 10 || g.underMinISR() {
		t.Fatalf("high watermark %d, under min ISR %v; min.insync.replicas is capped by the replicas", g.highWatermark, g.underMinISR())
	}
}

func TestProgressStartsWithinTheLog(t *testing.T) {
	for _, c := range []struct{ start, end, checkpoint, want int64 }{
		{0, 10, 4, 4}, {5, 10, 0, 5}, {0, 10, 99, 10}, {5, 5, -1, 5},
	} {
		g := progress{self: 1, minISR: 1}
		g.assign([]int32{1, 2}, []int32{1, 2})
		g.lead(c.start, c.end, c.checkpoint)
		g.advanceHighWatermark()
		if g.highWatermark != c.want {
			t.Errorf("log [%d, %d), checkpoint %d: high watermark %d, want %d", c.start, c.end, c.checkpoint, g.highWatermark, c.want)
		}
	}
}
