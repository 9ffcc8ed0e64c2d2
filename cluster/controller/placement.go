package controller

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/cluster/metadata"
	"github.com/barnabas-mq/barnabas/protocol"
)

// placement is where a partition goes: its replicas, the preferred leader first,
// and those of them that are live.
type placement struct{ replicas, isr []int32 }

// placeTopic chooses or checks the places of a new topic's partitions.
func (m *Machine) placeTopic(img *metadata.Image, t *kmsg.CreateTopicsRequestTopic) ([]placement, error) {
	if len(t.ReplicaAssignment) > 0 {
		return placeByHand(img, t)
	}
	if t.ReplicationFactor < -1 || t.ReplicationFactor == 0 {
		return nil, protocol.Errorf(kerr.InvalidReplicationFactor,
			"Replication factor must be larger than 0, or -1 to use the default value.")
	}
	if t.NumPartitions < -1 || t.NumPartitions == 0 {
		return nil, protocol.Errorf(kerr.InvalidPartitions, "Number of partitions was set to an invalid non-positive value.")
	}
	partitions, factor := t.NumPartitions, t.ReplicationFactor
	if partitions == -1 {
		partitions = m.cfg.NumPartitions
	}
	if factor == -1 {
		factor = m.cfg.ReplicationFactor
	}
	return m.place(img, int(partitions), int(factor))
}

func placeByHand(img *metadata.Image, t *kmsg.CreateTopicsRequestTopic) ([]placement, error) {
	if t.ReplicationFactor != -1 {
		return nil, protocol.Errorf(kerr.InvalidRequest,
			"A manual partition assignment was specified, but replication factor was not set to -1.")
	}
	if t.NumPartitions != -1 {
		return nil, protocol.Errorf(kerr.InvalidRequest,
			"A manual partition assignment was specified, but numPartitions was not set to -1.")
	}
	byIndex := make(map[int32]placement, len(t.ReplicaAssignment))
	factor := 0
	for _, a := range t.ReplicaAssignment {
		if _, dup := byIndex[a.Partition]; dup {
			return nil, protocol.Errorf(kerr.InvalidReplicaAssignment,
				"Found multiple manual partition assignments for partition %d", a.Partition)
		}
		p, err := checkAssignment(img, a.Partition, a.Replicas, factor)
		if err != nil {
			return nil, err
		}
		byIndex[a.Partition], factor = p, len(a.Replicas)
	}
	out := make([]placement, len(byIndex))
	for i := range out {
		p, ok := byIndex[int32(i)]
		if !ok {
			return nil, protocol.Errorf(kerr.InvalidReplicaAssignment, "partitions should be a consecutive 0-based integer sequence")
		}
		out[i] = p
	}
	return out, nil
}

// checkAssignment checks the replicas that a client chose; factor is how many
// the partitions before have, 0 for the first.
func checkAssignment(img *metadata.Image, partition int32, replicas []int32, factor int) (placement, error) {
	bad := func(format string, args ...any) (placement, error) {
		return placement{}, protocol.Errorf(kerr.InvalidReplicaAssignment, format, args...)
	}
	if len(replicas) == 0 {
		return bad("The manual partition assignment includes an empty replica list.")
	}
	sorted := slices.Sorted(slices.Values(replicas))
	for i, id := range sorted {
		if _, ok := img.Broker(id); !ok {
			return bad("The manual partition assignment includes broker %d, but no such broker is registered.", id)
		}
		if i > 0 && sorted[i-1] == id {
			return bad("The manual partition assignment includes the broker %d more than once.", id)
		}
	}
	if factor > 0 && len(replicas) != factor {
		return bad("The manual partition assignment includes a partition with %d replica(s), but this is not consistent "+
			"with previous partitions, which have %d replica(s).", len(replicas), factor)
	}
	p := livePlacement(img, slices.Clone(replicas))
	if len(p.isr) == 0 {
		return bad("All brokers specified in the manual partition assignment for partition %d are fenced or in controlled shutdown.", partition)
	}
	return p, nil
}

func livePlacement(img *metadata.Image, replicas []int32) placement {
	isr := slices.DeleteFunc(slices.Clone(replicas), func(id int32) bool {
		b, ok := img.Broker(id)
		return !ok || !b.Live()
	})
	return placement{replicas: replicas, isr: isr}
}

// place spreads partitions over the brokers: from a random first broker on, each
// partition's replicas follow one another and the next partition starts one
// further, so that leaders are spread as well. Brokers that are not live come
// last and are used only where the live ones do not suffice.
func (m *Machine) place(img *metadata.Image, partitions, factor int) ([]placement, error) {
	brokers := img.Brokers()
	refuse := func(format string, args ...any) ([]placement, error) {
		cause := protocol.Errorf(kerr.InvalidReplicationFactor, format, args...)
		return nil, protocol.Errorf(kerr.InvalidReplicationFactor,
			"Unable to replicate the partition %d time(s): %s", factor, cause.Msg)
	}
	var live, rest []int32
	for _, b := range brokers {
		if b.Live() {
			live = append(live, b.ID)
		} else {
			rest = append(rest, b.ID)
		}
	}
	if len(live) == 0 {
		return refuse("All brokers are currently fenced or in controlled shutdown.")
	}
	if factor > len(brokers) {
		return refuse("The target replication factor of %d cannot be reached because only %d broker(s) are registered "+
			"or some brokers have all their log directories cordoned.", factor, len(brokers))
	}
	first := m.rand.IntN(len(live))
	out := make([]placement, partitions)
	for i := range out {
		replicas := make([]int32, 0, factor)
		for j := range min(factor, len(live)) {
			replicas = append(replicas, live[(first+i+j)%len(live)])
		}
		replicas = append(replicas, rest[:factor-len(replicas)]...)
		out[i] = livePlacement(img, replicas)
	}
	return out, nil
}
