package controller

import (
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/cluster/metadata"
	"github.com/barnabas-mq/barnabas/protocol"
)

// deleteTopics takes names (all versions) and, from version 6 on, ids (KIP-516).
func (m *Machine) deleteTopics(img *metadata.Image, req *kmsg.DeleteTopicsRequest) (Decision, error) {
	if m.cfg.TopicDeletionDisabled {
		if req.Version < 3 {
			return Decision{}, protocol.Errorf(kerr.InvalidRequest, "This version does not support topic deletion.")
		}
		return Decision{}, protocol.Errorf(kerr.TopicDeletionDisabled, "Topic deletion is disabled.")
	}
	topics := req.Topics
	for _, name := range req.TopicNames {
		topics = append(topics, kmsg.DeleteTopicsRequestTopic{Topic: kmsg.StringPtr(name)})
	}
	resp := req.ResponseKind().(*kmsg.DeleteTopicsResponse)
	d := Decision{Response: resp}
	w := deletion{
		img: img, deleted: map[metadata.TopicID]bool{}, answered: map[nameOrID]bool{},
		twice: duplicates(topics, func(t *kmsg.DeleteTopicsRequestTopic) nameOrID { return keyOf(t) }),
	}
	for i := range topics {
		t := &topics[i]
		id, err := w.decide(t)
		if err == errAnswered {
			continue
		}
		out := kmsg.NewDeleteTopicsResponseTopic()
		out.Topic, out.TopicID = t.Topic, t.TopicID
		out.ErrorCode, out.ErrorMessage = codeAndText(err)
		if err == nil {
			topic, _ := img.TopicByID(id)
			out.Topic, out.TopicID = &topic.Name, id
			d.Records = append(d.Records, &metadata.RemoveTopicRecord{ID: id})
		}
		resp.Topics = append(resp.Topics, out)
	}
	return d, nil
}

// nameOrID is how a request names a topic.
type nameOrID struct {
	name string
	id   metadata.TopicID
}

func keyOf(t *kmsg.DeleteTopicsRequestTopic) nameOrID {
	key := nameOrID{id: t.TopicID}
	if t.Topic != nil {
		key.name = *t.Topic
	}
	return key
}

// deletion goes through the topics of one request.
type deletion struct {
	img      *metadata.Image
	twice    map[nameOrID]bool
	answered map[nameOrID]bool
	deleted  map[metadata.TopicID]bool
}

// errAnswered says that a topic that is named twice has its one answer.
var errAnswered = errors.New("answered before")

func (w *deletion) decide(t *kmsg.DeleteTopicsRequestTopic) (metadata.TopicID, error) {
	var none metadata.TopicID
	switch key := keyOf(t); {
	case t.Topic == nil && t.TopicID == none:
		return none, protocol.Errorf(kerr.InvalidRequest, "Neither topic name nor id were specified.")
	case t.Topic != nil && t.TopicID != none:
		return none, protocol.Errorf(kerr.InvalidRequest, "You may not specify both topic name and topic id.")
	case w.twice[key] && w.answered[key]:
		return none, errAnswered
	case w.twice[key]:
		w.answered[key] = true
		if t.Topic == nil {
			return none, protocol.Errorf(kerr.InvalidRequest, "Duplicate topic id.")
		}
		return none, protocol.Errorf(kerr.InvalidRequest, "Duplicate topic name.")
	}
	topic, err := w.find(t)
	if err != nil {
		return none, err
	}
	if w.deleted[topic.ID] {
		return none, protocol.Errorf(kerr.InvalidRequest, "The provided topic name maps to an ID that was already supplied.")
	}
	w.deleted[topic.ID] = true
	return topic.ID, nil
}

func (w *deletion) find(t *kmsg.DeleteTopicsRequestTopic) (*metadata.Topic, error) {
	if t.Topic == nil {
		if topic, ok := w.img.TopicByID(t.TopicID); ok {
			return topic, nil
		}
		return nil, kerr.UnknownTopicID
	}
	if topic, ok := w.img.Topic(*t.Topic); ok {
		return topic, nil
	}
	return nil, kerr.UnknownTopicOrPartition
}
