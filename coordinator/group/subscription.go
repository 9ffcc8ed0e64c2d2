package group

import "encoding/binary"

// subscribedTopics is the union of what the members of a consumer group
// subscribe to; nil when it cannot be known.
func (g *classic) subscribedTopics() map[string]struct{} {
	if g.protocolType != protocolConsumer {
		return nil
	}
	topics := map[string]struct{}{}
	if len(g.members) == 0 {
		return topics
	}
	if g.protocol == nil {
		return nil
	}
	for _, m := range g.members {
		metadata, _ := m.metadata(*g.protocol)
		if !readSubscription(metadata, topics) {
			return nil
		}
	}
	return topics
}

// subscribedTo tells whether a topic is in use by the group's members. A
// consumer group whose subscriptions are not known may use every topic.
func (g *classic) subscribedTo(topic string) bool {
	if g.topics == nil {
		return g.protocolType == protocolConsumer
	}
	_, ok := g.topics[topic]
	return ok
}

// readSubscription adds the topics of a member's metadata. Every version of the
// consumer protocol begins as version 0 does: a version and the topics' names.
func readSubscription(b []byte, topics map[string]struct{}) bool {
	const versionAndCount = 6
	if len(b) < versionAndCount || int16(binary.BigEndian.Uint16(b)) < 0 {
		return false
	}
	n, b := int32(binary.BigEndian.Uint32(b[2:])), b[versionAndCount:]
	for range n {
		if len(b) < 2 {
			return false
		}
		size := int(int16(binary.BigEndian.Uint16(b)))
		if size < 0 || size > len(b)-2 {
			return false
		}
		topics[string(b[2:2+size])] = struct{}{}
		b = b[2+size:]
	}
	return n >= 0
}
