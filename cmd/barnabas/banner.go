package main

import (
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/barnabas-mq/barnabas/server"
	"github.com/barnabas-mq/barnabas/server/config"
)

// banner is what people need to know about a broker that has just started.
type banner struct {
	nodeID     int32
	clusterID  string
	listeners  []listenerLine
	data       string
	ephemeral  bool
	durability string
	admin      string
	took       time.Duration
}

// listenerLine is one listener: where it is, and what its clients are told.
type listenerLine struct {
	name, address, told string
}

// label is the listener's name where there are several.
func (l listenerLine) label(b *banner) string {
	if len(b.listeners) == 1 {
		return "Kafka"
	}
	return l.name
}

func bannerOf(node *server.Node, static *config.Static, ephemeral bool, took time.Duration) *banner {
	snap := static.Snapshot()
	b := &banner{
		nodeID: config.NodeID.Get(snap), clusterID: node.ClusterID(), data: snap.DataDir(), ephemeral: ephemeral,
		durability: durability(snap), admin: "off", took: took,
	}
	if full, err := filepath.Abs(b.data); err == nil {
		b.data = full
	}
	if addr := node.AdminAddr(); addr != nil {
		b.admin = "http://" + addr.String()
	}
	addrs := node.Addrs()
	for i, l := range static.Listeners() {
		line := listenerLine{name: l.Name, address: l.Address(), told: "clients are told the address they connect to, those on this machine localhost"}
		if i < len(addrs) {
			line.address = reachable(addrs[i])
		}
		if l.AdvertisedHost != "" {
			line.told = "clients are told " + net.JoinHostPort(l.AdvertisedHost, strconv.Itoa(int(l.AdvertisedPort)))
		}
		if i < len(addrs) && everywhere(addrs[i]) {
			line.told = "every interface; " + line.told
		}
		b.listeners = append(b.listeners, line)
	}
	return b
}

// reachable is how this machine reaches a listener: localhost where it listens
// on every interface.
func reachable(addr net.Addr) string {
	host, port, err := net.SplitHostPort(addr.String())
	if err != nil {
		return addr.String()
	}
	if ip := net.ParseIP(host); ip == nil || ip.IsUnspecified() || ip.IsLoopback() {
		host = "localhost"
	}
	return net.JoinHostPort(host, port)
}

// everywhere says whether a listener is on every interface.
func everywhere(addr net.Addr) bool {
	host, _, err := net.SplitHostPort(addr.String())
	ip := net.ParseIP(host)
	return err == nil && (host == "" || ip != nil && ip.IsUnspecified())
}

// durability says what an acknowledgement means with the settings in force.
func durability(snap *config.Snapshot) string {
	switch messages, ms := config.LogFlushIntervalMessages.Get(snap), config.LogFlushIntervalMs.Get(snap); {
	case messages == 1:
		return "fsync before every acknowledgement"
	case messages != math.MaxInt64:
		return fmt.Sprintf("page cache, flushed after %d records; --fsync flushes before every acknowledgement", messages)
	case ms != math.MaxInt64:
		return fmt.Sprintf("page cache, flushed every %d ms; --fsync flushes before every acknowledgement", ms)
	}
	return "page cache, as Kafka: a crash of the broker loses nothing, one of the machine may; --fsync flushes first"
}

func (b *banner) addresses() []string {
	list := make([]string, len(b.listeners))
	for i, l := range b.listeners {
		list[i] = l.name + "://" + l.address
	}
	return list
}

func (b *banner) print(w io.Writer) {
	p := bannerLines{w}
	p.line("Barnabas %s is ready after %d ms: node %d of cluster %s\n", version, b.took.Milliseconds(), b.nodeID, b.clusterID)
	width := len("Durability")
	for _, l := range b.listeners {
		width = max(width, len(l.label(b)))
	}
	row := func(label, text string) { p.line("  %-*s  %s", width, label, text) }
	for _, l := range b.listeners {
		row(l.label(b), fmt.Sprintf("%s   (%s)", l.address, l.told))
	}
	data := b.data
	if b.ephemeral {
		data += "   (removed at the end)"
	}
	row("Data", data)
	row("Durability", b.durability)
	row("Admin", adminText(b.admin))
	p.line("\nTry it:  %s\n", b.try())
}

func adminText(url string) string {
	if url == "off" {
		return url
	}
	return url + "/metrics, /healthz, /readyz"
}

// try is the one command to begin with.
func (b *banner) try() string {
	to := ""
	if len(b.listeners) > 0 && !strings.EqualFold(b.listeners[0].address, defaultBroker) {
		to = " -b " + b.listeners[0].address
	}
	name := program()
	return fmt.Sprintf("%s produce%s demo hello && %s consume%s demo --exit-at-end", name, to, name, to)
}

// program is how the user starts this program: by its name when that finds it.
func program() string {
	given := os.Args[0]
	name := filepath.Base(given)
	if found, err := exec.LookPath(name); err == nil {
		a, errA := os.Stat(found)
		b, errB := os.Stat(given)
		if errA == nil && errB == nil && os.SameFile(a, b) {
			return name
		}
	}
	return given
}
