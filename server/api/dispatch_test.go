package api

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"io"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func header(key, version int16, correlation byte, rest ...byte) []byte {
	h := []byte{byte(key >> 8), byte(key), byte(version >> 8), byte(version), 0, 0, 0, correlation, 0xff, 0xff}
	return append(h, rest...)
}

func TestUnservedRequestsCloseTheConnection(t *testing.T) {
	b := newTestBroker(t, nil)
	for _, tc := range []struct {
		name  string
		frame []byte
		log   string
	}{
		{"unknown key", header(999, 0, 1), "key 999"},
		{"negative key", header(-1, 0, 1), "key -1"},
		{"unknown version", header(3, 99, 1, 0, 1), "Metadata version 99 (key 3) is not served"},
		{"negative version", header(3, -1, 1, 0, 0, 0, 0), "Metadata version -1 (key 3) is not served"},
		{"internal API", header(4, 0, 1), "LeaderAndISR version 0 (key 4) is not served"},
		{"short body", header(3, 4, 1, 0, 0, 0, 9, 1), "decode Metadata v4"},
		{"array beyond the frame", header(3, 4, 1, 0x7f, 0xff, 0xff, 0xff, 0), "decode Metadata v4"},
		{"client id beyond the frame", append(header(3, 4, 1)[:8], 0x7f, 0xff), "request header"},
		{"a string beyond the protocol's", append(append(header(3, 9, 1, 0, 2, 0x81, 0x80, 0x02), make([]byte, 1<<15)...), 0, 0, 0, 0), "a string is longer than 32767 bytes"},
		{"bad header tags", header(3, 12, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f), "tagged fields"},
	} {
		c := b.dial("client")
		c.send(tc.frame)
		if frame := c.receive(); frame != nil {
			t.Errorf("%s: answered %x", tc.name, frame)
		}
		if !strings.Contains(b.log.String(), tc.log) {
			t.Errorf("%s: no %q in the log:\n%s", tc.name, tc.log, b.log.String())
		}
	}
}

func TestBytesBehindARequestAreIgnored(t *testing.T) {
	c := newTestBroker(t, nil).dial("client")
	c.send(header(3, 1, 7, 0, 0, 0, 0, 'j', 'u', 'n', 'k'))
	if frame := c.receive(); len(frame) < 4 || frame[3] != 7 {
		t.Errorf("answered %x", frame)
	}
}

func TestUnknownApiVersionsIsAnsweredInV0(t *testing.T) {
	c := newTestBroker(t, nil).dial("client")
	// As Apache Kafka 4.4 answers: error 35 and the range of ApiVersions alone.
	want := "00000007" + "0023" + "00000001" + "0012" + "0000" + "0005"
	for _, version := range []int16{99, 6, -1} {
		rest := []byte{0}
		if version < 0 {
			rest = nil
		}
		c.send(header(18, version, 7, rest...))
		if got := hex.EncodeToString(c.receive()); got != want {
			t.Errorf("v%d: %s, want %s", version, got, want)
		}
	}
}

func TestAPanicCostsOneConnection(t *testing.T) {
	b := newTestBroker(t, func(h *Handlers) { h.Image = nil })
	c := b.dial("client")
	c.send(header(3, 1, 7, 0, 0, 0, 0))
	if frame := c.receive(); frame != nil {
		t.Errorf("answered %x", frame)
	}
	if !strings.Contains(b.log.String(), "panic") {
		t.Errorf("log:\n%s", b.log.String())
	}
	c = b.dial("client")
	if resp := askAs[*kmsg.ApiVersionsResponse](c, 0, unknownSoftware()); resp.ErrorCode != 0 {
		t.Errorf("error %d", resp.ErrorCode)
	}
}

// unknownSoftware is an ApiVersions request that needs no metadata: its client
// software is refused in v3 and not there before.
func unknownSoftware() *kmsg.ApiVersionsRequest { return kmsg.NewPtrApiVersionsRequest() }

func TestMetricsOfRequests(t *testing.T) {
	b := newTestBroker(t, nil)
	c := b.dial("client")
	req := kmsg.NewPtrMetadataRequest()
	topic := kmsg.NewMetadataRequestTopic()
	topic.Topic = kmsg.StringPtr("a b")
	req.Topics = append(req.Topics, topic)
	askAs[*kmsg.MetadataResponse](c, 9, req)
	rec := httptest.NewRecorder()
	b.metrics.Handler().ServeHTTP(rec, httptest.NewRequest("GET", "/metrics", nil))
	text, err := io.ReadAll(rec.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		`barnabas_requests_total{api="Metadata"} 1`,
		`barnabas_request_errors_total{api="Metadata",error="INVALID_TOPIC_EXCEPTION"} 1`,
		`barnabas_request_seconds_count{api="Metadata"} 1`,
	} {
		if !bytes.Contains(text, []byte(line)) {
			t.Errorf("no %s in\n%s", line, text)
		}
	}
}

func TestErrorCodesAreFoundWhereverTheyAre(t *testing.T) {
	resp := kmsg.NewPtrMetadataResponse()
	topic := kmsg.NewMetadataResponseTopic()
	topic.ErrorCode = kerr.InvalidTopicException.Code
	partition := kmsg.NewMetadataResponseTopicPartition()
	partition.ErrorCode = kerr.LeaderNotAvailable.Code
	topic.Partitions = append(topic.Partitions, partition, partition)
	resp.Topics = append(resp.Topics, topic)
	resp.ErrorCode = kerr.RebootstrapRequired.Code
	counts := countedErrors(resp)
	for code, want := range map[int16]int{kerr.InvalidTopicException.Code: 1, kerr.LeaderNotAvailable.Code: 2, kerr.RebootstrapRequired.Code: 1} {
		if counts[code] != want {
			t.Errorf("code %d was counted %d times, want %d", code, counts[code], want)
		}
	}
}

// TestTagBombs sends a frame whose tagged fields would take fifty times its
// size, and one that would be large but honest.
func TestTagBombs(t *testing.T) {
	b := newTestBroker(t, nil)
	req := metadataOf()
	for range 20_000 {
		topic := kmsg.NewMetadataRequestTopic()
		topic.Topic = kmsg.StringPtr("")
		topic.UnknownTags.Set(5, nil)
		req.Topics = append(req.Topics, topic)
	}
	req.SetVersion(9)
	f := kmsg.NewRequestFormatter()
	c := b.dial("client")
	c.send(f.AppendRequest(nil, req, 1)[4:])
	if frame := c.receive(); frame != nil {
		t.Errorf("answered %d bytes", len(frame))
	}
	if !strings.Contains(b.log.String(), "when decoded") {
		t.Errorf("log:\n%s", b.log.String())
	}
	many := metadataOf()
	for i := range 20_000 {
		topic := kmsg.NewMetadataRequestTopic()
		topic.Topic = kmsg.StringPtr(fmt.Sprint(i))
		many.Topics = append(many.Topics, topic)
	}
	if resp := askAs[*kmsg.MetadataResponse](b.dial("client"), 12, many); len(resp.Topics) != 20_000 {
		t.Errorf("%d topics", len(resp.Topics))
	}
}

// heldGroups answers no DescribeGroup before open.
type heldGroups struct {
	Groups
	mu     sync.Mutex
	opened bool
	held   []func()
	asked  map[string]int
}

func (g *heldGroups) DescribeGroup(id string, _ int16, done func(*kmsg.DescribeGroupsResponseGroup)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	answer := kmsg.NewDescribeGroupsResponseGroup()
	if g.asked[id]++; g.opened {
		done(&answer)
		return
	}
	g.held = append(g.held, func() { done(&answer) })
}

func (g *heldGroups) open() {
	g.mu.Lock()
	g.opened = true
	held := g.held
	g.mu.Unlock()
	for _, answer := range held {
		answer()
	}
}

func (g *heldGroups) askedFor(id string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.asked[id]
}

// TestLargeRequestsAreBoundedTogether has one connection ask for a list that takes more
// than half of handledMax: another such list is not begun before that one is answered,
// a smaller one is, large as it is, and small ones always are.
func TestLargeRequestsAreBoundedTogether(t *testing.T) {
	groups := &heldGroups{asked: map[string]int{}}
	d := newDataBroker(t)
	d.h.Groups = groups
	dial := d.onLoops()
	const most, many = 70_000, 1000
	ask := func(id string, n int) chan *kmsg.DescribeGroupsResponse {
		r := kmsg.NewPtrDescribeGroupsRequest()
		for range n {
			r.Groups = append(r.Groups, id)
		}
		return later[*kmsg.DescribeGroupsResponse](dial(), 0, r)
	}
	first := ask("first", most)
	until(t, "the first list is begun", func() bool { return groups.askedFor("first") == most })
	beside := ask("beside", many)
	until(t, "a list beside it is begun", func() bool { return groups.askedFor("beside") == many })
	second := ask("second", most)
	other := dial()
	for range 200 { // small requests go on meanwhile
		askAs[*kmsg.ApiVersionsResponse](other, 0, unknownSoftware())
	}
	if n := groups.askedFor("second"); n > 0 {
		t.Error("the second list was begun before the first was answered")
	}
	groups.open()
	for i, want := range []int{most, many, most} {
		if n := len(soon(t, []chan *kmsg.DescribeGroupsResponse{first, beside, second}[i]).Groups); n != want {
			t.Errorf("%d: %d groups, want %d", i, n, want)
		}
	}
}

// endingGroups ends a DescribeGroups in the way that its groups are named for.
type endingGroups struct {
	*heldGroups
	words string
}

func (g endingGroups) DescribeGroup(id string, version int16, done func(*kmsg.DescribeGroupsResponseGroup)) {
	answer := kmsg.NewDescribeGroupsResponseGroup()
	switch id {
	case "panic":
		panic("a test's")
	case "wordy":
		answer.State = g.words
	case "held":
		g.heldGroups.DescribeGroup(id, version, done)
		return
	}
	done(&answer)
}

// TestEveryEndingMakesRoom ends a list that takes more than half of handledMax in every
// way; the one after it would wait for ever if the room were not given back.
func TestEveryEndingMakesRoom(t *testing.T) {
	held := &heldGroups{asked: map[string]int{}}
	b := newTestBroker(t, func(h *Handlers) { h.Groups = endingGroups{held, strings.Repeat("x", 10<<10)} })
	const most = 70_000
	frame := func(id string) []byte {
		ask := kmsg.NewPtrDescribeGroupsRequest()
		for range most {
			ask.Groups = append(ask.Groups, id)
		}
		return kmsg.NewRequestFormatter().AppendRequest(nil, ask, 1)[4:]
	}
	whole := frame("answered")
	for _, tc := range []struct {
		ending string
		frame  []byte
		served bool
	}{
		{"answered", whole, true}, {"cut", whole[:len(whole)-1], false}, {"panic", frame("panic"), false}, {"wordy", frame("wordy"), false},
	} {
		c := b.dial("client")
		c.send(tc.frame)
		if got := c.receive(); (got != nil) != tc.served {
			t.Errorf("%s: answered %d bytes", tc.ending, len(got))
		}
	}
	gone := b.dial("client")
	gone.send(frame("held"))
	until(t, "the list is begun", func() bool { return held.askedFor("held") == most })
	gone.conn.Close()
	held.open()
	c := b.dial("client")
	c.send(whole)
	if got := c.receive(); got == nil || b.h.keptBytes.Load() != 0 {
		t.Errorf("answered %d bytes, %d are kept", len(got), b.h.keptBytes.Load())
	}
}

// wordyGroups answers every DescribeGroup with 100 KiB, except that of a group that is
// called last: its answer it passes on.
type wordyGroups struct {
	Groups
	last chan func()
}

func (g wordyGroups) DescribeGroup(id string, _ int16, done func(*kmsg.DescribeGroupsResponseGroup)) {
	answer := kmsg.NewDescribeGroupsResponseGroup()
	if id == "last" {
		g.last <- func() { done(&answer) }
		return
	}
	answer.Group, answer.ProtocolType = id, strings.Repeat("x", 30<<10)
	answer.Protocol, answer.State = answer.ProtocolType, answer.ProtocolType
	done(&answer)
}

// TestCollectedAnswersAreBoundedTogether has other calls collect nearly all that may
// be collected: a large answer is refused then, a small one is not, and both give back
// what they had.
func TestCollectedAnswersAreBoundedTogether(t *testing.T) {
	const others = handledMax - largeBytes
	b := newTestBroker(t, func(h *Handlers) { h.Groups = wordyGroups{} })
	b.h.keptBytes.Store(others)
	ask := kmsg.NewPtrDescribeGroupsRequest()
	for _, tc := range []struct {
		groups int
		served bool
	}{{5, true}, {20, false}, {10, true}} {
		ask.Groups = make([]string, tc.groups)
		c := b.dial("client")
		c.send(kmsg.NewRequestFormatter().AppendRequest(nil, ask, 1)[4:])
		if got := c.receive(); (got != nil) != tc.served {
			t.Errorf("%d groups: answered %d bytes", tc.groups, len(got))
		}
		if got := b.h.keptBytes.Load(); got != others {
			t.Errorf("%d groups: %d bytes are kept", tc.groups, got-others)
		}
	}
}

// TestARefusedAnswerHoldsNothing has a client wait for the last part of an answer that
// is too large already: the others can be given theirs.
func TestARefusedAnswerHoldsNothing(t *testing.T) {
	groups := wordyGroups{last: make(chan func(), 1)}
	b := newTestBroker(t, func(h *Handlers) { h.Groups = groups })
	b.h.keptBytes.Store(handledMax - largeBytes)
	ask := kmsg.NewPtrDescribeGroupsRequest()
	ask.Groups = append(make([]string, 100), "last")
	c := b.dial("client")
	c.send(kmsg.NewRequestFormatter().AppendRequest(nil, ask, 1)[4:])
	finish := <-groups.last
	if kept := b.h.keptBytes.Load(); kept > handledMax {
		t.Errorf("%d bytes are kept, %d more than there may be", kept, kept-handledMax)
	}
	finish()
	if got := c.receive(); got != nil {
		t.Errorf("answered %d bytes", len(got))
	}
}
