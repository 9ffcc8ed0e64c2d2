package api

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/coordinator/group"
	"github.com/barnabas-mq/barnabas/server/network"
)

// patientGroups answers members when the test does.
type patientGroups struct {
	Groups
	joins chan func(*kmsg.JoinGroupResponse)
	syncs chan func(*kmsg.SyncGroupResponse)
}

func (g *patientGroups) JoinGroup(_ group.Client, _ *kmsg.JoinGroupRequest, done func(*kmsg.JoinGroupResponse)) {
	g.joins <- done
}

func (g *patientGroups) SyncGroup(_ group.Client, _ *kmsg.SyncGroupRequest, done func(*kmsg.SyncGroupResponse)) {
	g.syncs <- done
}

// TestStopAnswersMembers stops while members wait: they are answered, once, as are
// those that come later.
func TestStopAnswersMembers(t *testing.T) {
	g := &patientGroups{joins: make(chan func(*kmsg.JoinGroupResponse), 1), syncs: make(chan func(*kmsg.SyncGroupResponse), 1)}
	b := newTestBroker(t, func(h *Handlers) { h.Groups = g })
	join, sync := kmsg.NewPtrJoinGroupRequest(), kmsg.NewPtrSyncGroupRequest()
	c := b.dial("before")
	answered := later[*kmsg.JoinGroupResponse](c, 3, join)
	(<-g.joins)(group.JoinError("m", kerr.RebalanceInProgress))
	if r := soon(t, answered); r.MemberID != "m" {
		t.Errorf("%+v", r)
	}
	joined, synced := later[*kmsg.JoinGroupResponse](c, 3, join), later[*kmsg.SyncGroupResponse](b.dial("client"), 3, sync)
	lateJoin, lateSync := <-g.joins, <-g.syncs
	b.h.Stop()
	if j, s := soon(t, joined), soon(t, synced); j.ErrorCode != kerr.NotCoordinator.Code || s.ErrorCode != kerr.NotCoordinator.Code {
		t.Errorf("join: %+v, sync: %+v", j, s)
	}
	lateJoin(group.JoinError("m", kerr.RebalanceInProgress))
	lateSync(group.SyncError(kerr.RebalanceInProgress))
	if r := askAs[*kmsg.JoinGroupResponse](c, 3, join); r.ErrorCode != kerr.NotCoordinator.Code {
		t.Errorf("after the stop: %+v", r)
	}
	if r := askAs[*kmsg.SyncGroupResponse](c, 3, sync); r.ErrorCode != kerr.NotCoordinator.Code {
		t.Errorf("after the stop: %+v", r)
	}
}

// TestLargeMembersDoNotWaitWhereMemoryIsShort has one join with more than half of the
// memory for requests; what it would keep while it waits, others need.
func TestLargeMembersDoNotWaitWhereMemoryIsShort(t *testing.T) {
	g := newGroupBroker(t)
	c := g.dial("h")
	g.find(c, 6, "any")
	few := loopsOf(t, NewDispatcher(g.h, nil), network.Limits{QueuedBytes: 200 << 10})()
	for kib, want := range map[int]int16{10: kerr.MemberIDRequired.Code, 150: kerr.CoordinatorLoadInProgress.Code} {
		join := joinRequest("g", "")
		join.Protocols[0].Metadata = make([]byte, kib<<10)
		if r := askAs[*kmsg.JoinGroupResponse](few, 9, join); r.ErrorCode != want {
			t.Errorf("%d KiB: code %d, want %d", kib, r.ErrorCode, want)
		}
	}
}
