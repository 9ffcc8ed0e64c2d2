package server

import (
	"context"
	"fmt"
	"net/netip"
	"strings"

	"github.com/barnabas-mq/barnabas/server/api"
	"github.com/barnabas-mq/barnabas/server/config"
	"github.com/barnabas-mq/barnabas/server/network"
	"github.com/barnabas-mq/barnabas/storage"
)

// reservedFiles are the open files that are not connections: segments have a
// bound of their own on top of it.
const reservedFiles = 256

// checkListeners makes sure, before anything is made or recovered in the data folder,
// that the listeners can be opened; clients find them when they are served.
func (n *Node) checkListeners() error {
	for _, l := range n.static.Listeners() {
		open, err := network.Listen(l.Address())
		if err != nil {
			return fmt.Errorf("listener %s: %w", l.Name, err)
		}
		if err := open.Close(); err != nil {
			return fmt.Errorf("listener %s: %w", l.Name, err)
		}
	}
	return nil
}

// openListeners serves clients.
func (n *Node) openListeners() error {
	snap := n.live.Snapshot()
	listeners := make([]network.Listener, 0, len(n.static.Listeners()))
	for _, l := range n.static.Listeners() {
		listeners = append(listeners, network.Listener{Name: l.Name, Addr: l.Address(), Protocol: l.Protocol})
	}
	handlers := n.handlers()
	n.net = network.New(network.Options{
		Handler:   api.NewDispatcher(handlers, n.env.Metrics),
		Listeners: listeners, Limits: n.limits(snap), Clock: n.env.Clock, Log: n.env.Log,
		Metrics: n.env.Metrics, Pressure: n.store.Pressure,
	})
	if err := n.net.Start(); err != nil {
		return err
	}
	n.onClose("listeners", func(ctx context.Context) error {
		// Long polls, and members that wait for others of their group, are
		// answered, not waited for.
		n.waits.Drain()
		handlers.Stop()
		return n.net.Shutdown(ctx)
	})
	return nil
}

// limits are the configured limits, clipped to what the process may open.
func (n *Node) limits(snap *config.Snapshot) network.Limits {
	l := snap.NetworkLimits()
	perIP := make(map[netip.Addr]int, len(l.PerIP))
	for text, most := range l.PerIP {
		addr, err := netip.ParseAddr(text)
		if err != nil {
			n.env.Log.Warn("max.connections.per.ip.overrides takes addresses, not names", "name", text)
			continue
		}
		perIP[addr] = most
	}
	nofile, err := network.RaiseNoFile()
	if err != nil {
		n.env.Log.Warn("the limit of open files could not be raised", "limit", nofile, "err", err)
	}
	most := l.MaxConnections
	if nofile > 0 {
		most = network.ClipConnections(most, nofile, int(config.OpenFiles.Get(snap))+reservedFiles)
	}
	return network.Limits{
		RequestMaxBytes: l.MaxRequestBytes, QueuedBytes: l.QueuedRequestBytes,
		MaxConnections: most, MaxConnectionsPerIP: l.MaxConnectionsPerIP, PerIPOverrides: perIP,
		MaxIdle: l.IdleTimeout,
	}
}

// handlers joins the APIs to what answers them.
func (n *Node) handlers() *api.Handlers {
	snap := n.live.Snapshot()
	return &api.Handlers{
		Clock: n.env.Clock, Log: n.env.Log, NodeID: n.id,
		Image: n.images.Current, Controller: n.driver,
		Configs: n.live, ConfigChecker: config.NewChecker(n.static), LogLevel: n.env.LogLevel,
		Partitions: n.replicas, Waits: n.waits,
		Sessions:      api.NewFetchSessions(n.env.Clock, n.env.newRand(), int(config.MaxIncrementalFetchSessionCacheSlots.Get(snap))),
		FetchMaxBytes: func() int { return int(config.FetchMaxBytes.Get(n.live.Snapshot())) },
		ProducerIDs:   n.producerIDs,
		LogDir:        n.store,
		DirectoryID:   n.directoryID(),
		Quorum:        n.quorum,
		Resolves:      network.Resolves,
		AutoCreate:    func() bool { return config.AutoCreateTopicsEnable.Get(n.live.Snapshot()) },
		Groups:        n.groups,
		Transactions:  n.transactions, InternalTopic: n.internalTopic,
		ClientMetrics: n.clientStats, TelemetryMaxBytes: config.TelemetryMaxBytes.Get(snap),
	}
}

// directoryID is the data folder's id.
func (n *Node) directoryID() (id [16]byte) {
	id, _ = storage.ParseID(n.ident.DirectoryID) // lifecycle has read it
	return id
}

// protocolNumbers are Kafka's numbers of the security protocols.
var protocolNumbers = map[string]int16{"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}

func protocolNumber(name string) int16 { return protocolNumbers[strings.ToUpper(name)] }

// quiet ignores the context of a stop that cannot wait anyway.
func quiet(f func() error) func(context.Context) error {
	return func(context.Context) error { return f() }
}
