package api

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/cluster/metadata"
	"github.com/barnabas-mq/barnabas/protocol"
)

// metadata serves Metadata v0-13. Topics that may be created by asking for them
// are, but as in Kafka the answer does not wait for it: it has an error in their
// rows, and the client asks again.
func (h *Handlers) metadata(c *Call, req *kmsg.MetadataRequest, resp *kmsg.MetadataResponse) {
	m := &metadataCall{h: h, c: c, req: req, resp: resp}
	if err := m.parse(); err != nil {
		m.refuse(err)
		c.Reply()
		return
	}
	if c.Net.OnLoop() && m.rows(h.Image()) > inlineRows {
		c.Net.State = requeued{}
		c.Net.Requeue()
		return
	}
	img := h.Image()
	defer h.enterAnswer(m.rows(img) * metadataRowBytes)()
	m.fill(img)
	var missing []string
	if m.allowsCreation() && h.AutoCreate() {
		missing = m.missing(img)
	}
	c.Reply()
	h.autoCreate(missing)
}

// metadataRowBytes is about what a topic or a partition takes in the answer, laid out
// and encoded.
const metadataRowBytes = 400

// inlineRows is how many partitions may be listed on an event loop: some tens of
// microseconds of work.
const inlineRows = 500

// requeued marks a request that has moved to the executor.
type requeued struct{}

type metadataCall struct {
	h    *Handlers
	c    *Call
	req  *kmsg.MetadataRequest
	resp *kmsg.MetadataResponse
	// all asks for every topic; else names or ids say which, without repeats.
	all   bool
	names []string
	ids   []metadata.TopicID
}

// firstTopicIDVersion is the first version that takes topic ids. The field
// exists since v10, but Kafka took it only from v12 on.
const firstTopicIDVersion = 12

func (m *metadataCall) version() int16 { return m.c.Header.Version }

// allowsCreation is the request's auto-create flag; before v4 there was none.
func (m *metadataCall) allowsCreation() bool {
	return m.version() < 4 || m.req.AllowAutoTopicCreation
}

// parse reads which topics are wanted: before v1 an empty list means all, since
// then null does.
func (m *metadataCall) parse() error {
	m.all = m.req.Topics == nil || m.version() == 0 && len(m.req.Topics) == 0
	names, ids := map[string]bool{}, map[metadata.TopicID]bool{}
	for _, t := range m.req.Topics {
		byID := t.TopicID != metadata.TopicID{}
		switch {
		case byID && m.version() < firstTopicIDVersion:
			return protocol.Errorf(kerr.InvalidRequest, "Metadata v%d takes no topic ids", m.version())
		case !byID && t.Topic == nil:
			return protocol.Errorf(kerr.InvalidRequest, "a topic has neither name nor id")
		case byID && !ids[t.TopicID]:
			ids[t.TopicID] = true
			m.ids = append(m.ids, t.TopicID)
		case !byID && !names[*t.Topic]:
			names[*t.Topic] = true
			m.names = append(m.names, *t.Topic)
		}
	}
	if len(m.ids) > 0 {
		m.names = nil // as in Kafka: ids, where there are any, are the request
	}
	return nil
}

// refuse answers a request that makes no sense: the error for every topic, and
// nothing else.
func (m *metadataCall) refuse(err error) {
	for _, t := range m.req.Topics {
		row := kmsg.NewMetadataResponseTopic()
		row.ErrorCode, row.TopicID, row.Topic = protocol.Code(err), t.TopicID, t.Topic
		if row.Topic == nil {
			row.Topic = new(string)
		}
		m.resp.Topics = append(m.resp.Topics, row)
	}
}

// missing are the wanted topics that do not exist and could.
func (m *metadataCall) missing(img *metadata.Image) []string {
	var out []string
	for _, name := range m.names {
		if _, ok := img.Topic(name); !ok {
			out = append(out, name)
		}
	}
	return creatable(out)
}

func (m *metadataCall) fill(img *metadata.Image) {
	m.resp.ClusterID = &img.ClusterID
	m.resp.ControllerID = controllerOf(img)
	if m.req.IncludeClusterAuthorizedOperations && m.version() >= 8 && m.version() <= 10 {
		m.resp.AuthorizedOperations = authorizedCluster
	}
	m.h.reachable(m.c, img, func(b *metadata.Broker, host string, port int32) {
		row := kmsg.NewMetadataResponseBroker()
		row.NodeID, row.Host, row.Port, row.Rack = b.ID, host, port, rackOf(b)
		m.resp.Brokers = append(m.resp.Brokers, row)
	})
	view := partitionView{img: img, listener: m.c.Conn().Listener()}
	m.resp.Topics = make([]kmsg.MetadataResponseTopic, 0, m.wanted(img))
	if m.all {
		for t := range img.Topics() {
			m.addTopic(view, t)
		}
		return
	}
	for _, name := range m.names {
		if t, ok := img.Topic(name); ok {
			m.addTopic(view, t)
		} else {
			m.addMissing(name)
		}
	}
	for _, id := range m.ids {
		if t, ok := img.TopicByID(id); ok {
			m.addTopic(view, t)
			continue
		}
		row := kmsg.NewMetadataResponseTopic()
		row.ErrorCode, row.TopicID = kerr.UnknownTopicID.Code, id
		m.resp.Topics = append(m.resp.Topics, row)
	}
}

func (m *metadataCall) wanted(img *metadata.Image) int {
	if m.all {
		return img.TopicCount()
	}
	return len(m.names) + len(m.ids)
}

// rows is about how many rows the response will have.
func (m *metadataCall) rows(img *metadata.Image) int {
	if m.all {
		return img.TopicCount() + img.PartitionCount()
	}
	n := len(m.names) + len(m.ids)
	for _, name := range m.names {
		if t, ok := img.Topic(name); ok {
			n += len(t.Partitions)
		}
	}
	for _, id := range m.ids {
		if t, ok := img.TopicByID(id); ok {
			n += len(t.Partitions)
		}
	}
	return n
}

func (m *metadataCall) newTopic(name string) kmsg.MetadataResponseTopic {
	row := kmsg.NewMetadataResponseTopic()
	row.Topic = &name
	row.IsInternal = protocol.IsInternalTopic(name)
	if m.req.IncludeTopicAuthorizedOperations {
		row.AuthorizedOperations = authorizedTopic
	}
	return row
}

func (m *metadataCall) addMissing(name string) {
	row := m.newTopic(name)
	row.ErrorCode = missingTopicCode(name)
	m.resp.Topics = append(m.resp.Topics, row)
}

// missingTopicCode is the error for a topic that does not exist.
func missingTopicCode(name string) int16 {
	if err := protocol.CheckTopicName(name); err != nil {
		return protocol.Code(err)
	}
	return kerr.UnknownTopicOrPartition.Code
}

func (m *metadataCall) addTopic(view partitionView, t *metadata.Topic) {
	row := m.newTopic(t.Name)
	row.TopicID = t.ID
	row.Partitions = make([]kmsg.MetadataResponseTopicPartition, len(t.Partitions))
	for i, p := range t.Partitions {
		m.fillPartition(view, p, &row.Partitions[i])
	}
	m.resp.Topics = append(m.resp.Topics, row)
}

func (m *metadataCall) fillPartition(view partitionView, p *metadata.Partition, row *kmsg.MetadataResponseTopicPartition) {
	row.Default()
	row.Partition, row.LeaderEpoch = p.Index, p.LeaderEpoch
	row.Replicas, row.ISR = p.Replicas, p.ISR
	row.OfflineReplicas = view.offline(p)
	if m.version() == 0 {
		// The first clients take a replica that is not reachable for an error.
		row.Replicas, row.ISR = view.online(p.Replicas), view.online(p.ISR)
	}
	switch {
	case !view.registered(p.Leader):
		row.Leader, row.ErrorCode = -1, kerr.LeaderNotAvailable.Code
	case !view.reachable(p.Leader):
		row.Leader, row.ErrorCode = -1, kerr.LeaderNotAvailable.Code
		if m.version() >= 6 {
			row.ErrorCode = kerr.ListenerNotFound.Code
		}
	default:
		row.Leader = p.Leader
		if len(row.Replicas) < len(p.Replicas) || len(row.ISR) < len(p.ISR) {
			row.ErrorCode = kerr.ReplicaNotAvailable.Code
		}
	}
}

// partitionView answers which brokers a client on one listener can use.
type partitionView struct {
	img      *metadata.Image
	listener string
}

func (v partitionView) registered(id int32) bool {
	_, ok := v.img.Broker(id)
	return ok
}

func (v partitionView) reachable(id int32) bool {
	b, ok := v.img.Broker(id)
	if !ok || b.Fenced {
		return false
	}
	_, ok = b.Endpoint(v.listener)
	return ok
}

func (v partitionView) online(ids []int32) []int32 {
	out := make([]int32, 0, len(ids))
	for _, id := range ids {
		if v.reachable(id) {
			out = append(out, id)
		}
	}
	return out
}

// offline are the replicas that no client can use; nil in the usual case.
func (v partitionView) offline(p *metadata.Partition) []int32 {
	var out []int32
	for _, id := range p.Replicas {
		if !v.reachable(id) {
			out = append(out, id)
		}
	}
	return out
}
