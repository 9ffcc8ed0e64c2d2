package main

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/compat-tests/harness"
)

const (
	errMemberIDRequired    = 79
	errRebalanceInProgress = 27
	errUnknownMember       = 25
	errIllegalGeneration   = 22
)

// joinClassic has all members of a classic group join at once; it is over once they share one generation.
func joinClassic(addr string, _ [16]byte, _ int) (time.Duration, error) {
	var settled atomic.Bool
	var stable atomic.Int32
	return together(func(int) error {
		w, err := harness.Dial(addr, 30*time.Second)
		if err != nil {
			return err
		}
		defer w.Close()
		m := &classicMember{w: w, settled: &settled, stable: &stable}
		for !settled.Load() {
			if err := m.step(); err != nil {
				return err
			}
		}
		return nil
	})
}

// classicMember goes through join, sync and heartbeat as a client does.
type classicMember struct {
	w          *harness.Wire
	id         string
	generation int32
	settled    *atomic.Bool
	stable     *atomic.Int32 // the generation that has all members
}

func (m *classicMember) step() error {
	join := kmsg.NewPtrJoinGroupRequest()
	join.Version, join.Group, join.MemberID = 5, "bench-classic", m.id
	join.SessionTimeoutMillis, join.RebalanceTimeoutMillis, join.ProtocolType = 45000, 60000, "consumer"
	join.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range", Metadata: []byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 0}}}
	resp, err := m.w.Ask(join, 90*time.Second)
	if err != nil {
		return err
	}
	joined := resp.(*kmsg.JoinGroupResponse)
	switch joined.ErrorCode {
	case 0:
	case errMemberIDRequired:
		m.id = joined.MemberID
		return nil
	case errUnknownMember:
		m.id = ""
		return nil
	case errRebalanceInProgress:
		return nil
	default:
		return fmt.Errorf("join: error %d", joined.ErrorCode)
	}
	m.id, m.generation = joined.MemberID, joined.Generation
	if len(joined.Members) == groupMembers {
		m.stable.Store(joined.Generation)
	}
	return m.sync(joined)
}

func (m *classicMember) sync(joined *kmsg.JoinGroupResponse) error {
	sync := kmsg.NewPtrSyncGroupRequest()
	sync.Version, sync.Group, sync.MemberID, sync.Generation = 3, "bench-classic", m.id, m.generation
	for _, member := range joined.Members {
		sync.GroupAssignment = append(sync.GroupAssignment, kmsg.SyncGroupRequestGroupAssignment{MemberID: member.MemberID, MemberAssignment: []byte{1}})
	}
	resp, err := m.w.Ask(sync, 90*time.Second)
	if err != nil {
		return err
	}
	switch code := resp.(*kmsg.SyncGroupResponse).ErrorCode; code {
	case 0:
	case errRebalanceInProgress, errIllegalGeneration, errUnknownMember:
		return nil
	default:
		return fmt.Errorf("sync: error %d", code)
	}
	if m.generation == m.stable.Load() {
		m.settled.Store(true)
	}
	return m.beat()
}

// beat keeps the member in until the group rebalances.
func (m *classicMember) beat() error {
	beat := kmsg.NewPtrHeartbeatRequest()
	beat.Version, beat.Group, beat.MemberID, beat.Generation = 3, "bench-classic", m.id, m.generation
	for !m.settled.Load() {
		resp, err := m.w.Ask(beat, 30*time.Second)
		if err != nil {
			return err
		}
		if resp.(*kmsg.HeartbeatResponse).ErrorCode != 0 {
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return nil
}

// joinConsumer has all members of a KIP-848 group join at once; it is over once each owns its one partition.
func joinConsumer(addr string, topicID [16]byte, _ int) (time.Duration, error) {
	var owners atomic.Int32
	return together(func(n int) error {
		w, err := harness.Dial(addr, 30*time.Second)
		if err != nil {
			return err
		}
		defer w.Close()
		return consumerMember(w, n, topicID, &owners)
	})
}

func consumerMember(w *harness.Wire, n int, topicID [16]byte, owners *atomic.Int32) error {
	var id [16]byte
	binary.BigEndian.PutUint64(id[8:], uint64(n)+1)
	beat := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	beat.Version, beat.Group, beat.MemberID = 1, "bench-consumer", base64.RawURLEncoding.EncodeToString(id[:])
	beat.RebalanceTimeoutMillis, beat.SubscribedTopicNames = 60000, []string{"bench-large"}
	beat.Topics = []kmsg.ConsumerGroupHeartbeatRequestTopic{}
	had := false
	for owners.Load() < groupMembers {
		resp, err := w.Ask(beat, 30*time.Second)
		if err != nil {
			return err
		}
		answer := resp.(*kmsg.ConsumerGroupHeartbeatResponse)
		if answer.ErrorCode != 0 {
			return fmt.Errorf("heartbeat: error %d", answer.ErrorCode)
		}
		beat.MemberEpoch = answer.MemberEpoch
		if answer.Assignment != nil {
			var own []int32
			for _, t := range answer.Assignment.Topics {
				own = append(own, t.Partitions...)
			}
			beat.Topics = []kmsg.ConsumerGroupHeartbeatRequestTopic{{TopicID: topicID, Partitions: own}}
			if has := len(own) == 1; has != had {
				had = has
				if has {
					owners.Add(1)
				} else {
					owners.Add(-1)
				}
			}
			continue
		}
		time.Sleep(50 * time.Millisecond)
	}
	return nil
}
