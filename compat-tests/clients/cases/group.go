package cases

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
)

const groupPartitions = 4

// reader is a member and the values that it has delivered.
type reader struct {
	Member
	mu     sync.Mutex
	values map[string]bool
}

func (r *reader) deliver(record Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.values[string(record.Value)] = true
}

func (r *reader) seen() map[string]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.values)
}

// groupOf is a group, its topic, and how much was sent there.
type groupOf struct {
	t        *testing.T
	ctx      context.Context
	client   Client
	topic    string
	assignor string
	members  []*reader
	sent     int
}

func (g *groupOf) join() *reader {
	g.t.Helper()
	r := &reader{values: map[string]bool{}}
	m, err := g.client.Join(g.topic, "g-"+g.topic, g.assignor, r.deliver)
	if err != nil {
		g.t.Fatalf("join: %v", err)
	}
	r.Member = m
	g.members = append(g.members, r)
	return r
}

func (g *groupOf) leave(r *reader) {
	g.t.Helper()
	if err := r.Leave(); err != nil {
		g.t.Fatalf("leave: %v: %s", err, g.state())
	}
}

func (g *groupOf) send(n int) {
	g.t.Helper()
	send(g.t, g.ctx, g.client, g.topic, Settings{}, values("", g.sent, g.sent+n, groupPartitions))
	g.sent += n
}

// untilHeld waits until the members hold that many partitions.
func (g *groupOf) untilHeld(want int, members ...*reader) {
	g.t.Helper()
	until(g.t, g.ctx, func() (bool, error) {
		for _, m := range members {
			if held, err := m.Held(); err != nil || held != want {
				return false, err
			}
		}
		return true, nil
	}, g.state)
}

// untilRead waits until all that was sent was read.
func (g *groupOf) untilRead() {
	g.t.Helper()
	until(g.t, g.ctx, func() (bool, error) {
		all := map[string]bool{}
		for _, m := range g.members {
			maps.Copy(all, m.seen())
		}
		return len(all) == g.sent, nil
	}, g.state)
}

func (g *groupOf) state() string {
	lines := []string{fmt.Sprintf("%d sent", g.sent)}
	for i, m := range g.members {
		held, err := m.Held()
		lines = append(lines, fmt.Sprintf("member %d has %d partitions (%v) and has read %d", i, held, err, len(m.seen())))
	}
	return strings.Join(lines, "; ")
}

// group has a second member come and go, and a third one go on from the commit.
func group(t *testing.T, ctx context.Context, c Client, assignor string) {
	g := &groupOf{t: t, ctx: ctx, client: c, topic: newTopic(t, groupPartitions), assignor: assignor}
	g.send(200)
	first := g.join()
	g.untilHeld(4, first)
	g.untilRead()
	second := g.join()
	g.untilHeld(2, first, second)
	for range 5 { // the first may still have asked for what is the second's
		if len(second.seen()) == 0 {
			g.send(200)
			g.untilRead()
		}
	}
	if len(second.seen()) == 0 {
		t.Fatalf("the second member reads nothing: %s", g.state())
	}
	g.leave(second)
	g.untilHeld(4, first)
	g.send(100)
	g.untilRead()
	g.leave(first)
	g.send(50)
	third := g.join()
	g.untilRead()
	g.leave(third)
	for i := g.sent - 50; i < g.sent; i++ {
		if !third.seen()[fmt.Sprint(i)] || len(third.seen()) != 50 {
			t.Fatalf("from the commit on came %d values, want the last 50 of %d: %s", len(third.seen()), g.sent, g.state())
		}
	}
}
