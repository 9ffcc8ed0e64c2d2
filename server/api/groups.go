package api

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/cluster/replica"
	"github.com/barnabas-mq/barnabas/coordinator/group"
	"github.com/barnabas-mq/barnabas/storage"
)

// Groups coordinates the consumer groups whose partitions this broker leads.
// Each method calls done exactly once, on any goroutine, maybe before it returns.
type Groups interface {
	// WhenServing calls done once the group's coordinator has loaded here, or
	// with the reason why this broker is not it.
	WhenServing(groupID string, done func(error))
	JoinGroup(who group.Client, r *kmsg.JoinGroupRequest, done func(*kmsg.JoinGroupResponse))
	SyncGroup(who group.Client, r *kmsg.SyncGroupRequest, done func(*kmsg.SyncGroupResponse))
	Heartbeat(who group.Client, r *kmsg.HeartbeatRequest, done func(*kmsg.HeartbeatResponse))
	ConsumerGroupHeartbeat(who group.Client, r *kmsg.ConsumerGroupHeartbeatRequest, done func(*kmsg.ConsumerGroupHeartbeatResponse))
	LeaveGroup(who group.Client, r *kmsg.LeaveGroupRequest, done func(*kmsg.LeaveGroupResponse))
	CommitOffsets(who group.Client, r *kmsg.OffsetCommitRequest, done func(*kmsg.OffsetCommitResponse))
	// StartVerification begins the verification that a producer's offsets for a
	// group need, CommitTransactionalOffsets stores them under its guard.
	StartVerification(groupID string, v storage.Verification, done func(partition int32, guard storage.VerificationGuard, err error))
	CommitTransactionalOffsets(who group.Client, r group.CommitPending, done func(*kmsg.TxnOffsetCommitResponse))
	// CompleteTransaction writes the marker that ends a producer's transaction
	// into a partition of the groups' topic.
	CompleteTransaction(partition int32, m replica.Marker, done func(error))
	FetchOffsets(r group.FetchOffsets, done func(*kmsg.OffsetFetchResponseGroup))
	DeleteOffsets(who group.Client, r *kmsg.OffsetDeleteRequest, done func(*kmsg.OffsetDeleteResponse))
	ListGroups(r *kmsg.ListGroupsRequest, done func(*kmsg.ListGroupsResponse))
	DescribeGroup(groupID string, version int16, done func(*kmsg.DescribeGroupsResponseGroup))
	DescribeConsumerGroup(groupID string, done func(*kmsg.ConsumerGroupDescribeResponseGroup))
	DeleteGroup(groupID string, done func(*kmsg.DeleteGroupsResponseGroup))
}

// client is who sent the request, as groups show it.
func (c *Call) client() group.Client {
	return group.Client{ID: c.Header.ClientID, Host: c.ClientHost()}
}

// joinGroup sends a member away that is large where memory is short: it tries again
// after a while.
func (h *Handlers) joinGroup(c *Call, req *kmsg.JoinGroupRequest, resp *kmsg.JoinGroupResponse) {
	if !c.Net.MayWait(c.requestBytes) {
		r := group.JoinError(req.MemberID, kerr.CoordinatorLoadInProgress)
		r.Version = resp.Version
		*resp = *r
		c.Reply()
		return
	}
	answerLater(h, c, group.JoinError("", kerr.NotCoordinator), func(done func(*kmsg.JoinGroupResponse)) {
		h.Groups.JoinGroup(c.client(), req, done)
	}, func(r *kmsg.JoinGroupResponse) {
		r.Version = resp.Version
		*resp = *r
		c.Reply()
	})
}

func (h *Handlers) syncGroup(c *Call, req *kmsg.SyncGroupRequest, resp *kmsg.SyncGroupResponse) {
	answerLater(h, c, group.SyncError(kerr.NotCoordinator), func(done func(*kmsg.SyncGroupResponse)) {
		who := c.client()
		who.Hasty = !c.Net.MayWait(c.requestBytes)
		h.Groups.SyncGroup(who, req, done)
	}, func(r *kmsg.SyncGroupResponse) {
		r.Version = resp.Version
		*resp = *r
		c.Reply()
	})
}

func (h *Handlers) heartbeat(c *Call, req *kmsg.HeartbeatRequest, resp *kmsg.HeartbeatResponse) {
	h.Groups.Heartbeat(c.client(), req, func(r *kmsg.HeartbeatResponse) {
		h.guard(c, func() {
			r.Version = resp.Version
			*resp = *r
			c.Reply()
		})
	})
}

func (h *Handlers) leaveGroup(c *Call, req *kmsg.LeaveGroupRequest, resp *kmsg.LeaveGroupResponse) {
	h.Groups.LeaveGroup(c.client(), req, func(r *kmsg.LeaveGroupResponse) {
		h.guard(c, func() {
			r.Version = resp.Version
			*resp = *r
			c.Reply()
		})
	})
}

func (h *Handlers) listGroups(c *Call, req *kmsg.ListGroupsRequest, resp *kmsg.ListGroupsResponse) {
	h.Groups.ListGroups(req, func(r *kmsg.ListGroupsResponse) {
		h.guard(c, func() {
			r.Version = resp.Version
			*resp = *r
			c.Reply()
		})
	})
}

func (h *Handlers) describeGroups(c *Call, req *kmsg.DescribeGroupsRequest, resp *kmsg.DescribeGroupsResponse) {
	gatherKept(c, len(req.Groups), func(i int, done func(*kmsg.DescribeGroupsResponseGroup)) {
		h.Groups.DescribeGroup(req.Groups[i], req.Version, done)
	}, func(groups []*kmsg.DescribeGroupsResponseGroup) {
		h.guard(c, func() {
			for _, g := range groups {
				if req.IncludeAuthorizedOperations && g.ErrorCode == 0 {
					g.AuthorizedOperations = authorizedGroup
				}
				resp.Groups = append(resp.Groups, *g)
			}
			c.Reply()
		})
	})
}

func (h *Handlers) deleteGroups(c *Call, req *kmsg.DeleteGroupsRequest, resp *kmsg.DeleteGroupsResponse) {
	gather(len(req.Groups), func(i int, done func(*kmsg.DeleteGroupsResponseGroup)) {
		h.Groups.DeleteGroup(req.Groups[i], done)
	}, func(groups []*kmsg.DeleteGroupsResponseGroup) {
		h.guard(c, func() {
			for _, g := range groups {
				resp.Groups = append(resp.Groups, *g)
			}
			c.Reply()
		})
	})
}
