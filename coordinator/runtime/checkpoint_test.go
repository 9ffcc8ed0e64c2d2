package runtime

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"pgregory.net/rapid"

	"github.com/barnabas-mq/barnabas/protocol/batch"
)

// filled is a partition with three names, one deleted, and its checkpoint.
func filled(t failer) *fixture {
	f := newFixture(t)
	f.rt.Elected(0, 1)
	f.set("a", 1)
	f.set("b", 2)
	f.set("c", 3)
	f.submit(event{delete: []string{"b"}})
	f.set("a", 4)
	f.rt.Close()
	return f
}

// The checkpoint spares a load all but what came after it.
func TestCheckpointSparesTheLog(t *testing.T) {
	f := filled(t)
	f.restart()
	f.rt.Elected(0, 2)
	f.want(f.get("a", "b", "c"), "[4 0 3]")
	if f.log.reads != 0 || f.replayed != 2 {
		t.Errorf("%d reads, %d records replayed; want none and the 2 of the checkpoint", f.log.reads, f.replayed)
	}
}

func TestCheckpointsThatAreNotUsed(t *testing.T) {
	meta := string(checkpointPrefix("test/", 0)) + "m"
	rec := string(checkpointPrefix("test/", 0)) + "r"
	for _, tc := range []struct {
		name  string
		spoil func(f *fixture)
		want  string
	}{
		{"lost", func(f *fixture) { clear(f.kv.m) }, "[4 0 3]"},
		{"damaged meta", func(f *fixture) { f.kv.m[meta] = f.kv.m[meta][:20] }, "[4 0 3]"},
		{"meta of the future", func(f *fixture) { f.kv.m[meta][0] = 9 }, "[4 0 3]"},
		{"damaged record", func(f *fixture) { f.kv.m[rec+"c"] = f.kv.m[rec+"c"][:12] }, "[4 0 3]"},
		{"short record", func(f *fixture) { f.kv.m[rec+"a"] = []byte{1} }, "[4 0 3]"},
		{"another topic", func(f *fixture) { f.log.topicID = [16]byte{2} }, "[4 0 3]"},
		{"topic made again", func(f *fixture) { f.log = newMemLog(); f.log.topicID = [16]byte{2} }, "[0 0 0]"},
		{"lost tail", func(f *fixture) { f.log.loseTail(3) }, "[1 2 3]"},
		{"lost tail, written again", func(f *fixture) {
			f.log.loseTail(3)
			for range 3 {
				f.log.put(2, "other", 0)
			}
		}, "[1 2 3]"},
		{"topic made again and filled", func(f *fixture) {
			f.log = newMemLog()
			f.log.topicID = [16]byte{2}
			for i := range uint64(9) {
				f.log.put(1, "b", i)
			}
		}, "[0 8 0]"},
		{"compacted behind it", func(f *fixture) {
			// c is deleted, and compaction takes its value and then the tombstone.
			f.log.put(1, "x", 1)
			f.log.put(1, "y", 1)
			f.log.compact(2, 5)
			f.log.compactedTo = 6
		}, "[4 0 0]"},
		{"start moved past it, with more behind", func(f *fixture) {
			f.log.batches, f.log.start = nil, 7
			f.log.put(1, "b", 5)
		}, "[0 5 0]"},
		{"start moved past it", func(f *fixture) {
			f.log.batches, f.log.start = nil, 7
			f.log.advance()
		}, "[0 0 0]"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := filled(t)
			tc.spoil(f)
			f.restart()
			f.rt.Elected(0, 3)
			f.want(f.get("a", "b", "c"), tc.want)
			// It was dropped whole and is made anew: the next load uses it.
			f.rt.Close()
			f.restart()
			f.log.reads = 0
			f.rt.Elected(0, 4)
			f.want(f.get("a", "b", "c"), tc.want)
			if f.log.reads != 0 && f.log.LogEndOffset() > f.log.LogStartOffset() {
				t.Errorf("%d reads at the next load", f.log.reads)
			}
		})
	}
}

// A busy shard stores its newest values once a second, and more when there is
// much.
func TestCheckpointIsStoredNowAndThen(t *testing.T) {
	f := newFixture(t)
	f.rt.Elected(0, 1)
	for i := range uint64(100) {
		f.set("a", i)
	}
	if len(f.kv.m) != 0 {
		t.Errorf("stored at once: %d keys", len(f.kv.m))
	}
	f.clock.Advance(flushEvery)
	if len(f.kv.m) != 2 || f.clock.Pending() != 0 {
		t.Errorf("%d keys, %d timers after a second", len(f.kv.m), f.clock.Pending())
	}
	f.set("b", 1)
	f.clock.Advance(flushEvery)
	if len(f.kv.m) != 3 {
		t.Errorf("%d keys after another second", len(f.kv.m))
	}
	large := strings.Repeat("x", flushBytes)
	f.set(large, 1)
	if len(f.kv.m) != 4 {
		t.Errorf("%d keys after much", len(f.kv.m))
	}
	// The process dies: the checkpoint and what the log has since.
	f.set("a", 1000)
	f.restart()
	f.log.reads = 0
	f.rt.Elected(0, 2)
	f.want(f.get("a", "b", large), "[1000 1 1]")
	if f.log.reads != 1 || f.replayed != 4 {
		t.Errorf("%d reads, %d records replayed", f.log.reads, f.replayed)
	}
}

// Nothing beyond the high watermark goes into the checkpoint: another leader may
// have decided otherwise.
func TestCheckpointStaysBelowTheHighWatermark(t *testing.T) {
	f := newFixture(t)
	f.rt.Elected(0, 1)
	f.set("a", 1)
	f.log.held = true
	f.set("a", 2)
	f.rt.Close()
	f.log.loseTail(1)
	f.restart()
	f.rt.Elected(0, 2)
	f.log.commit()
	f.want(f.get("a"), "[1]")
	if f.log.reads != 0 {
		t.Errorf("%d reads", f.log.reads)
	}
}

// A store that fails, at any write, makes loads longer and nothing wrong.
func TestFailingStore(t *testing.T) {
	for n := 1; n < 8; n++ {
		f := newFixture(t)
		f.kv.failIn = n
		f.rt.Elected(0, 1)
		for i := range uint64(5) {
			f.want(f.set("a", i), "[]")
			f.want(f.set(fmt.Sprint(i), i), "[]")
			f.clock.Advance(flushEvery)
		}
		f.rt.Close()
		f.restart()
		f.rt.Elected(0, 2)
		f.want(f.get("a", "0", "1", "2", "3", "4"), "[4 0 1 2 3 4]")
	}
}

func TestForgetDropsTheCheckpoint(t *testing.T) {
	f := newFixture(t)
	f.rt.Elected(0, 9)
	f.set("a", 1)
	f.rt.ForgetAll()
	for k := range f.kv.m {
		if strings.HasPrefix(k, "test/") {
			t.Errorf("key %q is left", k)
		}
	}
	// The topic is made again: its epochs begin anew.
	f.log = newMemLog()
	f.log.topicID = [16]byte{7}
	f.rt.Elected(0, 0)
	f.want(f.get("a"), "[0]")
}

// TestCrashes runs random work with failing appends and stores, transactions,
// restarts and lost tails: what was acknowledged and committed is there, what was
// never written is not.
func TestCrashes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := newFixture(t)
		epoch := int32(1)
		f.rt.Elected(0, epoch)
		names := rapid.SampledFrom([]string{"a", "b", "c"})
		producer := rapid.Int64Range(1, 2)
		for range rapid.IntRange(1, 50).Draw(t, "steps") {
			switch rapid.IntRange(0, 12).Draw(t, "step") {
			case 0, 1:
				f.set(names.Draw(t, "name"), rapid.Uint64Range(1, 99).Draw(t, "value"))
			case 2:
				f.submit(event{delete: []string{names.Draw(t, "name")}})
			case 3, 4, 5:
				f.pend(producer.Draw(t, "producer"), names.Draw(t, "name"), rapid.Uint64Range(1, 99).Draw(t, "value"))
			case 6, 7:
				f.mark(producer.Draw(t, "producer"), rapid.IntRange(0, 3).Draw(t, "commit") > 0)
			case 8:
				f.log.failIn, f.log.tear = rapid.IntRange(1, 3).Draw(t, "fail"), rapid.Bool().Draw(t, "tear")
			case 9:
				f.kv.failIn = rapid.IntRange(1, 3).Draw(t, "fail store")
			case 10:
				f.clock.Advance(reloadMax)
			case 11:
				f.log.held = rapid.Bool().Draw(t, "hold")
				f.log.advance()
			default:
				epoch++
				f.die(t, epoch, rapid.Bool().Draw(t, "crash"))
			}
		}
		f.log.failIn, f.kv.failIn = 0, 0
		f.log.commit()
		f.clock.Advance(reloadMax)
		f.log.commit()
		if got := f.get("a"); !got.done || got.err != nil {
			t.Fatalf("a read after all that: %v", got)
		}
		if got, want := f.machine.state(), f.replayedWhole(t); got != want {
			t.Fatalf("the machine knows\n%s\nthe log says\n%s", got, want)
		}
	})
}

// die ends the process or only the leadership. In a crash the log may lose what
// was not committed.
func (f *fixture) die(t *rapid.T, epoch int32, crash bool) {
	if crash {
		f.log.waiters = nil
		f.restart()
		if rapid.Bool().Draw(t, "lose") {
			f.log.loseTail(rapid.Int64Range(0, f.log.LogEndOffset()).Draw(t, "from"))
		}
		f.log.commit()
	}
	f.rt.Elected(0, epoch)
}

// replayedWhole is what a machine knows that has read all of the log.
func (f *fixture) replayedWhole(t failer) string {
	m := newNumbers(new(int))
	for _, b := range f.log.batches {
		if b.IsControl() {
			marker, _, err := batch.ParseMarker(b)
			if err != nil {
				t.Fatal(err)
			}
			m.ReplayMarker(b.ProducerID(), marker.Commit)
			continue
		}
		err := batch.Records(b, 0, func(r batch.Record) error {
			rec, _, err := codec{}.Decode(r.Key, r.Value)
			if b.IsTransactional() {
				m.ReplayPending(r.Offset, b.ProducerID(), rec)
			} else {
				m.Replay(r.Offset, rec)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return m.state()
}

// A checkpoint in the middle of transactions restores exactly, from every step.
func TestCheckpointInTheMiddleOfTransactions(t *testing.T) {
	steps := []func(f *fixture){
		func(f *fixture) { f.set("a", 1) },
		func(f *fixture) { f.pend(1, "a", 2) },
		func(f *fixture) { f.pend(1, "b", 3) },
		func(f *fixture) { f.pend(2, "a", 4) },
		func(f *fixture) { f.set("b", 5) },     // newer than what 1 has pending
		func(f *fixture) { f.mark(2, true) },   // newer than what 1 has pending
		func(f *fixture) { f.pend(1, "c", 6) }, // deleted before its commit
		func(f *fixture) { f.pend(3, "d", 7) }, // aborted
		func(f *fixture) { f.submit(event{delete: []string{"c"}}) },
		func(f *fixture) { f.mark(1, true) },
		func(f *fixture) { f.mark(3, false) },
		func(f *fixture) { f.pend(4, "d", 8) },
		func(f *fixture) { f.pend(4, "d", 9) }, // only the last of a transaction counts
		func(f *fixture) { f.mark(4, true) },
	}
	for flushAt := range steps {
		for dieAt := flushAt; dieAt < len(steps); dieAt++ {
			f := newFixture(t)
			f.rt.Elected(0, 1)
			for i, step := range steps {
				step(f)
				if i == flushAt {
					f.clock.Advance(flushEvery)
				}
				if i == dieAt {
					f.restart()
					f.rt.Elected(0, 2)
				}
				if got, want := f.machine.state(), f.replayedWhole(t); got != want {
					t.Fatalf("stored after step %d, died after step %d:\n%s\nthe log says\n%s", flushAt, dieAt, got, want)
				}
			}
			f.rt.Close()
			f.restart()
			f.log.reads = 0
			f.rt.Elected(0, 3)
			f.want(f.get("a", "b", "c", "d"), "[4 5 0 9]")
			if f.log.reads != 0 || len(f.kv.m) != 4 {
				t.Errorf("stored after step %d, died after step %d: %d reads, %d keys; want none, and the 4 of 3 records", flushAt, dieAt, f.log.reads, len(f.kv.m))
			}
		}
	}
}

// A marker that the log refuses, and offsets of a fenced producer, are answered
// with the reason, and the shard goes on.
func TestRefusedTransactions(t *testing.T) {
	f := newFixture(t)
	f.rt.Elected(0, 1)
	f.pend(1, "a", 1)
	for _, code := range refusals {
		f.log.failIn, f.log.appendErr = 1, code
		f.want(f.mark(1, true), fmt.Sprintf("error %d", code.Code))
		f.log.failIn = 1
		f.want(f.pend(1, "a", 2), fmt.Sprintf("error %d", code.Code))
	}
	f.want(f.get("a"), "[0]")
	f.want(f.mark(1, true), "[]")
	f.want(f.get("a"), "[1]")
	// Any other failure starts the shard over.
	f.log.failIn, f.log.appendErr = 1, nil
	f.want(f.mark(1, true), "error 16")
	f.want(f.mark(1, true), "error 14")
	f.clock.Advance(reloadMax)
	f.want(f.get("a"), "[1]")
	// It waits for the high watermark as everything does.
	f.log.held = true
	r := f.mark(1, true)
	f.want(r, "waits")
	f.log.commit()
	f.want(r, "[]")
	f.log.unwritable = kerr.NotEnoughReplicas
	f.want(f.mark(1, true), "error 15")
	f.rt.Resigned(0, 1)
	f.want(f.mark(1, true), "error 16")
}

// A checkpoint with an open transaction, whose marker compaction has taken since:
// without it the transaction would stay open for ever.
func TestOldCheckpointOfATransactionThatIsCompactedAway(t *testing.T) {
	f := newFixture(t)
	f.rt.Elected(0, 1)
	f.pend(1, "a", 5)
	f.clock.Advance(flushEvery)
	old := maps.Clone(f.kv.m)
	f.mark(1, false)
	f.set("b", 1)
	f.rt.Close()
	f.kv.m = old // the store lost its end
	f.log.compact(0, 1)
	f.log.compactedTo = 2
	f.restart()
	f.rt.Elected(0, 2)
	f.want(f.get("a", "b"), "[0 1]")
	if len(f.machine.pending[1]) != 0 {
		t.Errorf("still open: %v", f.machine.pending)
	}
}
