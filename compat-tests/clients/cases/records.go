package cases

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"
)

// roundTrip sends records of every shape and reads them back, in order by partition, each with all it had.
func roundTrip(t *testing.T, ctx context.Context, c Client, with Settings) {
	topic := newTopic(t, partitions)
	var sent []Record
	for i := range count {
		sent = append(sent, shape(i))
	}
	send(t, ctx, c, topic, with, append(sent, ends(partitions)...))
	next := make([]int64, partitions)
	for _, got := range readAll(t, ctx, c, topic, partitions, ReadUncommitted) {
		at := next[got.Partition]
		next[got.Partition]++
		if i := int(at)*partitions + int(got.Partition); i >= count {
			t.Fatalf("partition %d has a record too many: %q", got.Partition, got.Value)
		} else if err := same(sent[i], at, got); err != nil {
			t.Fatalf("record %d: %v", i, err)
		}
	}
	for p, n := range next {
		if n != count/partitions {
			t.Errorf("partition %d has %d records", p, n)
		}
	}
}

// shape is the i-th record: every seventh key is null, and every eleventh value where the key is not.
func shape(i int) Record {
	r := Record{
		Partition: int32(i % partitions),
		Key:       fmt.Append(nil, "key ", i), Value: append(fmt.Append(nil, "value ", i, " "), bytes.Repeat([]byte("v"), i%200)...),
		Headers: []Header{{"n", fmt.Append(nil, i)}, {"null", nil}},
	}
	if i%7 == 0 {
		r.Key = nil
	} else if i%11 == 0 {
		r.Value = nil
	}
	return r
}

func same(sent Record, offset int64, got Record) error {
	if got.Offset != offset {
		return fmt.Errorf("offset %d, want %d", got.Offset, offset)
	}
	if !equal(got.Key, sent.Key) || !equal(got.Value, sent.Value) {
		return fmt.Errorf("key %q and value %q, want %q and %q", got.Key, got.Value, sent.Key, sent.Value)
	}
	if len(got.Headers) != len(sent.Headers) {
		return fmt.Errorf("headers %q, want %q", got.Headers, sent.Headers)
	}
	for i, h := range sent.Headers {
		if g := got.Headers[i]; g.Key != h.Key || !equal(g.Value, h.Value) {
			return fmt.Errorf("header %q, want %q", g, h)
		}
	}
	return nil
}

// equal tells null from empty.
func equal(a, b []byte) bool { return bytes.Equal(a, b) && (a == nil) == (b == nil) }

func offsetsByTime(t *testing.T, ctx context.Context, c Client) {
	topic := newTopic(t, 1)
	base := time.Now().Add(-time.Hour).Truncate(time.Millisecond)
	var records []Record
	for i := range 10 {
		records = append(records, Record{Value: []byte("v"), Time: base.Add(time.Duration(i) * time.Second)})
	}
	send(t, ctx, c, topic, Settings{}, records)
	for at, want := range map[time.Duration]int64{0: 0, 4500 * time.Millisecond: 5, time.Minute: -1} {
		got, err := c.OffsetAt(ctx, topic, base.Add(at))
		if err != nil || max(got, -1) != want {
			t.Errorf("the offset %v in is %d, want %d: %v", at, got, want, err)
		}
	}
	earliest, latest, err := c.Ends(ctx, topic)
	if err != nil || earliest != 0 || latest != 10 {
		t.Errorf("the earliest offset is %d, the latest %d: %v", earliest, latest, err)
	}
}
