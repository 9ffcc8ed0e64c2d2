package group

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/barnabas-mq/barnabas/cluster/metadata"
	"github.com/barnabas-mq/barnabas/cluster/replica"
)

// harness is a log, a clock and the waiting calls around one machine.
type harness struct {
	cfg    Config
	m      *Machine
	now    time.Time
	nextID int
	log    []logged
	timers map[string]time.Time
	calls  map[uint64]bool
	last   uint64
	out    strings.Builder
	// onAnswer sees every answer, where it is set.
	onAnswer func(call uint64, resp any)
	// world is the cluster's topics, for consumer groups.
	world      World
	topicCount int
	// quiet leaves records and answers out of the output.
	quiet bool
}

// logged is a record, in a producer's transaction or not, or a marker.
type logged struct {
	key, value []byte
	producer   *Producer
	marker     *replica.Marker
}

// replay gives one entry of the log to a machine.
func (l logged) replay(m *Machine, offset int64) {
	if l.marker != nil {
		m.ReplayMarker(l.marker.ProducerID, l.marker.Commit)
		return
	}
	r, ok, err := Codec{}.Decode(l.key, l.value)
	if err != nil || !ok {
		panic(fmt.Sprintf("record %d of the log: ok %v, %v", offset, ok, err))
	}
	if l.producer != nil {
		m.ReplayPending(offset, l.producer.ID, r)
		return
	}
	m.Replay(offset, r)
}

func newHarness(cfg Config) *harness {
	h := &harness{cfg: cfg, now: time.UnixMilli(0).UTC(), world: World{Image: metadata.New("")}}
	h.reload()
	return h
}

// reload is what a restart does: the log alone survives.
func (h *harness) reload() {
	h.m = New(h.cfg, func() string { h.nextID++; return strconv.Itoa(h.nextID) })
	h.timers, h.calls = map[string]time.Time{}, map[uint64]bool{}
	for i, l := range h.log {
		l.replay(h.m, int64(i))
	}
	h.event(Event{Request: Loaded{}})
}

// call puts a request and returns its number.
func (h *harness) call(who string, req any) uint64 {
	h.last++
	h.calls[h.last] = true
	h.event(Event{Call: h.last, Client: Client{ID: who, Host: "/127.0.0.1"}, Request: req})
	return h.last
}

func (h *harness) event(e Event) {
	e.World = h.world
	out := h.m.Handle(h.now, e)
	h.checkMemberBytes()
	checkParts(e, out)
	p := producerOf(e)
	for _, r := range out.Records {
		key, value := Codec{}.Encode(r)
		l := logged{key: key, value: value, producer: p}
		h.log = append(h.log, l)
		var in string
		if p != nil {
			in = fmt.Sprintf(" in the transaction of %d/%d", p.ID, p.Epoch)
		}
		h.printf("record %s%s\n", describeRecord(r), in)
		l.replay(h.m, int64(len(h.log)-1))
	}
	for _, t := range out.Timers {
		if t.At.IsZero() {
			delete(h.timers, t.Key)
		} else {
			h.timers[t.Key] = t.At
		}
	}
	for _, a := range out.Answers {
		if !h.calls[a.Call] {
			panic(fmt.Sprintf("call %d was answered twice, or never made", a.Call))
		}
		delete(h.calls, a.Call)
		if h.onAnswer != nil {
			h.onAnswer(a.Call, a.Response)
		}
		h.printf("call %d: %s\n", a.Call, describeAnswer(a.Response))
	}
}

// checkParts sees to it that a crash cannot leave a half of what an event decided:
// after one in the middle of a migration, a member would get partitions that another
// still consumes.
func checkParts(e Event, out Out) {
	if !out.Parts {
		return
	}
	switch r := e.Request.(type) {
	case ImportOffsets:
		return
	case TimerFired:
		if r.Key == timerExpiry || r.Key == timerDeletion {
			return
		}
	}
	panic(fmt.Sprintf("the records of a %T may be cut short", e.Request))
}

// checkMemberBytes holds what the machine counted against all of its groups.
func (h *harness) checkMemberBytes() {
	n := 0
	for _, g := range h.m.soft.groups {
		for _, m := range g.members {
			n += joinBytes(m.protocols)
		}
	}
	if n != h.m.soft.memberBytes {
		panic(fmt.Sprintf("members have %d bytes, %d were counted", n, h.m.soft.memberBytes))
	}
}

func (h *harness) printf(format string, args ...any) {
	if !h.quiet {
		fmt.Fprintf(&h.out, format, args...)
	}
}

// mark ends a producer's transaction.
func (h *harness) mark(producerID int64, commit bool) {
	l := logged{marker: &replica.Marker{ProducerID: producerID, Commit: commit}}
	h.log = append(h.log, l)
	l.replay(h.m, 0)
}

// tick moves the clock and fires what is due, earliest first.
func (h *harness) tick(d time.Duration) {
	end := h.now.Add(d)
	for {
		var due string
		for key, at := range h.timers {
			if !at.After(end) && (due == "" || cmp.Or(at.Compare(h.timers[due]), cmp.Compare(key, due)) < 0) {
				due = key
			}
		}
		if due == "" {
			break
		}
		if at := h.timers[due]; at.After(h.now) {
			h.now = at
		}
		delete(h.timers, due)
		h.event(Event{Request: TimerFired{Key: due}})
	}
	h.now = end
}
