package storage

import (
	"fmt"
	"testing"
	"time"

	"github.com/barnabas-mq/barnabas/protocol/batch"
)

// crashedCleaning is a log with all that a cleaning has to do with, and the crash
// that is to come.
func newCrashedCleaning(t *testing.T, seed uint64) *cleanModel {
	w := newWorld(t, seed)
	w.cfg.Cleaner = CleanerConfig{Threads: 1, Backoff: time.Second, DedupeBufferBytes: 1 << 20, IOBufferBytes: 8 << 10}
	cfg := compactConfig()
	cfg.SegmentBytes, cfg.IndexIntervalBytes, cfg.MinCleanableRatio = 900, 100, 0
	cfg.DeleteRetentionMs = 500
	m := &cleanModel{w: w, h: newHistory(), cfg: cfg, sequence: map[int64]int32{}, epoch: map[int64]int16{}}
	if err := m.reopen(); err != nil {
		t.Fatal(err)
	}
	return m
}

// load writes for a while.
func (m *cleanModel) load(from, n int) error {
	for i := from; i < from+n; i++ {
		codec := []batch.Codec{batch.None, batch.LZ4, batch.None, batch.Zstd}[i%4]
		if err := m.write(int64(i%3), false, codec, []int{i % 5, (i + 1) % 7}, []bool{i%6 == 0, false}); err != nil {
			return err
		}
		if err := m.write(int64(10+i%2), true, codec, []int{i % 4}, []bool{i%9 == 0}); err != nil {
			return err
		}
		if i%3 == 2 {
			if err := m.finish(int64(10+i%2), i%2 == 0); err != nil {
				return err
			}
		}
		m.w.settle()
	}
	for _, pid := range []int64{10, 11} {
		if err := m.finish(pid, from%2 == 0); err != nil {
			return err
		}
	}
	m.w.settle()
	return nil
}

// rounds are the cleanings that are interrupted: the first ones of a log, one that
// merges segments, and one in which tombstones and markers go.
var rounds = []func(*cleanModel) error{
	func(m *cleanModel) error { return m.load(0, 14) },
	func(m *cleanModel) error { return m.load(14, 6) },
	func(m *cleanModel) error {
		m.w.clock.Advance(700 * time.Millisecond)
		return m.load(20, 8)
	},
}

// TestCrashAtEveryStepOfACleaning stops the machine before each operation of a
// cleaning, then keeps any part of what was not synced. Whatever survives reads as
// the model says, and a further cleaning brings the log to where it belongs.
func TestCrashAtEveryStepOfACleaning(t *testing.T) {
	every := int64(1)
	if testing.Short() {
		every = 5
	}
	crashes := 0
	for round := range rounds {
		for n := int64(1); ; n += every {
			more := false
			for seed := uint64(n); seed < uint64(n)+2; seed++ {
				m := newCrashedCleaning(t, 1)
				for i := range round {
					mustDo(t, rounds[i](m))
					m.w.tick()
				}
				mustDo(t, rounds[round](m))
				// Everything is synced: what the crash takes is the cleaning's.
				mustDo(t, m.l.Flush())
				m.w.fs.CrashAt(n)
				m.w.tick()
				if _, err := m.w.fs.Stat("/data"); err == nil {
					m.w.abandon()
					continue // the cleaning had fewer steps
				}
				more = true
				crashes++
				m.crash(t, seed)
				m.afterwards(t, fmt.Sprintf("round %d, operation %d, seed %d", round, n, seed))
			}
			if !more {
				break
			}
		}
	}
	if want := 300 / int(every); crashes < want {
		t.Fatalf("only %d crashes", crashes)
	}
	t.Logf("%d crashes", crashes)
}

// TestCrashWhileASwapIsFinished crashes in the middle of a swap, and again in the
// middle of the start after it.
func TestCrashWhileASwapIsFinished(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	crashes := 0
	for n := int64(20); n < 400; n += 3 {
		for again := int64(1); again < 60; again += 2 {
			seed := uint64(n*7 + again)
			m := newCrashedCleaning(t, 1)
			mustDo(t, rounds[0](m))
			mustDo(t, m.l.Flush())
			m.w.fs.CrashAt(n)
			m.w.tick()
			if _, err := m.w.fs.Stat("/data"); err == nil {
				m.w.abandon()
				t.Logf("%d crashes", crashes)
				return
			}
			m.crash(t, seed)
			m.w.fs.CrashAt(again)
			_ = m.reopen()
			if _, err := m.w.fs.Stat("/data"); err == nil {
				m.w.abandon()
				m.w.fs.Kill()
				break // the start had fewer steps
			}
			crashes++
			m.crash(t, seed+1)
			m.afterwards(t, fmt.Sprintf("operation %d, then %d", n, again))
		}
	}
	t.Fatalf("the cleaning has no end")
}

func mustDo(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (m *cleanModel) crash(t *testing.T, seed uint64) {
	t.Helper()
	m.w.abandon()
	m.w.fs.Crash(seed)
}

// afterwards is a start after a crash, and life after that.
func (m *cleanModel) afterwards(t *testing.T, what string) {
	t.Helper()
	fail := func(when string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %s: %v", what, when, err)
		}
	}
	fail("start", m.reopen())
	fail("offline", m.l.Err())
	// Of the log's own cleaned offset nothing is said here: the checkpoint may be
	// older than the files.
	f, err := readRecords(m.l)
	fail("read", err)
	fail("after the start", m.h.checkReader(f))
	fail("committed", m.checkCommitted())
	fail("producers", m.resume())
	if end := m.l.LogEndOffset(); end != m.h.end {
		t.Fatalf("%s: the log ends at %d, not at %d", what, end, m.h.end)
	}
	fail("write", m.load(50, 6))
	m.w.tick()
	fail("clean", m.check())
	fail("committed after a cleaning", m.checkCommitted())
	if left := append(m.w.names(".swap"), m.w.names(".cleaned")...); len(left) > 0 {
		t.Fatalf("%s: left %v", what, left)
	}
	fail("stop", m.w.close())
	fail("start again", m.reopen())
	fail("at last", m.check())
	m.w.abandon()
}
