package api

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/cluster/metadata"
	"github.com/barnabas-mq/barnabas/cluster/replica"
	"github.com/barnabas-mq/barnabas/internal/clock"
)

type sessionWorld struct {
	t   *testing.T
	clk *clock.Manual
	s   *FetchSessions
}

func newSessionWorld(t *testing.T, max int) *sessionWorld {
	clk := clock.NewManual(time.Unix(1_700_000_000, 0))
	return &sessionWorld{t, clk, NewFetchSessions(clk, rand.New(rand.NewPCG(1, 2)), max)}
}

func sessionRequest(id, epoch int32, partitions ...int32) *kmsg.FetchRequest {
	r := kmsg.NewPtrFetchRequest()
	r.Version, r.SessionID, r.SessionEpoch = 12, id, epoch
	if len(partitions) > 0 {
		topic := kmsg.NewFetchRequestTopic()
		topic.Topic = "t"
		for _, p := range partitions {
			part := kmsg.NewFetchRequestTopicPartition()
			part.Partition = p
			topic.Partitions = append(topic.Partitions, part)
		}
		r.Topics = append(r.Topics, topic)
	}
	return r
}

func forget(r *kmsg.FetchRequest, partitions ...int32) *kmsg.FetchRequest {
	topic := kmsg.NewFetchRequestForgottenTopic()
	topic.Topic, topic.Partitions = "t", partitions
	r.ForgottenTopics = append(r.ForgottenTopics, topic)
	return r
}

// do runs a request whose partitions are read as result says, and returns the
// partitions fetched, those answered, and the session id.
func (w *sessionWorld) do(r *kmsg.FetchRequest, follower bool, result func(p int32, part *fetchPart)) (fetched, answered []int32, id int32, err *kerr.Error) {
	w.t.Helper()
	ctx, parts, err := w.s.begin(r, follower)
	if err != nil {
		return nil, nil, 0, err
	}
	for i := range parts {
		fetched = append(fetched, parts[i].key.partition)
		if result != nil {
			result(parts[i].key.partition, &parts[i])
		}
	}
	id, answer, err := ctx.end(parts)
	for _, p := range answer {
		answered = append(answered, p.key.partition)
	}
	return fetched, answered, id, err
}

func (w *sessionWorld) open(follower bool, partitions ...int32) int32 {
	w.t.Helper()
	_, answered, id, err := w.do(sessionRequest(0, 0, partitions...), follower, nil)
	if err != nil || !slices.Equal(answered, partitions) {
		w.t.Fatalf("full request answered %v, %v; want all of %v", answered, err, partitions)
	}
	return id
}

func TestSessionAnswersOnlyWhatChanged(t *testing.T) {
	w := newSessionWorld(t, 10)
	id := w.open(false, 0, 1, 2)
	if id <= 0 {
		t.Fatalf("session id %d", id)
	}
	for i, c := range []struct {
		name    string
		request *kmsg.FetchRequest
		result  func(p int32, part *fetchPart)
		fetched []int32
		answers []int32
	}{
		{"nothing new", sessionRequest(id, 1), nil, []int32{0, 1, 2}, nil},
		{"records, which send the partition to the end", sessionRequest(id, 2), func(p int32, part *fetchPart) {
			if p == 0 {
				part.read.Data = []byte("records")
			}
		}, []int32{0, 1, 2}, []int32{0}},
		{"the new order", sessionRequest(id, 3), nil, []int32{1, 2, 0}, nil},
		{"a high watermark", sessionRequest(id, 4), func(p int32, part *fetchPart) {
			if p == 2 {
				part.read.HighWatermark = 5
			}
		}, []int32{1, 2, 0}, []int32{2}},
		{"the same high watermark, a log start", sessionRequest(id, 5), func(p int32, part *fetchPart) {
			if p == 2 {
				part.read.HighWatermark = 5
			}
			if p == 1 {
				part.read.LogStartOffset = 3
			}
		}, []int32{1, 2, 0}, []int32{1}},
		{"an error, and what goes back", sessionRequest(id, 6), func(p int32, part *fetchPart) {
			if p == 0 {
				part.err = kerr.NotLeaderForPartition
			}
		}, []int32{1, 2, 0}, []int32{1, 2, 0}},
		{"the error again", sessionRequest(id, 7), func(p int32, part *fetchPart) {
			if p == 0 {
				part.err = kerr.NotLeaderForPartition
			}
		}, []int32{1, 2, 0}, []int32{0}},
		{"the error is gone", sessionRequest(id, 8), nil, []int32{1, 2, 0}, []int32{0}},
		{"a divergence", sessionRequest(id, 9), func(p int32, part *fetchPart) {
			if p == 1 {
				part.read.Diverging = &replica.EpochEnd{}
			}
		}, []int32{1, 2, 0}, []int32{1}},
		{"one more, one less", forget(sessionRequest(id, 10, 7), 1), nil, []int32{2, 0, 7}, []int32{7}},
	} {
		fetched, answers, got, err := w.do(c.request, false, c.result)
		if err != nil || got != id || !slices.Equal(fetched, c.fetched) || !slices.Equal(answers, c.answers) {
			t.Fatalf("step %d, %s: fetched %v, answered %v, session %d, %v; want %v and %v", i, c.name, fetched, answers, got, err, c.fetched, c.answers)
		}
	}
}

func TestSessionErrors(t *testing.T) {
	w := newSessionWorld(t, 10)
	id := w.open(false, 0)
	withIDs := sessionRequest(id, 1)
	withIDs.Version = 13
	for _, c := range []struct {
		name    string
		request *kmsg.FetchRequest
		want    *kerr.Error
	}{
		{"unknown session", sessionRequest(id+1, 1), kerr.FetchSessionIDNotFound},
		{"no session", sessionRequest(0, 1), kerr.FetchSessionIDNotFound},
		{"epoch ahead", sessionRequest(id, 2), kerr.InvalidFetchSessionEpoch},
		{"topic ids in a session of names", withIDs, kerr.FetchSessionTopicIDError},
		{"right", sessionRequest(id, 1), nil},
		{"epoch again", sessionRequest(id, 1), kerr.InvalidFetchSessionEpoch},
	} {
		if _, _, _, err := w.do(c.request, false, nil); err != c.want {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
	// A request that a newer one overtakes while it waits.
	ctx, parts, err := w.s.begin(sessionRequest(id, 2), false)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := w.do(sessionRequest(id, 3), false, nil); err != nil {
		t.Fatal(err)
	}
	if got, _, err := ctx.end(parts); err != kerr.InvalidFetchSessionEpoch || got != id {
		t.Errorf("the overtaken request: session %d, %v", got, err)
	}
}

func TestSessionLife(t *testing.T) {
	w := newSessionWorld(t, 10)
	a := w.open(false, 0)
	w.do(sessionRequest(a, sessionEpochFinal, 0), false, nil)
	if n := w.s.Len(); n != 0 {
		t.Errorf("%d sessions after the final epoch, want 0", n)
	}
	b := w.open(false, 0)
	c, _, _, _ := w.do(sessionRequest(b, sessionEpochInitial, 1), false, nil)
	if n := w.s.Len(); n != 1 || !slices.Equal(c, []int32{1}) {
		t.Errorf("%d sessions after a full request in a session, want the new one; fetched %v", n, c)
	}
	d := w.open(false, 0)
	before := w.s.Len()
	_, answered, id, err := w.do(forget(sessionRequest(d, 1), 0), false, nil)
	if err != nil || id != 0 || len(answered) != 0 || w.s.Len() != before-1 {
		t.Errorf("an emptied session: id %d, %v, %v, %d sessions of %d", id, answered, err, w.s.Len(), before)
	}
	if _, _, id, _ := w.do(sessionRequest(0, 0), false, nil); id != 0 {
		t.Errorf("a full request without partitions made session %d", id)
	}
	old := sessionRequest(0, -1, 0)
	old.Version = 4
	if _, _, id, _ := w.do(old, false, nil); id != 0 {
		t.Errorf("a request before v7 made session %d", id)
	}
}

func TestSessionEviction(t *testing.T) {
	const second = time.Second
	type step struct {
		wait     time.Duration
		follower bool
		size     int
		want     bool // whether a session is made
	}
	for _, c := range []struct {
		name  string
		steps []step
	}{
		{"room", []step{{0, false, 1, true}, {0, false, 1, true}}},
		{"full of young ones", []step{{0, false, 1, true}, {0, false, 1, true}, {second, false, 9, false}}},
		{"idle ones go", []step{{0, false, 1, true}, {0, false, 1, true}, {sessionIdleMax + second, false, 1, true}}},
		{"a follower's before young consumers'", []step{{0, false, 5, true}, {0, false, 5, true}, {second, true, 1, true}}},
		{"not before young followers'", []step{{0, true, 1, true}, {0, true, 1, true}, {second, true, 9, false}}},
	} {
		w := newSessionWorld(t, 2)
		for i, s := range c.steps {
			w.clk.Advance(s.wait)
			parts := make([]int32, s.size)
			for p := range parts {
				parts[p] = int32(p)
			}
			if id := w.open(s.follower, parts...); (id != 0) != s.want {
				t.Errorf("%s, step %d: session %d", c.name, i, id)
			}
		}
		if w.s.Len() > 2 {
			t.Errorf("%s: %d sessions of at most 2", c.name, w.s.Len())
		}
	}
}

// TestOldSessionsGiveWayToLargerOnes uses both sessions for longer than they may
// be young, so that neither is idle.
func TestOldSessionsGiveWayToLargerOnes(t *testing.T) {
	w := newSessionWorld(t, 2)
	small, large := w.open(false, 0, 1), w.open(false, 0, 1, 2, 3)
	for epoch := int32(1); epoch <= 4; epoch++ {
		w.clk.Advance(time.Minute)
		for _, id := range []int32{small, large} {
			if _, _, _, err := w.do(sessionRequest(id, epoch), false, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	if id := w.open(false, 0); id != 0 {
		t.Fatal("a smaller session took an old one's place")
	}
	if id := w.open(false, 0, 1, 2); id == 0 {
		t.Fatal("a larger session found no place")
	}
	if _, _, _, err := w.do(sessionRequest(small, 5), false, nil); err != kerr.FetchSessionIDNotFound {
		t.Fatalf("the smallest session: %v, want it gone", err)
	}
	if _, _, _, err := w.do(sessionRequest(large, 5), false, nil); err != nil {
		t.Fatalf("the largest session: %v", err)
	}
}

func TestSessionEpochsWrap(t *testing.T) {
	for _, c := range []struct{ epoch, next int32 }{{0, 1}, {1, 2}, {1<<31 - 1, 1}, {-1, -1}} {
		if got := nextSessionEpoch(c.epoch); got != c.next {
			t.Errorf("after %d comes %d, want %d", c.epoch, got, c.next)
		}
	}
}

func TestSessionOfTopicIDs(t *testing.T) {
	w := newSessionWorld(t, 1)
	r := sessionRequest(0, 0, 3)
	r.Version, r.Topics[0].Topic, r.Topics[0].TopicID = 13, "", metadata.TopicID{9}
	_, _, id, err := w.do(r, false, nil)
	if err != nil || id == 0 {
		t.Fatal(id, err)
	}
	next := sessionRequest(id, 1)
	next.Version = 13
	f := kmsg.NewFetchRequestForgottenTopic()
	f.TopicID, f.Partitions = metadata.TopicID{9}, []int32{3}
	next.ForgottenTopics = append(next.ForgottenTopics, f)
	if fetched, _, _, err := w.do(next, false, nil); err != nil || len(fetched) != 0 {
		t.Fatalf("fetched %v, %v; want the forgotten partition gone", fetched, err)
	}
}

// Sessions are bounded by their partitions, too: one that finds no room is none,
// and one that grows beyond it ends.
func TestSessionsAreBoundedByPartitions(t *testing.T) {
	w := newSessionWorld(t, 1000)
	many := make([]int32, sessionPartitionsMax/2)
	for i := range many {
		many[i] = int32(i)
	}
	first, second := w.open(false, many...), w.open(false, many[:len(many)-1]...)
	if first == 0 || second == 0 {
		t.Fatal("there is room for two")
	}
	if id := w.open(false, 1, 2); id != 0 {
		t.Fatal("there is room for one partition only")
	}
	last := int32(len(many))
	if _, _, _, err := w.do(sessionRequest(second, 1, last-1), false, nil); err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := w.do(sessionRequest(first, 1, 0, 1), false, nil); err != nil {
		t.Fatalf("what the session has already: %v", err)
	}
	if _, _, _, err := w.do(sessionRequest(first, 2, last), false, nil); err != kerr.FetchSessionIDNotFound {
		t.Fatalf("one more than there is room for: %v", err)
	}
	if id := w.open(false, 1, 2); id == 0 || w.s.Len() != 2 {
		t.Fatal("the session that grew has not ended")
	}
}

// A large session is gone through beside the event loop, small as the request is,
// and is answered like any other.
func TestLargeSessionOnALoop(t *testing.T) {
	d := newDataBroker(t)
	d.make("t", inlineParts+1, nil)
	c := d.onLoops()()
	r := fetchRequest("t", metadata.TopicID{}, 0, 0)
	r.MaxWaitMillis, r.SessionEpoch = 0, sessionEpochInitial
	for p := range int32(inlineParts) {
		part := r.Topics[0].Partitions[0]
		part.Partition = p + 1
		r.Topics[0].Partitions = append(r.Topics[0].Partitions, part)
	}
	first := askAs[*kmsg.FetchResponse](c, 12, r)
	if first.SessionID == 0 || len(first.Topics[0].Partitions) != inlineParts+1 {
		t.Fatalf("session %d of %d partitions", first.SessionID, len(first.Topics[0].Partitions))
	}
	c.mustProduce("t", inlineParts, "v")
	next := kmsg.NewPtrFetchRequest()
	next.SessionID, next.SessionEpoch, next.MaxBytes, next.MinBytes = first.SessionID, 1, 1<<20, 1
	got := askAs[*kmsg.FetchResponse](c, 12, next)
	if got.ErrorCode != 0 || len(got.Topics) != 1 || got.Topics[0].Partitions[0].Partition != inlineParts {
		t.Fatalf("%+v", got)
	}
}
