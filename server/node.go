package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"

	"github.com/barnabas-mq/barnabas/cluster/controller"
	"github.com/barnabas-mq/barnabas/cluster/lifecycle"
	"github.com/barnabas-mq/barnabas/cluster/metadata"
	"github.com/barnabas-mq/barnabas/cluster/quorum"
	"github.com/barnabas-mq/barnabas/cluster/replica"
	"github.com/barnabas-mq/barnabas/coordinator/group"
	"github.com/barnabas-mq/barnabas/coordinator/txn"
	"github.com/barnabas-mq/barnabas/internal/kv"
	"github.com/barnabas-mq/barnabas/internal/park"
	"github.com/barnabas-mq/barnabas/server/admin"
	"github.com/barnabas-mq/barnabas/server/api"
	"github.com/barnabas-mq/barnabas/server/clientmetrics"
	"github.com/barnabas-mq/barnabas/server/config"
	"github.com/barnabas-mq/barnabas/server/network"
	"github.com/barnabas-mq/barnabas/storage"
)

// Node is one running broker. Its fields are set while it starts and do not
// change after that.
type Node struct {
	env    Env
	static *config.Static
	// offline says that the node serves nobody.
	offline bool
	id      int32
	ident   lifecycle.Identity

	live      *config.Live
	store     *storage.Store
	db        *kv.DB
	driver    *controller.Driver
	quorum    *quorum.Node
	images    *metadata.Store
	incarnate [16]byte
	epoch     atomic.Int64 // the broker epoch of this start

	waits, reads *park.Pool
	replicas     *replica.Manager
	groups       *group.Coordinator
	transactions *txn.Coordinator
	producerIDs  *api.ProducerIDs
	clientStats  *clientmetrics.Manager
	net          *network.Server
	admin        *admin.Server

	// serving says that the listeners are open and nothing stops yet.
	serving atomic.Bool
	// closers undo the steps of the start, last first.
	closers []closer
}

// closer undoes one step of the start.
type closer struct {
	what string
	do   func(context.Context) error
}

// Start opens the data folder and serves. On an error nothing is left open.
func Start(env Env, static *config.Static) (*Node, error) {
	n := &Node{env: env, static: static, live: config.NewLive(static)}
	n.id = config.NodeID.Get(n.live.Snapshot())
	for _, step := range []func() error{
		n.openAdmin, n.checkListeners, n.openFolder, n.openMetadata, n.settleStrays, n.openPartitions, n.register, n.openListeners, n.openRest,
	} {
		if err := step(); err != nil {
			return nil, errors.Join(n.adviseFull(err), n.close(context.Background()))
		}
	}
	n.serving.Store(true)
	return n, nil
}

// Stop refuses new work, finishes what was accepted until ctx ends, and leaves
// the data folder cleanly closed.
func (n *Node) Stop(ctx context.Context) error {
	n.serving.Store(false)
	return n.close(ctx)
}

// Failed is closed when the node cannot go on: its metadata log has failed.
func (n *Node) Failed() <-chan struct{} { return n.quorum.Done() }

// FolderRemoved is closed when the data folder was removed under the node: nothing
// that it acknowledges is kept any more.
func (n *Node) FolderRemoved() <-chan struct{} { return n.store.Removed() }

// Err is why the node failed.
func (n *Node) Err() error { return n.adviseFull(n.quorum.Err()) }

// Addrs are the addresses of the listeners, in the order of the configuration.
func (n *Node) Addrs() []net.Addr { return n.net.Addrs() }

// AdminAddr is the address of the admin server, nil when it is off.
func (n *Node) AdminAddr() net.Addr {
	if n.admin == nil {
		return nil
	}
	return n.admin.Addr()
}

// ClusterID is Kafka's 22-character id of the cluster.
func (n *Node) ClusterID() string { return n.ident.ClusterID }

// onClose remembers how to undo a step.
func (n *Node) onClose(what string, do func(context.Context) error) {
	n.closers = append(n.closers, closer{what, do})
}

// close undoes the steps of the start, last first, whatever fails.
func (n *Node) close(ctx context.Context) error {
	var errs []error
	for i := len(n.closers) - 1; i >= 0; i-- {
		c := n.closers[i]
		if err := c.do(ctx); err != nil {
			errs = append(errs, fmt.Errorf("close %s: %w", c.what, err))
		}
	}
	n.closers = nil
	return errors.Join(errs...)
}
