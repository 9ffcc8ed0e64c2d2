package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/cluster/controller"
	"github.com/barnabas-mq/barnabas/cluster/lifecycle"
	"github.com/barnabas-mq/barnabas/cluster/metadata"
	"github.com/barnabas-mq/barnabas/cluster/quorum"
	"github.com/barnabas-mq/barnabas/coordinator/group"
	"github.com/barnabas-mq/barnabas/internal/kv"
	"github.com/barnabas-mq/barnabas/server/config"
	"github.com/barnabas-mq/barnabas/storage"
)

// Offline is a node that serves nobody: a command's way to change a stopped
// broker's data through the same paths as a running one.
type Offline struct {
	topicRules
	n *Node
}

// topicRules are what a configuration says of topics.
type topicRules struct {
	live  *config.Live
	check *config.Checker
	env   Env
}

// CheckTopicConfig checks one setting of a topic.
func (r topicRules) CheckTopicConfig(name, value string) error {
	return r.check.CheckTopic(name, value)
}

// CheckTopicConfigs checks all that would be set on a topic.
func (r topicRules) CheckTopicConfigs(all map[string]string) error {
	return r.check.CheckTopicConfigs(all)
}

// LogConfig is what settings of a topic mean for its partitions.
func (r topicRules) LogConfig(configs map[string]string) storage.LogConfig {
	return r.live.Snapshot().LogConfig(configs)
}

// NowMs is the time.
func (r topicRules) NowMs() int64 { return r.env.Clock.Now().UnixMilli() }

// OpenOffline opens the data folder as Start does, but for everything that others
// could reach, and for what removes data by itself.
func OpenOffline(env Env, static *config.Static) (*Offline, error) {
	n := &Node{env: env, static: static, live: config.NewLive(static), offline: true}
	n.id = config.NodeID.Get(n.live.Snapshot())
	for _, step := range []func() error{n.openFolder, n.openMetadata, n.settleStrays, n.openPartitions, n.register} {
		if err := step(); err != nil {
			return nil, errors.Join(err, n.close(context.Background()))
		}
	}
	return &Offline{topicRules{n.live, config.NewChecker(static), env}, n}, nil
}

// Close leaves the folder cleanly closed.
func (o *Offline) Close(ctx context.Context) error { return o.n.close(ctx) }

// Dir is the data folder.
func (o *Offline) Dir() string { return o.n.store.Dir() }

// Image is the metadata.
func (o *Offline) Image() *metadata.Image { return o.n.driver.Image() }

// Strays are the partitions' folders that no topic has; DiscardStray removes one.
func (o *Offline) Strays() []storage.Stray { return o.n.strays() }

// DiscardStray removes the folder of a partition that no topic has.
func (o *Offline) DiscardStray(s storage.Stray) error { return o.n.store.DiscardStray(s) }

// Adopt takes partitions' folders over; their topic follows.
func (o *Offline) Adopt(list []storage.Adoption) error { return o.n.store.Adopt(list) }

// ImportTopic adds a topic whose partitions were adopted. What was written of
// groups' offsets is durable before that.
func (o *Offline) ImportTopic(t controller.ImportedTopic) error {
	for _, l := range o.n.store.Logs() {
		if l.TopicPartition().Topic != group.Topic {
			continue
		}
		if err := l.Flush(); err != nil {
			return err
		}
	}
	t.Broker = o.n.id
	outcome := make(chan error, 1)
	o.n.driver.ImportTopic(t, func(err error) { outcome <- err })
	return <-outcome
}

// ImportOffsets writes a group's offsets. The groups' topic is made when there is
// none.
func (o *Offline) ImportOffsets(e group.Exported) error {
	if o.n.partitionsOf(group.Topic) == 0 {
		if err := o.makeOffsetsTopic(); err != nil {
			return fmt.Errorf("make topic %s: %w", group.Topic, err)
		}
	}
	outcome := make(chan error, 1)
	o.n.groups.ImportOffsets(e, func(err error) { outcome <- err })
	return <-outcome
}

// makeOffsetsTopic makes the groups' topic as its first use does.
func (o *Offline) makeOffsetsTopic() error {
	made := o.n.internalTopic(group.Topic)
	return o.makeTopic(group.Topic, made.Partitions, made.Configs)
}

func (o *Offline) makeTopic(name string, partitions int32, configs [][2]string) error {
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic, t.NumPartitions, t.ReplicationFactor = name, partitions, 1
	for _, c := range configs {
		tc := kmsg.NewCreateTopicsRequestTopicConfig()
		tc.Name, tc.Value = c[0], &c[1]
		t.Configs = append(t.Configs, tc)
	}
	req := kmsg.NewPtrCreateTopicsRequest()
	req.Version = req.MaxVersion()
	req.Topics = append(req.Topics, t)
	outcome := make(chan error, 1)
	o.n.driver.Handle(req, func(resp kmsg.Response, err error) {
		if r, ok := resp.(*kmsg.CreateTopicsResponse); ok && err == nil {
			err = kerr.ErrorForCode(r.Topics[0].ErrorCode)
		}
		outcome <- err
	})
	return <-outcome
}

// View is what a node's data folder would take, looked at without a change.
type View struct {
	topicRules
	img *metadata.Image
	dir string
}

// Look reads the metadata of a stopped broker's data folder, which need not be
// there yet.
func Look(env Env, static *config.Static) (*View, error) {
	v := &View{topicRules: topicRules{config.NewLive(static), config.NewChecker(static), env}}
	snap := v.live.Snapshot()
	var err error
	if v.dir, err = filepath.Abs(snap.DataDir()); err != nil {
		return nil, err
	}
	id := config.NodeID.Get(snap)
	ident, founded, err := lifecycle.Check(env.FS, v.dir, lifecycle.Wanted{ClusterID: config.ClusterID.Get(snap), NodeID: &id})
	if err != nil {
		return nil, err
	}
	v.img = metadata.New(ident.ClusterID)
	if !founded {
		return v, nil
	}
	img, err := readImage(env, v.dir, ident)
	switch {
	case errors.Is(err, fs.ErrNotExist): // a first start that was interrupted
		return v, nil
	case err != nil:
		return nil, err
	}
	v.img = img
	return v, nil
}

// readImage replays the metadata log without changing it.
func readImage(env Env, dir string, ident lifecycle.Identity) (*metadata.Image, error) {
	if err := checkMetadataEnd(env, dir); err != nil {
		return nil, err
	}
	db, err := kv.OpenReadOnly(env.FS, lifecycle.StoreDir(dir), env.Log)
	if err != nil {
		return nil, inUse(dir, err)
	}
	d := controller.New(controller.Options{NodeID: ident.NodeID, ClusterID: ident.ClusterID, Rand: env.newRand(), Log: env.Log})
	err = quorum.Visit(db,
		func(data []byte, index, term uint64) error {
			if len(data) == 0 {
				return nil
			}
			return d.Restore(data, index, term)
		},
		func(index, term uint64, _ bool, data []byte) error { return d.Apply(index, term, data) })
	return d.Image(), errors.Join(err, db.Close())
}

// Image is the metadata.
func (v *View) Image() *metadata.Image { return v.img }

// Dir is the data folder.
func (v *View) Dir() string { return v.dir }
