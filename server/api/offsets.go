package api

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/cluster/metadata"
	"github.com/barnabas-mq/barnabas/coordinator/group"
)

// The versions in which OffsetCommit and OffsetFetch name topics by id, and those
// in which OffsetFetch has errors of the whole request and several groups.
const (
	commitTopicIDs  = 10
	fetchTopicIDs   = 10
	fetchGroups     = 8
	fetchWholeError = 2
)

// named is the topic that a request names or gives the id of.
func named(img *metadata.Image, name string, id metadata.TopicID, byID bool) (*metadata.Topic, *kerr.Error) {
	if byID {
		if t, ok := img.TopicByID(id); ok {
			return t, nil
		}
		return nil, kerr.UnknownTopicID
	}
	if t, ok := img.Topic(name); ok {
		return t, nil
	}
	return nil, kerr.UnknownTopicOrPartition
}

// offsetCommit commits for the partitions that exist and answers for the others
// itself.
func (h *Handlers) offsetCommit(c *Call, req *kmsg.OffsetCommitRequest, resp *kmsg.OffsetCommitResponse) {
	img := h.Image()
	valid := *req
	valid.Topics = nil
	// slots are where the coordinator's answers go, in the order of valid.
	var slots []*kmsg.OffsetCommitResponseTopicPartition
	resp.Topics = make([]kmsg.OffsetCommitResponseTopic, len(req.Topics))
	for i := range req.Topics {
		t, rt := req.Topics[i], &resp.Topics[i]
		rt.Topic, rt.TopicID = t.Topic, t.TopicID
		rt.Partitions = make([]kmsg.OffsetCommitResponseTopicPartition, len(t.Partitions))
		topic, code := named(img, t.Topic, t.TopicID, req.Version >= commitTopicIDs)
		asked := t.Partitions
		t.Partitions = nil
		for j := range asked {
			p := &rt.Partitions[j]
			p.Partition = asked[j].Partition
			switch {
			case code != nil:
				p.ErrorCode = code.Code
			case p.Partition < 0 || int(p.Partition) >= len(topic.Partitions):
				p.ErrorCode = kerr.UnknownTopicOrPartition.Code
			default:
				t.Partitions = append(t.Partitions, asked[j])
				slots = append(slots, p)
			}
		}
		if len(t.Partitions) > 0 {
			t.Topic, t.TopicID = topic.Name, topic.ID
			valid.Topics = append(valid.Topics, t)
		}
	}
	if len(slots) == 0 {
		c.Reply()
		return
	}
	h.Groups.CommitOffsets(c.client(), &valid, func(r *kmsg.OffsetCommitResponse) {
		h.guard(c, func() {
			n := 0
			for i := range r.Topics {
				for j := range r.Topics[i].Partitions {
					slots[n].ErrorCode = r.Topics[i].Partitions[j].ErrorCode
					n++
				}
			}
			c.Reply()
		})
	})
}

func (h *Handlers) offsetFetch(c *Call, req *kmsg.OffsetFetchRequest, resp *kmsg.OffsetFetchResponse) {
	img := h.Image()
	groups := req.Groups
	if req.Version < fetchGroups {
		groups = []kmsg.OffsetFetchRequestGroup{oneGroup(req)}
	}
	gatherKept(c, len(groups), func(i int, done func(*kmsg.OffsetFetchResponseGroup)) {
		h.fetchGroup(img, &groups[i], req, done)
	}, func(answers []*kmsg.OffsetFetchResponseGroup) {
		h.guard(c, func() {
			if req.Version < fetchGroups {
				fillOneGroup(req, resp, answers[0])
			} else {
				for _, a := range answers {
					resp.Groups = append(resp.Groups, *a)
				}
			}
			c.Reply()
		})
	})
}

// oneGroup is a request before version 8 in the form of later ones.
func oneGroup(req *kmsg.OffsetFetchRequest) kmsg.OffsetFetchRequestGroup {
	g := kmsg.NewOffsetFetchRequestGroup()
	g.Group = req.Group
	if req.Topics == nil {
		return g
	}
	g.Topics = make([]kmsg.OffsetFetchRequestGroupTopic, len(req.Topics))
	for i := range req.Topics {
		g.Topics[i].Topic, g.Topics[i].Partitions = req.Topics[i].Topic, req.Topics[i].Partitions
	}
	return g
}

// fillOneGroup is the way back. Before version 2 an error of the group stands at
// each partition.
func fillOneGroup(req *kmsg.OffsetFetchRequest, resp *kmsg.OffsetFetchResponse, g *kmsg.OffsetFetchResponseGroup) {
	resp.ErrorCode = g.ErrorCode
	if g.ErrorCode != 0 && req.Version < fetchWholeError {
		for i := range req.Topics {
			t := kmsg.NewOffsetFetchResponseGroupTopic()
			t.Topic = req.Topics[i].Topic
			for _, p := range req.Topics[i].Partitions {
				t.Partitions = append(t.Partitions, noOffset(p, g.ErrorCode))
			}
			g.Topics = append(g.Topics, t)
		}
	}
	resp.Topics = make([]kmsg.OffsetFetchResponseTopic, len(g.Topics))
	for i := range g.Topics {
		t := &resp.Topics[i]
		t.Topic = g.Topics[i].Topic
		t.Partitions = make([]kmsg.OffsetFetchResponseTopicPartition, len(g.Topics[i].Partitions))
		for j, p := range g.Topics[i].Partitions {
			t.Partitions[j] = kmsg.OffsetFetchResponseTopicPartition{
				Partition: p.Partition, Offset: p.Offset, LeaderEpoch: p.LeaderEpoch, Metadata: p.Metadata, ErrorCode: p.ErrorCode,
			}
		}
	}
}

func noOffset(partition int32, code int16) kmsg.OffsetFetchResponseGroupTopicPartition {
	p := kmsg.NewOffsetFetchResponseGroupTopicPartition()
	var metadata string
	p.Partition, p.Offset, p.LeaderEpoch, p.Metadata, p.ErrorCode = partition, -1, -1, &metadata, code
	return p
}

// fetchGroup reads one group's offsets. Topics are given to the coordinator with
// their names and the ids they have now, so that what was committed for an
// earlier topic of the same name does not count.
func (h *Handlers) fetchGroup(img *metadata.Image, g *kmsg.OffsetFetchRequestGroup, req *kmsg.OffsetFetchRequest, done func(*kmsg.OffsetFetchResponseGroup)) {
	byID := req.Version >= fetchTopicIDs
	known := *g
	var unknown []kmsg.OffsetFetchResponseGroupTopic
	if g.Topics != nil {
		known.Topics = make([]kmsg.OffsetFetchRequestGroupTopic, 0, len(g.Topics))
	}
	for _, t := range g.Topics {
		topic, code := named(img, t.Topic, t.TopicID, byID)
		switch {
		case code == nil:
			t.Topic, t.TopicID = topic.Name, topic.ID
			known.Topics = append(known.Topics, t)
		case !byID:
			// What was committed for a topic may outlive it.
			known.Topics = append(known.Topics, t)
		default:
			rt := kmsg.NewOffsetFetchResponseGroupTopic()
			rt.TopicID = t.TopicID
			for _, p := range t.Partitions {
				rt.Partitions = append(rt.Partitions, noOffset(p, code.Code))
			}
			unknown = append(unknown, rt)
		}
	}
	h.Groups.FetchOffsets(group.FetchOffsets{Group: &known, RequireStable: req.RequireStable}, func(r *kmsg.OffsetFetchResponseGroup) {
		if r.ErrorCode == 0 {
			if g.Topics == nil {
				r.Topics = present(img, r.Topics, byID)
			}
			r.Topics = append(r.Topics, unknown...)
		}
		done(r)
	})
}

// present is what remains of all of a group's offsets: those that were committed
// for an earlier topic of the same name go, and by id those of topics that are
// gone.
func present(img *metadata.Image, topics []kmsg.OffsetFetchResponseGroupTopic, byID bool) []kmsg.OffsetFetchResponseGroupTopic {
	var none metadata.TopicID
	var kept []kmsg.OffsetFetchResponseGroupTopic
	for _, t := range topics {
		topic, ok := img.Topic(t.Topic)
		switch {
		case !ok && byID, ok && t.TopicID != none && t.TopicID != topic.ID:
			continue
		case ok:
			t.TopicID = topic.ID
		}
		if n := len(kept); n > 0 && kept[n-1].Topic == t.Topic {
			kept[n-1].Partitions = append(kept[n-1].Partitions, t.Partitions...)
			continue
		}
		kept = append(kept, t)
	}
	return kept
}

// offsetDelete deletes offsets of the partitions that exist and answers for the
// others itself.
func (h *Handlers) offsetDelete(c *Call, req *kmsg.OffsetDeleteRequest, resp *kmsg.OffsetDeleteResponse) {
	img := h.Image()
	known := *req
	known.Topics = nil
	// slots are where the coordinator's answers go, in the order of known.
	var slots []*kmsg.OffsetDeleteResponseTopicPartition
	topics := make([]kmsg.OffsetDeleteResponseTopic, len(req.Topics))
	for i := range req.Topics {
		t, rt := req.Topics[i], &topics[i]
		rt.Topic = t.Topic
		rt.Partitions = make([]kmsg.OffsetDeleteResponseTopicPartition, len(t.Partitions))
		asked := t.Partitions
		t.Partitions = nil
		for j := range asked {
			p := &rt.Partitions[j]
			p.Partition = asked[j].Partition
			if _, ok := img.Partition(t.Topic, p.Partition); !ok {
				p.ErrorCode = kerr.UnknownTopicOrPartition.Code
				continue
			}
			t.Partitions = append(t.Partitions, asked[j])
			slots = append(slots, p)
		}
		if len(t.Partitions) > 0 {
			known.Topics = append(known.Topics, t)
		}
	}
	h.Groups.DeleteOffsets(c.client(), &known, func(r *kmsg.OffsetDeleteResponse) {
		h.guard(c, func() {
			resp.ErrorCode = r.ErrorCode
			if r.ErrorCode == 0 {
				resp.Topics = topics
			}
			n := 0
			for i := range r.Topics {
				for j := range r.Topics[i].Partitions {
					slots[n].ErrorCode = r.Topics[i].Partitions[j].ErrorCode
					n++
				}
			}
			c.Reply()
		})
	})
}
