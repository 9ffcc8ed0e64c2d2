package server

import (
	"fmt"

	"github.com/barnabas-mq/barnabas/server/admin"
	"github.com/barnabas-mq/barnabas/server/config"
)

// adminOff is the value of barnabas.admin.listener that opens none.
const adminOff = "off"

// openAdmin serves health and metrics first, so that a long recovery can be
// watched.
func (n *Node) openAdmin() error {
	addr := config.AdminListener.Get(n.live.Snapshot())
	if addr == adminOff {
		return nil
	}
	var err error
	n.admin, err = admin.Start(admin.Options{Addr: addr, Metrics: n.env.Metrics, Ready: n.notReady, Limits: n.refused, Log: n.env.Log})
	if err != nil {
		return err
	}
	n.onClose("admin listener", n.admin.Shutdown)
	return nil
}

// notReady lists why clients cannot be served now.
func (n *Node) notReady() []string {
	if !n.serving.Load() {
		return []string{"the broker is starting or stopping"}
	}
	var reasons []string
	if err := n.quorum.Err(); err != nil {
		reasons = append(reasons, fmt.Sprintf("metadata log: %v", err))
	}
	if _, ok := n.images.Current().Broker(n.id); !ok {
		reasons = append(reasons, "this broker was unregistered; start it again to register it")
	}
	if err := n.db.Failed(); err != nil {
		reasons = append(reasons, fmt.Sprintf("embedded store: %v", err))
	}
	return reasons
}

// refused lists what the broker refuses though it is ready: readers are served.
func (n *Node) refused() []string {
	snap := n.live.Snapshot()
	if n.serving.Load() && n.store.Full() {
		return []string{fmt.Sprintf("the disk is full: produce requests are refused until more than %d bytes are free in %s",
			config.ReserveBytes.Get(snap), snap.DataDir())}
	}
	return nil
}
