package api

import (
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/protocol"
)

// createTopics serves CreateTopics v0-7. The controller answers once this broker
// serves every new partition.
func (h *Handlers) createTopics(c *Call, req *kmsg.CreateTopicsRequest, resp *kmsg.CreateTopicsResponse) {
	h.decide(c, req, func(decided kmsg.Response, err error) {
		if err == nil {
			*resp = *decided.(*kmsg.CreateTopicsResponse)
			return
		}
		for _, t := range req.Topics {
			out := kmsg.NewCreateTopicsResponseTopic()
			out.Topic, out.NumPartitions, out.ReplicationFactor = t.Topic, -1, -1
			out.Configs = []kmsg.CreateTopicsResponseTopicConfig{}
			out.ErrorCode, out.ErrorMessage = protocol.Code(err), ownText(err)
			resp.Topics = append(resp.Topics, out)
		}
	})
}

// deleteTopics serves DeleteTopics v0-6: by name, and by id from version 6 on.
func (h *Handlers) deleteTopics(c *Call, req *kmsg.DeleteTopicsRequest, resp *kmsg.DeleteTopicsResponse) {
	h.decide(c, req, func(decided kmsg.Response, err error) {
		if err == nil {
			*resp = *decided.(*kmsg.DeleteTopicsResponse)
			return
		}
		topics := req.Topics
		for _, name := range req.TopicNames {
			topics = append(topics, kmsg.DeleteTopicsRequestTopic{Topic: &name})
		}
		for _, t := range topics {
			out := kmsg.NewDeleteTopicsResponseTopic()
			out.Topic, out.TopicID = t.Topic, t.TopicID
			out.ErrorCode, out.ErrorMessage = protocol.Code(err), ownText(err)
			resp.Topics = append(resp.Topics, out)
		}
	})
}

// createPartitions serves CreatePartitions v0-3.
func (h *Handlers) createPartitions(c *Call, req *kmsg.CreatePartitionsRequest, resp *kmsg.CreatePartitionsResponse) {
	h.decide(c, req, func(decided kmsg.Response, err error) {
		if err == nil {
			*resp = *decided.(*kmsg.CreatePartitionsResponse)
			return
		}
		for _, t := range req.Topics {
			out := kmsg.NewCreatePartitionsResponseTopic()
			out.Topic = t.Topic
			out.ErrorCode, out.ErrorMessage = protocol.Code(err), ownText(err)
			resp.Topics = append(resp.Topics, out)
		}
	})
}

// timedRequest is a request with a time-out of its own.
type timedRequest interface {
	kmsg.Request
	Timeout() int32
}

// decide has the controller decide req and replies with what fill makes of its
// answer. A request that is not decided within its time-out is answered with
// REQUEST_TIMED_OUT, as is one that leaves no time at all; what becomes of it
// then is open, as in Kafka.
func (h *Handlers) decide(c *Call, req timedRequest, fill func(decided kmsg.Response, err error)) {
	var replied atomic.Bool
	reply := func(decided kmsg.Response, err error) {
		if replied.CompareAndSwap(false, true) {
			h.guard(c, func() {
				fill(decided, err)
				c.Reply()
			})
		}
	}
	if req.Timeout() <= 0 {
		reply(nil, kerr.RequestTimedOut)
		return
	}
	late := h.Clock.AfterFunc(time.Duration(req.Timeout())*time.Millisecond, func() { reply(nil, kerr.RequestTimedOut) })
	h.Controller.Handle(req, func(decided kmsg.Response, err error) {
		late.Stop()
		reply(decided, err)
	})
}

// decideAnyTime is decide for requests whose time-out does not matter, or that have
// none.
func (h *Handlers) decideAnyTime(c *Call, req kmsg.Request, fill func(decided kmsg.Response, err error)) {
	h.Controller.Handle(req, func(decided kmsg.Response, err error) {
		h.guard(c, func() {
			fill(decided, err)
			c.Reply()
		})
	})
}

// ownText is the text of an error that says more than its code; nil for others.
func ownText(err error) *string {
	if _, plain := err.(*kerr.Error); plain {
		return nil
	}
	return protocol.Message(err)
}
