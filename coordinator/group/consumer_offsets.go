package group

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// memberEpochVersion is the OffsetCommit version from which clients know member
// epochs, which members of the consumer protocol must use.
const memberEpochVersion = 9

// commitCheck says whether one partition may be committed.
type commitCheck func(topicID [16]byte, partition int32) *kerr.Error

func anyPartition([16]byte, int32) *kerr.Error { return nil }

// mayCommit holds a commit against its member. A member that has not heard of its
// newest epoch may still commit what it has had since before that (KIP-1251).
func (g *consumerGroup) mayCommit(memberID string, epoch int32, version int16) (commitCheck, *kerr.Error) {
	if epoch < 0 && len(g.members) == 0 {
		return anyPartition, nil
	}
	m := g.members[memberID]
	switch {
	case m == nil:
		return nil, kerr.UnknownMemberID
	case m.classic == nil && version < memberEpochVersion:
		return nil, kerr.UnsupportedVersion
	case m.classic == nil:
		return m.mayCommit(epoch, kerr.StaleMemberEpoch)
	}
	return m.mayCommit(epoch, kerr.IllegalGeneration)
}

// txnStaleEpochVersion is the TxnOffsetCommit version from which a stale member
// epoch has its own error.
const txnStaleEpochVersion = 6

// mayCommitPending does it for a commit inside a transaction, which may come from
// no member at all.
func (g *consumerGroup) mayCommitPending(r *kmsg.TxnOffsetCommitRequest) (commitCheck, *kerr.Error) {
	if r.Generation < 0 && len(g.members) == 0 || r.Generation == -1 && r.MemberID == "" && r.InstanceID == nil {
		return anyPartition, nil
	}
	m := g.members[r.MemberID]
	if m == nil {
		return nil, kerr.UnknownMemberID
	}
	stale := kerr.IllegalGeneration
	if m.classic == nil && r.Version >= txnStaleEpochVersion {
		stale = kerr.StaleMemberEpoch
	}
	return m.mayCommit(r.Generation, stale)
}

func (m *consumerMember) mayCommit(epoch int32, stale *kerr.Error) (commitCheck, *kerr.Error) {
	switch {
	case epoch == m.epoch:
		return anyPartition, nil
	case epoch > m.epoch:
		return nil, stale
	}
	return func(topicID [16]byte, partition int32) *kerr.Error {
		since, ok := m.assigned[topicID][partition]
		if !ok {
			since, ok = m.revoking[topicID][partition]
		}
		if !ok || epoch < since {
			return stale
		}
		return nil
	}, nil
}

// mayFetch holds an OffsetFetch against its member; who is none may read.
func (g *consumerGroup) mayFetch(memberID *string, epoch int32) *kerr.Error {
	if memberID == nil && epoch < 0 {
		return nil
	}
	var m *consumerMember
	if memberID != nil {
		m = g.members[*memberID]
	}
	switch {
	case m == nil:
		return kerr.UnknownMemberID
	case epoch == m.epoch:
		return nil
	case m.classic != nil:
		return kerr.IllegalGeneration
	}
	return kerr.StaleMemberEpoch
}
