package api

import (
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/cluster/quorum"
	"github.com/barnabas-mq/barnabas/protocol"
)

// Quorum tells the state of the metadata log.
type Quorum interface{ Status() quorum.Status }

// metadataTopic is how Kafka names the metadata log, whose only partition is 0.
const metadataTopic = "__cluster_metadata"

// describeQuorum serves DescribeQuorum v0-2 (KIP-595, KIP-853): this node is the
// only voter. Offsets are indexes of the log, which has an entry for each change.
func (h *Handlers) describeQuorum(c *Call, req *kmsg.DescribeQuorumRequest, resp *kmsg.DescribeQuorumResponse) {
	defer c.Reply()
	resp.ErrorMessage = kmsg.StringPtr("") // as Kafka
	if !asksForMetadata(req) {
		unknownQuorums(req, resp)
		return
	}
	status, nowMs := h.Quorum.Status(), h.Clock.Now().UnixMilli()
	p := kmsg.NewDescribeQuorumResponseTopicPartition()
	p.ErrorMessage = kmsg.StringPtr("")
	p.LeaderID, p.LeaderEpoch = -1, int32(status.Term)
	if status.Leads {
		p.LeaderID = h.NodeID
	}
	p.HighWatermark = int64(status.Committed) + 1
	voter := kmsg.NewDescribeQuorumResponseTopicPartitionReplicaState()
	voter.ReplicaID, voter.ReplicaDirectoryID, voter.LogEndOffset = h.NodeID, h.DirectoryID, int64(status.Last)+1
	voter.LastFetchTimestamp, voter.LastCaughtUpTimestamp = nowMs, nowMs
	p.CurrentVoters = append(p.CurrentVoters, voter)
	topic := kmsg.NewDescribeQuorumResponseTopic()
	topic.Topic = metadataTopic
	topic.Partitions = append(topic.Partitions, p)
	resp.Topics = append(resp.Topics, topic)
	resp.Nodes = h.quorumNodes(c)
}

func asksForMetadata(req *kmsg.DescribeQuorumRequest) bool {
	return len(req.Topics) == 1 && req.Topics[0].Topic == metadataTopic &&
		len(req.Topics[0].Partitions) == 1 && req.Topics[0].Partitions[0].Partition == 0
}

func unknownQuorums(req *kmsg.DescribeQuorumRequest, resp *kmsg.DescribeQuorumResponse) {
	for _, t := range req.Topics {
		topic := kmsg.NewDescribeQuorumResponseTopic()
		topic.Topic = t.Topic
		for _, asked := range t.Partitions {
			p := kmsg.NewDescribeQuorumResponseTopicPartition()
			p.Partition, p.ErrorCode = asked.Partition, kerr.UnknownTopicOrPartition.Code
			p.ErrorMessage = kmsg.StringPtr(kerr.UnknownTopicOrPartition.Description)
			topic.Partitions = append(topic.Partitions, p)
		}
		resp.Topics = append(resp.Topics, topic)
	}
}

// quorumNodes are where the voters listen. There is no listener of its own for
// controllers: requests for them come to those of the broker.
func (h *Handlers) quorumNodes(c *Call) []kmsg.DescribeQuorumResponseNode {
	node := kmsg.NewDescribeQuorumResponseNode()
	node.NodeID = h.NodeID
	if b, ok := h.Image().Broker(h.NodeID); ok {
		if host, port, ok := h.endpoint(c, b); ok {
			l := kmsg.NewDescribeQuorumResponseNodeListener()
			l.Name, l.Host, l.Port = c.Conn().Listener(), host, uint16(port)
			node.Listeners = append(node.Listeners, l)
		}
	}
	return []kmsg.DescribeQuorumResponseNode{node}
}

// controllerListener is the name of the listener that a voter must have.
const controllerListener = "CONTROLLER"

// addRaftVoter serves AddRaftVoter v0-1 (KIP-853) as Kafka does with a quorum whose
// voters are configured: nobody can be added.
func (h *Handlers) addRaftVoter(c *Call, req *kmsg.AddRaftVoterRequest, resp *kmsg.AddRaftVoterResponse) {
	defer c.Reply()
	err := h.checkVoter("Add", req.ClusterID, req.VoterID, req.VoterDirectoryID)
	if err == nil {
		err = checkVoterListeners(req)
	}
	if err == nil {
		err = protocol.Errorf(kerr.UnsupportedVersion, "Cluster doesn't support adding voter because the kraft.version feature is 0")
	}
	resp.ErrorCode, resp.ErrorMessage = protocol.Code(err), protocol.Message(err)
}

// removeRaftVoter serves RemoveRaftVoter v0, which is refused like AddRaftVoter.
func (h *Handlers) removeRaftVoter(c *Call, req *kmsg.RemoveRaftVoterRequest, resp *kmsg.RemoveRaftVoterResponse) {
	defer c.Reply()
	err := h.checkVoter("Remove", req.ClusterID, req.VoterID, req.VoterDirectoryID)
	if err == nil {
		err = protocol.Errorf(kerr.UnsupportedVersion, "Cluster doesn't support removing voter because the kraft.version feature is 0")
	}
	resp.ErrorCode, resp.ErrorMessage = protocol.Code(err), protocol.Message(err)
}

func (h *Handlers) checkVoter(verb string, clusterID *string, id int32, directory [16]byte) error {
	if own := h.Image().ClusterID; clusterID != nil && *clusterID != own {
		return protocol.Errorf(kerr.InconsistentClusterID, "The given id %q doesn't match the cluster id %q", *clusterID, own)
	}
	if id < 0 || directory == [16]byte{} {
		return protocol.Errorf(kerr.InvalidRequest, "%s voter request didn't include a valid voter", verb)
	}
	return nil
}

func checkVoterListeners(req *kmsg.AddRaftVoterRequest) error {
	texts := make([]string, len(req.Listeners))
	for i, l := range req.Listeners {
		if l.Name == controllerListener {
			return nil
		}
		texts[i] = fmt.Sprintf("ListenerName(%s)=%s/<unresolved>:%d", l.Name, l.Host, l.Port)
	}
	return protocol.Errorf(kerr.InvalidRequest, "Add voter request didn't include the endpoint (Endpoints(endpoints={%s})) for the default listener ListenerName(%s)",
		strings.Join(texts, ", "), controllerListener)
}

// unregisterBroker serves UnregisterBroker v0. A broker that unregisters itself
// serves no partition until it starts again.
func (h *Handlers) unregisterBroker(c *Call, req *kmsg.UnregisterBrokerRequest, resp *kmsg.UnregisterBrokerResponse) {
	h.decideAnyTime(c, req, func(decided kmsg.Response, err error) {
		if err != nil {
			resp.ErrorCode, resp.ErrorMessage = protocol.Code(err), ownText(err)
			return
		}
		*resp = *decided.(*kmsg.UnregisterBrokerResponse)
		if resp.ErrorCode == 0 && req.BrokerID == h.NodeID {
			h.Log.Warn("this broker was unregistered and serves no partition any more; start it again to register it")
		}
	})
}

// unregisterController serves UnregisterController v0.
func (h *Handlers) unregisterController(c *Call, req *kmsg.UnregisterControllerRequest, resp *kmsg.UnregisterControllerResponse) {
	defer c.Reply()
	err := protocol.Errorf(kerr.ControllerIDNotRegistered, "Controller ID %d is not currently registered.", req.ControllerID)
	if req.ControllerID == h.NodeID {
		err = protocol.Errorf(kerr.InvalidRequest, "Controller cannot unregister itself while it is active.")
	}
	resp.ErrorCode, resp.ErrorMessage = protocol.Code(err), protocol.Message(err)
}
