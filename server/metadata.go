package server

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/cluster/controller"
	"github.com/barnabas-mq/barnabas/cluster/lifecycle"
	"github.com/barnabas-mq/barnabas/cluster/metadata"
	"github.com/barnabas-mq/barnabas/cluster/quorum"
	"github.com/barnabas-mq/barnabas/server/api"
	"github.com/barnabas-mq/barnabas/server/config"
)

// openMetadata replays the metadata log and begins to decide.
func (n *Node) openMetadata() error {
	snap := n.live.Snapshot()
	n.driver = controller.New(controller.Options{
		NodeID: n.id, ClusterID: n.ident.ClusterID, Rand: n.env.newRand(), Log: n.env.Log,
		Room: n.store.RoomToChange,
		Config: controller.Config{
			NumPartitions:         config.NumPartitions.Get(snap),
			ReplicationFactor:     int16(config.DefaultReplicationFactor.Get(snap)),
			TopicDeletionDisabled: !config.DeleteTopicEnable.Get(snap),
			NodeID:                n.id,
			Features:              api.Features,
			Checker:               config.NewChecker(n.static),
			DescribeTopic:         n.describeTopic,
		},
	})
	end := lifecycle.NewMetadataEnd(n.env.FS, n.store.Dir(), n.env.Log)
	n.onClose("end of the metadata log", quiet(end.Close))
	var err error
	n.quorum, err = quorum.Open(quorum.Options{ID: n.ident.QuorumID, DB: n.db, Machine: n.driver, Log: n.env.Log, Persisted: end.Note})
	if err != nil {
		return err
	}
	n.driver.Start(n.quorum)
	n.onClose("metadata log", func(context.Context) error {
		n.driver.Close()
		n.quorum.Close()
		return nil
	})
	n.images = metadata.NewStore(metadata.New(n.ident.ClusterID))
	return nil
}

// describeTopic is a topic's configuration as CreateTopics echoes it.
func (n *Node) describeTopic(overrides map[string]string) []controller.ConfigEntry {
	entries := n.live.Snapshot().DescribeTopic(overrides)
	list := make([]controller.ConfigEntry, len(entries))
	for i, e := range entries {
		list[i] = controller.ConfigEntry{Name: e.Name, Value: e.Value, ReadOnly: e.ReadOnly, Sensitive: e.Sensitive, Source: int8(e.Source)}
	}
	return list
}

// register makes this broker a member of the cluster, then lets everyone follow
// the metadata. It registers first, so that its partitions start in the leader
// epoch of this start.
func (n *Node) register() error {
	n.incarnate = n.env.newID()
	req := kmsg.NewPtrBrokerRegistrationRequest()
	req.BrokerID, req.ClusterID, req.IncarnationID = n.id, n.ident.ClusterID, n.incarnate
	if rack := config.BrokerRack.Get(n.live.Snapshot()); rack != "" {
		req.Rack = &rack
	}
	for _, l := range n.static.Listeners() {
		e := kmsg.NewBrokerRegistrationRequestListener()
		e.Name, e.Host, e.Port, e.SecurityProtocol = l.Name, l.AdvertisedHost, uint16(l.AdvertisedPort), protocolNumber(l.Protocol)
		req.Listeners = append(req.Listeners, e)
	}
	outcome := make(chan error, 1)
	n.driver.Handle(req, func(resp kmsg.Response, err error) {
		if r, ok := resp.(*kmsg.BrokerRegistrationResponse); ok && err == nil {
			err = kerr.ErrorForCode(r.ErrorCode)
			n.epoch.Store(r.BrokerEpoch)
		}
		outcome <- err
	})
	if err := <-outcome; err != nil {
		return fmt.Errorf("register broker %d: %w", n.id, err)
	}
	n.store.SetBrokerEpoch(n.epoch.Load())
	n.driver.Subscribe(n.live, cleanerConfig{n}, n.replicas, n.groups, n.clientStats, n.images)
	return nil
}

// cleanerConfig tells the data folder what was set about compaction while the
// broker runs.
type cleanerConfig struct{ n *Node }

// OnMetadata implements metadata.Publisher.
func (c cleanerConfig) OnMetadata(d *metadata.Delta, _ *metadata.Image) {
	if len(d.Configs) > 0 {
		c.n.store.ReconfigureCleaner(c.n.cleanerConfig(c.n.live.Snapshot()))
	}
}
