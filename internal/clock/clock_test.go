package clock

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestElapsed(t *testing.T) {
	start := time.UnixMilli(1_000_000)
	m := NewManual(start)
	rang := 0
	m.AfterFunc(2*time.Second, func() { rang++ })
	m.Advance(time.Second)
	m.Step(-time.Hour)
	m.Advance(999 * time.Millisecond)
	if m.Elapsed() != 1999*time.Millisecond || rang != 0 {
		t.Fatalf("%v elapsed, rang %d times", m.Elapsed(), rang)
	}
	m.Step(2 * time.Hour)
	if rang != 0 {
		t.Fatal("a call is due because the time was set")
	}
	m.Advance(time.Millisecond)
	if want := start.Add(2*time.Second + time.Hour); rang != 1 || !m.Now().Equal(want) {
		t.Fatalf("rang %d times, at %v, want %v", rang, m.Now(), want)
	}
	synctest.Test(t, func(t *testing.T) {
		c := Real()
		before := c.Elapsed()
		time.Sleep(time.Minute)
		if d := c.Elapsed() - before; d != time.Minute {
			t.Fatalf("%v elapsed in a minute", d)
		}
	})
}
