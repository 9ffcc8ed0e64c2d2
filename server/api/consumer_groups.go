package api

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/coordinator/group"
	"github.com/barnabas-mq/barnabas/server/config"
)

// GroupVersionFeature is the feature whose level 1 is the consumer protocol
// (KIP-848).
const GroupVersionFeature = "group.version"

// servesConsumerGroups tells whether the cluster's feature level and this broker's
// configuration allow the consumer protocol.
func (h *Handlers) servesConsumerGroups() bool {
	return FinalizedLevel(h.Image(), GroupVersionFeature) >= 1 &&
		slices.Contains(config.GroupCoordinatorRebalanceProtocols.Get(h.Configs.Snapshot()), "consumer")
}

// consumerGroupHeartbeat serves ConsumerGroupHeartbeat v0-1.
func (h *Handlers) consumerGroupHeartbeat(c *Call, req *kmsg.ConsumerGroupHeartbeatRequest, resp *kmsg.ConsumerGroupHeartbeatResponse) {
	reply := func(r *kmsg.ConsumerGroupHeartbeatResponse) {
		h.guard(c, func() {
			r.Version = resp.Version
			*resp = *r
			c.Reply()
		})
	}
	if !h.servesConsumerGroups() {
		reply(group.HeartbeatError(kerr.UnsupportedVersion, ""))
		return
	}
	h.Groups.ConsumerGroupHeartbeat(c.client(), req, reply)
}

// consumerGroupDescribe serves ConsumerGroupDescribe v0-1.
func (h *Handlers) consumerGroupDescribe(c *Call, req *kmsg.ConsumerGroupDescribeRequest, resp *kmsg.ConsumerGroupDescribeResponse) {
	describe := h.Groups.DescribeConsumerGroup
	if !h.servesConsumerGroups() {
		describe = func(id string, done func(*kmsg.ConsumerGroupDescribeResponseGroup)) {
			g := kmsg.NewConsumerGroupDescribeResponseGroup()
			g.Group, g.ErrorCode = id, kerr.UnsupportedVersion.Code
			done(&g)
		}
	}
	gatherKept(c, len(req.Groups), func(i int, done func(*kmsg.ConsumerGroupDescribeResponseGroup)) {
		describe(req.Groups[i], done)
	}, func(groups []*kmsg.ConsumerGroupDescribeResponseGroup) {
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
