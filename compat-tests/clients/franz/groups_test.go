//go:build !old

package franz

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/barnabas-mq/barnabas/compat-tests/harness"
)

func TestGroups(t *testing.T) {
	balancers := map[string]kgo.GroupBalancer{
		"range": kgo.RangeBalancer(), "roundrobin": kgo.RoundRobinBalancer(),
		"sticky": kgo.StickyBalancer(), "cooperative-sticky": kgo.CooperativeStickyBalancer(),
	}
	for name, balancer := range balancers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rebalanceUnderLoad(t, name, balancer)
		})
	}
}

// tally counts each record's deliveries and remembers who holds which partitions.
type tally struct {
	mu   sync.Mutex
	seen map[uint64]int
}

func (s *tally) add(fetches kgo.Fetches) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fetches.EachRecord(func(r *kgo.Record) { s.seen[binary.BigEndian.Uint64(r.Value)]++ })
}

func (s *tally) distinct() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.seen)
}

// rebalanceUnderLoad has members come and go while records arrive. Every record is delivered, and when the group is
// quiet its committed offsets are the end of each partition.
func rebalanceUnderLoad(t *testing.T, protocol string, balancer kgo.GroupBalancer) {
	const partitions, count = 7, 3000
	ctx := harness.Context(t, 2*time.Minute)
	name := topic(t, partitions, nil)
	group := "group-" + name
	seen := &tally{seen: map[uint64]int{}}

	var wg sync.WaitGroup
	member := func() (leave func()) {
		cl := client(t, kgo.ConsumerGroup(group), kgo.ConsumeTopics(name), kgo.Balancers(balancer),
			kgo.AutoCommitMarks(), kgo.AutoCommitInterval(100*time.Millisecond), kgo.BlockRebalanceOnPoll(),
			kgo.HeartbeatInterval(200*time.Millisecond), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
		mctx, cancel := context.WithCancel(ctx)
		wg.Go(func() {
			for mctx.Err() == nil {
				fetches := cl.PollFetches(mctx)
				fetches.EachError(func(topic string, p int32, err error) {
					if mctx.Err() == nil {
						t.Errorf("poll %s[%d]: %v", topic, p, err)
						cancel()
					}
				})
				seen.add(fetches)
				cl.MarkCommitRecords(fetches.Records()...)
				cl.AllowRebalance()
			}
			if err := commitMarked(ctx, cl); err != nil {
				t.Errorf("commit: %v", err)
			}
			cl.CloseAllowingRebalance()
		})
		return cancel
	}

	prod := client(t, kgo.DefaultProduceTopic(name), kgo.RecordPartitioner(kgo.RoundRobinPartitioner()))
	var leaves []func()
	for i := range count {
		switch i {
		case 0, 500, 1000:
			leaves = append(leaves, member())
		case 1500:
			leaves[0]()
		case 2000:
			leaves = append(leaves, member())
		case 2500:
			leaves[2]()
		}
		r := &kgo.Record{Value: binary.BigEndian.AppendUint64(nil, uint64(i))}
		if i%10 == 0 {
			if err := prod.ProduceSync(ctx, r).FirstErr(); err != nil {
				t.Fatal(err)
			}
			continue
		}
		prod.Produce(ctx, r, func(_ *kgo.Record, err error) {
			if err != nil {
				t.Errorf("produce: %v", err)
			}
		})
	}
	if err := prod.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	await(t, ctx, func() error {
		if n := seen.distinct(); n != count {
			return fmt.Errorf("%d of %d records delivered", n, count)
		}
		return nil
	})
	checkStable(t, ctx, group, name, protocol, partitions, 2)
	leaves[1]()
	leaves[3]()
	wg.Wait()
	checkCommitted(t, ctx, group, name)
}

// commitMarked commits what was marked. A rebalance that goes on meanwhile refuses that; after it the member has its
// partitions still, or has committed them when they were taken.
func commitMarked(ctx context.Context, cl *kgo.Client) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := cl.CommitMarkedOffsets(ctx)
		if !errors.Is(err, kerr.RebalanceInProgress) && !errors.Is(err, kerr.IllegalGeneration) && !errors.Is(err, kerr.StaleMemberEpoch) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-tick.C:
		}
	}
}

// await polls until check agrees.
func await(t testing.TB, ctx context.Context, check func() error) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := check()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatal(err)
		case <-tick.C:
		}
	}
}

// checkStable wants the described group to have settled on members that hold each partition once.
func checkStable(t *testing.T, ctx context.Context, group, topic, protocol string, partitions, members int) {
	t.Helper()
	adm := admin(t)
	await(t, ctx, func() error {
		described, err := adm.DescribeGroups(ctx, group)
		if err != nil {
			return err
		}
		g := described[group]
		if g.Err != nil || g.State != "Stable" || g.Protocol != protocol || g.ProtocolType != "consumer" || len(g.Members) != members {
			return fmt.Errorf("group is %+v, want %d members of %s", g, members, protocol)
		}
		if got := len(g.AssignedPartitions()[topic]); got != partitions {
			return fmt.Errorf("%d of %d partitions assigned", got, partitions)
		}
		owned := 0
		for _, m := range g.Members {
			assigned, ok := m.Assigned.AsConsumer()
			if !ok {
				return fmt.Errorf("the assignment of %s is not a consumer's", m.MemberID)
			}
			for _, tp := range assigned.Topics {
				owned += len(tp.Partitions)
			}
		}
		if owned != partitions {
			return fmt.Errorf("%d partitions are held %d times", partitions, owned)
		}
		return nil
	})
}

func checkCommitted(t *testing.T, ctx context.Context, group, topic string) {
	t.Helper()
	adm := admin(t)
	await(t, ctx, func() error {
		lags, err := adm.Lag(ctx, group)
		if err != nil {
			return err
		}
		lag := lags[group]
		if err := lag.Error(); err != nil {
			return err
		}
		if lag.State != "Empty" {
			return fmt.Errorf("the group is %s after its last member left", lag.State)
		}
		if total := lag.Lag.Total(); total != 0 || len(lag.Lag[topic]) == 0 {
			return fmt.Errorf("lag is %d over %d partitions", total, len(lag.Lag[topic]))
		}
		return nil
	})
}

// TestStaticMember restarts a static member: it has the same partitions again, and the others saw no rebalance.
func TestStaticMember(t *testing.T) {
	ctx := harness.Context(t, time.Minute)
	name := topic(t, 4, nil)
	group := "group-" + name
	adm := admin(t)
	join := func(instance string) *kgo.Client {
		cl := client(t, kgo.ConsumerGroup(group), kgo.ConsumeTopics(name), kgo.InstanceID(instance), kgo.Balancers(kgo.RangeBalancer()),
			kgo.HeartbeatInterval(100*time.Millisecond), kgo.SessionTimeout(30*time.Second))
		go func() {
			for !cl.PollFetches(ctx).IsClientClosed() && ctx.Err() == nil {
			}
		}()
		return cl
	}
	one, two := join("one"), join("two")
	checkStable(t, ctx, group, name, "range", 4, 2)
	before := assignments(t, ctx, adm, group)
	var generation int32
	await(t, ctx, func() error { // a group is stable before each member has read so
		_, first := one.GroupMetadata()
		_, generation = two.GroupMetadata()
		if generation < 0 || generation != first {
			return fmt.Errorf("the members are of generations %d and %d", first, generation)
		}
		return nil
	})
	two.Close() // a static member does not leave
	again := join("two")
	await(t, ctx, func() error {
		member, got := again.GroupMetadata()
		if member == "" || got < 0 {
			return fmt.Errorf("the member has not joined again")
		}
		if got != generation {
			t.Fatalf("generation %d became %d: the group was rebalanced", generation, got)
		}
		return nil
	})
	checkStable(t, ctx, group, name, "range", 4, 2)
	if after := assignments(t, ctx, adm, group); fmt.Sprint(before) != fmt.Sprint(after) {
		t.Fatalf("assignments %v became %v", before, after)
	}
	left, err := adm.LeaveGroup(ctx, kadm.LeaveGroup(group).InstanceIDs("two").Reason("test"))
	if err != nil || left.Error() != nil {
		t.Fatalf("remove the static member: %v, %v", err, left.Error())
	}
	checkMembers(t, ctx, adm, group, 1)
}

func checkMembers(t *testing.T, ctx context.Context, adm *kadm.Client, group string, want int) {
	t.Helper()
	await(t, ctx, func() error {
		described, err := adm.DescribeGroups(ctx, group)
		if err != nil {
			return err
		}
		if got := len(described[group].Members); got > want {
			return fmt.Errorf("%d members, want %d", got, want)
		}
		return nil
	})
}

func assignments(t *testing.T, ctx context.Context, adm *kadm.Client, group string) map[string]string {
	t.Helper()
	described, err := adm.DescribeGroups(ctx, group)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, m := range described[group].Members {
		if m.InstanceID == nil {
			t.Fatalf("member %s has lost its instance id", m.MemberID)
		}
		assigned, _ := m.Assigned.AsConsumer()
		out[*m.InstanceID] = fmt.Sprint(assigned.Topics)
	}
	return out
}
