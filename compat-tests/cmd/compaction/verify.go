package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// verify consumes every topic from its start, as a reader of what is committed does, and compares.
func verify(ctx context.Context, l *load, cleaned map[string]int64) error {
	l.left = 0
	for topic, name := range l.names() {
		if err := l.verifyTopic(ctx, topic, name, cleaned); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// reader is what consuming a topic gives.
type reader struct {
	last map[string]*kgo.Record
	// seen has the keys that were met below the offset that a partition was cleaned to.
	seen map[string]int64
	next map[int32]int64
	n    int
}

func (l *load) verifyTopic(ctx context.Context, topic int, name string, cleaned map[string]int64) error {
	cl, err := l.client(topic, kgo.ConsumeTopics(name), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		return err
	}
	defer cl.Close()
	ends, err := kadm.NewClient(cl).ListCommittedOffsets(ctx, name)
	if err != nil {
		return err
	}
	r := &reader{last: map[string]*kgo.Record{}, seen: map[string]int64{}, next: map[int32]int64{}}
	for !r.done(name, ends) {
		fetches := cl.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return err
		}
		var bad error
		fetches.EachRecord(func(rec *kgo.Record) {
			bad = errors.Join(bad, r.take(rec, cleaned[fmt.Sprintf("%s-%d", name, rec.Partition)]))
		})
		if bad != nil {
			return bad
		}
	}
	l.left += r.n
	return l.compare(topic, r)
}

// done says that each partition was read to its end: the last record of each is one that rolled its segment.
func (r *reader) done(name string, ends kadm.ListedOffsets) bool {
	done := true
	ends.Each(func(o kadm.ListedOffset) { done = done && r.next[o.Partition] >= o.Offset })
	return done
}

func (r *reader) take(rec *kgo.Record, cleaned int64) error {
	r.n++
	if next, ok := r.next[rec.Partition]; ok && rec.Offset < next {
		return fmt.Errorf("partition %d: offset %d follows %d", rec.Partition, rec.Offset, next-1)
	}
	r.next[rec.Partition] = rec.Offset + 1
	key := string(rec.Key)
	if before, ok := r.seen[key]; ok && rec.Offset < cleaned {
		return fmt.Errorf("partition %d is cleaned up to %d, but %s is there at %d and at %d", rec.Partition, cleaned, key, before, rec.Offset)
	}
	if rec.Offset < cleaned {
		r.seen[key] = rec.Offset
	}
	r.last[key] = rec
	return nil
}

// compare holds each key's last value against what was written.
func (l *load) compare(topic int, r *reader) error {
	for key, written := range l.records[topic] {
		name := fmt.Sprintf("key-%d", key)
		got := r.last[name]
		delete(r.last, name)
		if !acceptable(written, got) {
			return fmt.Errorf("%s ends with %s; it was written as %s", name, show(got), showAll(written))
		}
	}
	for name, got := range r.last {
		return fmt.Errorf("%s was never written, and is there with %s", name, show(got))
	}
	return nil
}

// acceptable says that what a reader ends with is the last record that counts.
func acceptable(written []record, got *kgo.Record) bool {
	slices.SortFunc(written, func(a, b record) int { return int(a.offset - b.offset) })
	for i := len(written) - 1; i >= 0; i-- {
		w := written[i]
		if w.fate == aborted {
			continue
		}
		if same(w, got) {
			return true
		}
		if w.fate == stays {
			return false
		}
	}
	return got == nil
}

// same says that a record is the one written; a tombstone may be gone.
func same(w record, got *kgo.Record) bool {
	if w.tombstone {
		return got == nil || got.Value == nil && got.Offset == w.offset
	}
	if got == nil || got.Value == nil || got.Offset != w.offset {
		return false
	}
	number, _, _ := strings.Cut(strings.TrimPrefix(string(got.Value[:min(len(got.Value), 40)]), "value-"), "-")
	n, err := strconv.Atoi(number)
	return err == nil && n == int(w.number)
}

func show(got *kgo.Record) string {
	if got == nil {
		return "nothing"
	}
	return fmt.Sprintf("%.40q at offset %d of partition %d", got.Value, got.Offset, got.Partition)
}

func showAll(written []record) string {
	var out []string
	for _, w := range written[max(0, len(written)-6):] {
		out = append(out, fmt.Sprintf("%d@%d deleted=%v fate=%d", w.number, w.offset, w.tombstone, w.fate))
	}
	return strings.Join(out, ", ")
}
