package api

import (
	"errors"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/clock"
	"github.com/barnabas-mq/barnabas/protocol"
)

// controllerFunc is a controller that is one function.
type controllerFunc func(req kmsg.Request, done func(kmsg.Response, error))

func (f controllerFunc) Handle(req kmsg.Request, done func(kmsg.Response, error)) { f(req, done) }

func topicsBroker(t *testing.T, f controllerFunc, c clock.Clock) *testClient {
	return newTestBroker(t, func(h *Handlers) {
		h.Controller = f
		if c != nil {
			h.Clock = c
		}
	}).dial("client")
}

// topicRequests are one request of each of the three APIs, about topic t.
func topicRequests(timeoutMillis int32) []kmsg.Request {
	create := kmsg.NewPtrCreateTopicsRequest()
	created := kmsg.NewCreateTopicsRequestTopic()
	created.Topic, created.NumPartitions, created.ReplicationFactor = "t", 1, 1
	create.Topics, create.TimeoutMillis = []kmsg.CreateTopicsRequestTopic{created}, timeoutMillis
	remove := kmsg.NewPtrDeleteTopicsRequest()
	remove.TimeoutMillis, remove.TopicNames = timeoutMillis, []string{"t"}
	remove.Topics = []kmsg.DeleteTopicsRequestTopic{{Topic: kmsg.StringPtr("t")}}
	grow := kmsg.NewPtrCreatePartitionsRequest()
	more := kmsg.NewCreatePartitionsRequestTopic()
	more.Topic, more.Count = "t", 2
	grow.Topics, grow.TimeoutMillis = []kmsg.CreatePartitionsRequestTopic{more}, timeoutMillis
	return []kmsg.Request{create, remove, grow}
}

// topicVerdict is the one result of a response.
func topicVerdict(t *testing.T, resp kmsg.Response) (name string, code int16, message *string) {
	t.Helper()
	switch resp := resp.(type) {
	case *kmsg.CreateTopicsResponse:
		if len(resp.Topics) == 1 {
			return resp.Topics[0].Topic, resp.Topics[0].ErrorCode, resp.Topics[0].ErrorMessage
		}
	case *kmsg.DeleteTopicsResponse:
		if len(resp.Topics) == 1 && resp.Topics[0].Topic != nil {
			return *resp.Topics[0].Topic, resp.Topics[0].ErrorCode, resp.Topics[0].ErrorMessage
		}
	case *kmsg.CreatePartitionsResponse:
		if len(resp.Topics) == 1 {
			return resp.Topics[0].Topic, resp.Topics[0].ErrorCode, resp.Topics[0].ErrorMessage
		}
	}
	t.Fatalf("not one result: %+v", resp)
	return "", 0, nil
}

// TestTopicAPIsInAllVersions passes the controller's answer on, in every version.
func TestTopicAPIsInAllVersions(t *testing.T) {
	id := [16]byte{5}
	client := topicsBroker(t, func(req kmsg.Request, done func(kmsg.Response, error)) {
		resp := req.ResponseKind()
		switch resp := resp.(type) {
		case *kmsg.CreateTopicsResponse:
			out := kmsg.NewCreateTopicsResponseTopic()
			out.Topic, out.TopicID, out.NumPartitions = "t", id, 1
			resp.Topics = append(resp.Topics, out)
		case *kmsg.DeleteTopicsResponse:
			out := kmsg.NewDeleteTopicsResponseTopic()
			out.Topic, out.TopicID = kmsg.StringPtr("t"), id
			resp.Topics = append(resp.Topics, out)
		case *kmsg.CreatePartitionsResponse:
			out := kmsg.NewCreatePartitionsResponseTopic()
			out.Topic = "t"
			resp.Topics = append(resp.Topics, out)
		}
		go done(resp, nil)
	}, nil)
	for i, req := range topicRequests(1000) {
		for version := int16(0); version <= req.MaxVersion(); version++ {
			resp := askAs[kmsg.Response](client, version, topicRequests(1000)[i])
			if name, code, _ := topicVerdict(t, resp); name != "t" || code != 0 {
				t.Errorf("%s v%d: %s, %d", protocol.Name(req.Key()), version, name, code)
			}
			if create, ok := resp.(*kmsg.CreateTopicsResponse); ok && version >= 7 && create.Topics[0].TopicID != id {
				t.Errorf("topic id %x", create.Topics[0].TopicID)
			}
		}
	}
}

// TestWholeRefusalIsEachTopics answers an error of the whole request for each of
// its topics.
func TestWholeRefusalIsEachTopics(t *testing.T) {
	client := topicsBroker(t, func(_ kmsg.Request, done func(kmsg.Response, error)) {
		done(nil, protocol.Errorf(kerr.PolicyViolation, "too many"))
	}, nil)
	for _, req := range topicRequests(1000) {
		name, code, message := topicVerdict(t, askAs[kmsg.Response](client, req.MaxVersion(), req))
		if name != "t" || code != kerr.PolicyViolation.Code || message == nil || *message != "too many" {
			t.Errorf("%s: %s, %d, %v", protocol.Name(req.Key()), name, code, message)
		}
	}
}

// TestNoTimeIsTimedOut: as in Kafka, a request that leaves no time is not even
// decided.
func TestNoTimeIsTimedOut(t *testing.T) {
	client := topicsBroker(t, func(kmsg.Request, func(kmsg.Response, error)) {
		panic("asked to decide what nobody waits for")
	}, nil)
	for _, timeout := range []int32{0, -1} {
		for _, req := range topicRequests(timeout) {
			name, code, message := topicVerdict(t, askAs[kmsg.Response](client, req.MaxVersion(), req))
			if name != "t" || code != kerr.RequestTimedOut.Code || message != nil {
				t.Errorf("%s: %s, %d, %v", protocol.Name(req.Key()), name, code, message)
			}
		}
	}
}

// TestSlowDecisionIsTimedOut answers when the request's own time is over; the
// decision that comes later changes nothing any more.
func TestSlowDecisionIsTimedOut(t *testing.T) {
	for i := range topicRequests(0) {
		manual := clock.NewManual(time.Unix(0, 0))
		asked := make(chan func(kmsg.Response, error), 1)
		client := topicsBroker(t, func(_ kmsg.Request, done func(kmsg.Response, error)) { asked <- done }, manual)
		answered := make(chan kmsg.Response, 1)
		req := topicRequests(700)[i]
		go func() { answered <- askAs[kmsg.Response](client, req.MaxVersion(), req) }()
		done := <-asked
		manual.Advance(699 * time.Millisecond)
		select {
		case resp := <-answered:
			t.Fatalf("answered early: %+v", resp)
		default:
		}
		manual.Advance(time.Millisecond)
		if _, code, _ := topicVerdict(t, <-answered); code != kerr.RequestTimedOut.Code {
			t.Errorf("%s: code %d", protocol.Name(req.Key()), code)
		}
		done(nil, errors.New("too late"))
		if manual.Pending() != 0 {
			t.Error("a timer is left")
		}
	}
}
