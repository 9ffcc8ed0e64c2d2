package group

import (
	"log/slog"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/coordinator/runtime"
	"github.com/barnabas-mq/barnabas/internal/clock"
)

// TestHastyFollowersDoNotWait has a member and the leader of a group send a SyncGroup
// that may not wait: the leader's does not, and the member's is sent away.
func TestHastyFollowersDoNotWait(t *testing.T) {
	c := NewCoordinator(Options{
		Config: DefaultConfig(), Clock: clock.NewManual(time.UnixMilli(0)), Log: slog.New(slog.DiscardHandler),
		NewID:      func() string { return "id" },
		Partitions: func() int32 { return 1 },
		Open:       func(int32) (runtime.Log, error) { return &memLog{}, nil },
		Go:         func(work func()) { work() },
	})
	c.OnElected(0, 1)
	defer c.Close()
	answers := map[string]*kmsg.JoinGroupResponse{}
	join := func(who, memberID string) {
		r := kmsg.NewPtrJoinGroupRequest()
		r.Group, r.MemberID, r.ProtocolType, r.SessionTimeoutMillis, r.RebalanceTimeoutMillis = "g", memberID, "consumer", 10_000, 10_000
		r.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range"}}
		c.JoinGroup(Client{ID: who}, r, func(r *kmsg.JoinGroupResponse) { answers[who] = r })
	}
	sync := func(who string) (code int16) {
		r := kmsg.NewPtrSyncGroupRequest()
		r.Group, r.Generation, r.MemberID = "g", answers[who].Generation, answers[who].MemberID
		code = -2 // no answer
		c.SyncGroup(Client{ID: who, Hasty: true}, r, func(r *kmsg.SyncGroupResponse) { code = r.ErrorCode })
		return code
	}
	join("leader", "")
	join("member", "")
	join("leader", answers["leader"].MemberID)
	if a := answers["member"]; a == nil || a.ErrorCode != 0 || answers["leader"].LeaderID != answers["leader"].MemberID {
		t.Fatalf("%+v, %+v", a, answers["leader"])
	}
	if code := sync("member"); code != kerr.RebalanceInProgress.Code {
		t.Errorf("the member was told %d", code)
	}
	if code := sync("leader"); code != 0 {
		t.Errorf("the leader was told %d", code)
	}
	if code := sync("member"); code != 0 {
		t.Errorf("the member was told %d once there is an assignment", code)
	}
}
