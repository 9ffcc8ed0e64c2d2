package storage

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/barnabas-mq/barnabas/internal/clock"
	"github.com/barnabas-mq/barnabas/internal/telemetry"
	"github.com/barnabas-mq/barnabas/internal/vfs"
	"github.com/barnabas-mq/barnabas/protocol/batch"
)

func TestSmoke(t *testing.T) {
	dir := t.TempDir()
	env := Env{FS: vfs.OS(), Clock: clock.Real(), Logger: telemetry.Discard(), Rand: rand.Uint64}
	tp := TopicPartition{"t", 0}
	id := TopicID{1}
	want := int64(0)
	for round := range 4 {
		s, err := Open(env, dir, StoreConfig{})
		if err != nil {
			t.Fatal(err)
		}
		if round > 0 != s.CleanStart() {
			t.Fatal("clean", round)
		}
		l, err := s.OpenLog(tp, id, LogConfig{SegmentBytes: 20000, IndexIntervalBytes: 300})
		if err != nil {
			t.Fatal(err)
		}
		if l.LogEndOffset() != want {
			t.Fatal(l.LogEndOffset(), want)
		}
		for i := range 100 {
			b := batch.NewBuilder(batch.BuilderOptions{})
			for j := range 5 {
				b.Add(int64(1000+i*10+j), []byte("k"), []byte(fmt.Sprint("value", i, j)))
			}
			res, err := l.Append(AppendRequest{Batches: b.Build(), LeaderEpoch: int32(round)})
			if err != nil || res.FirstOffset != want {
				t.Fatal(res, err)
			}
			want += 5
			l.SetHighWatermark(want)
		}
		for off := int64(0); off < want; {
			r, err := l.Read(ReadRequest{Offset: off, Limit: want, MaxBytes: 1000, AtLeastOne: true})
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Data) == 0 {
				t.Fatal("no data at", off)
			}
			for rest := r.Data; len(rest) > 0; {
				v, after, err := batch.Next(rest)
				if err != nil {
					t.Fatal(err)
				}
				if v.BaseOffset() != off {
					t.Fatal(v.BaseOffset(), off)
				}
				off = v.NextOffset()
				rest = after
			}
		}
		f, ok, err := l.OffsetForTimestamp(1013)
		if err != nil || !ok || f.Offset != 8 || f.TimestampMs != 1013 {
			t.Fatal(f, ok, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
