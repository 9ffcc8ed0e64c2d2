package cases

import (
	"context"
	"maps"
	"testing"

	"github.com/barnabas-mq/barnabas/compat-tests/harness"
)

// transaction commits, aborts with a group's offset, and commits with one. What a committed reader and the group see
// are the two commits.
func transaction(t *testing.T, ctx context.Context, c Transactor) {
	input, topic := newTopic(t, 1), newTopic(t, partitions)
	group, id := "g-"+topic, "t-"+topic
	send(t, ctx, c, input, Settings{}, values("in ", 0, 10, 1))
	p, err := c.Transactional(ctx, id, group, input)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	must := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	for _, round := range []string{"first", "aborted", "third"} {
		must("begin", p.Begin())
		var records []Record
		for i := range 10 {
			records = append(records, Record{Partition: int32(i % partitions), Value: []byte(round)})
		}
		must("send", p.Send(ctx, topic, records))
		switch round {
		case "first":
			must("commit", p.Commit(ctx))
		case "aborted":
			must("send an offset", p.SendOffset(ctx, 3))
			must("abort", p.Abort(ctx))
			if next, err := c.Committed(ctx, input, group); err != nil || next >= 0 {
				t.Errorf("after the abort the group's offset is %d, want none: %v", next, err)
			}
		case "third":
			must("send the offset", p.SendOffset(ctx, 7))
			must("commit with an offset", p.Commit(ctx))
		}
	}
	send(t, ctx, c, topic, Settings{}, ends(partitions))
	wantRead(t, ctx, c, topic, ReadCommitted, map[string]int{"first": 10, "third": 10})
	wantRead(t, ctx, c, topic, ReadUncommitted, map[string]int{"first": 10, "aborted": 10, "third": 10})
	next := int64(-1)
	until(t, ctx, func() (done bool, err error) { // the commit was answered before its markers were written
		next, err = c.Committed(ctx, input, group)
		return next >= 0, err
	}, func() string { return "the third transaction's offset is the group's" })
	if next != 7 {
		t.Errorf("the group's offset is %d, want 7", next)
	}
}

func wantRead(t *testing.T, ctx context.Context, c Client, topic string, level Isolation, want map[string]int) {
	t.Helper()
	if got := tallied(readAll(t, ctx, c, topic, partitions, level)); !maps.Equal(got, want) {
		t.Errorf("a reader with %s sees %v, want %v", level, got, want)
	}
}

// fencing initialises a second producer with the id of the first, whose next commit fails.
func fencing(t *testing.T, ctx context.Context, c Transactor) {
	input, topic := newTopic(t, 1), newTopic(t, partitions)
	id := harness.Name(t, "fenced")
	first, err := c.Transactional(ctx, id, "g-"+id, input)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	if err := first.Begin(); err != nil {
		t.Fatal(err)
	}
	if err := first.Send(ctx, topic, []Record{{Value: []byte("lost")}}); err != nil {
		t.Fatal(err)
	}
	second, err := c.Transactional(ctx, id, "h-"+id, input)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	if err := first.Commit(ctx); err == nil || !c.Fenced(err) {
		t.Errorf("the first producer's commit ends with: %v", err)
	}
	if err := second.Begin(); err != nil {
		t.Fatal(err)
	}
	if err := second.Send(ctx, topic, []Record{{Value: []byte("kept")}}); err != nil {
		t.Fatal(err)
	}
	if err := second.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	send(t, ctx, c, topic, Settings{}, ends(partitions))
	wantRead(t, ctx, c, topic, ReadCommitted, map[string]int{"kept": 1})
}
