package api

import (
	"errors"
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/protocol"
)

// InternalTopic is how a coordinator's topic is made, on its first use.
type InternalTopic struct {
	Partitions int32
	// ReplicationFactor is what the configuration asks for; fewer live brokers
	// lower it.
	ReplicationFactor int16
	// Configs are the topic's own, as pairs of name and value.
	Configs [][2]string
}

// ensureTopic calls done once an internal topic exists, which it makes when it
// does not.
func (h *Handlers) ensureTopic(name string, done func(error)) {
	img := h.Image()
	if _, ok := img.Topic(name); ok {
		done(nil)
		return
	}
	live := 0
	for _, b := range img.Brokers() {
		if !b.Fenced {
			live++
		}
	}
	o := h.InternalTopic(name)
	h.creations.of(name).make(done, func(made func(error)) {
		if _, ok := h.Image().Topic(name); ok {
			made(nil) // meanwhile
			return
		}
		t := kmsg.NewCreateTopicsRequestTopic()
		t.Topic, t.NumPartitions = name, o.Partitions
		t.ReplicationFactor = int16(max(min(int(o.ReplicationFactor), live), 1))
		for _, c := range o.Configs {
			t.Configs = append(t.Configs, topicConfig(c[0], c[1]))
		}
		req := kmsg.NewPtrCreateTopicsRequest()
		req.Version = req.MaxVersion()
		req.Topics = []kmsg.CreateTopicsRequestTopic{t}
		h.Controller.Handle(req, func(resp kmsg.Response, err error) { made(created(name, resp, err)) })
	})
}

func topicConfig(name, value string) kmsg.CreateTopicsRequestTopicConfig {
	c := kmsg.NewCreateTopicsRequestTopicConfig()
	c.Name, c.Value = name, &value
	return c
}

// created is the outcome of the creation of one topic; that it exists already is
// a good one.
func created(name string, resp kmsg.Response, err error) error {
	if err == nil {
		for _, t := range resp.(*kmsg.CreateTopicsResponse).Topics {
			if t.ErrorCode == kerr.TopicAlreadyExists.Code {
				continue
			}
			err = errors.Join(err, kerr.ErrorForCode(t.ErrorCode))
		}
	}
	if err != nil {
		return protocol.Errorf(kerr.CoordinatorNotAvailable, "create topic %s: %w", name, err)
	}
	return nil
}

// creations are the internal topics on their way.
type creations struct {
	mu     sync.Mutex
	byName map[string]*onceMaker
}

func (c *creations) of(name string) *onceMaker {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byName[name] == nil {
		if c.byName == nil {
			c.byName = map[string]*onceMaker{}
		}
		c.byName[name] = &onceMaker{}
	}
	return c.byName[name]
}

// onceMaker has one creation on its way at a time; who asks meanwhile shares its
// outcome.
type onceMaker struct {
	mu      sync.Mutex
	running bool
	waiting []func(error)
}

func (o *onceMaker) make(done func(error), start func(made func(error))) {
	o.mu.Lock()
	o.waiting = append(o.waiting, done)
	running := o.running
	o.running = true
	o.mu.Unlock()
	if running {
		return
	}
	start(func(err error) {
		o.mu.Lock()
		waiting := o.waiting
		o.waiting, o.running = nil, false
		o.mu.Unlock()
		for _, w := range waiting {
			w(err)
		}
	})
}
