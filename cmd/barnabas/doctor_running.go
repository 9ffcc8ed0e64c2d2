package main

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	// slowAnswer is a round trip on one machine that deserves a word.
	slowAnswer = 100 * time.Millisecond
	// lowDisk is the free space that deserves a word; the broker refuses appends
	// at barnabas.storage.reserve.bytes.
	lowDiskBytes = 1 << 30
)

// running examines a broker that answers.
func (e *examination) running(ctx context.Context, client *kgo.Client) {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	adm := kadm.NewClient(client)
	started := time.Now()
	m, err := adm.Metadata(ctx)
	if err != nil {
		e.bad("metadata", "look at the broker's log", "the broker does not answer: %v", err)
		return
	}
	if took := time.Since(started); took > slowAnswer {
		e.note("answer", "the machine or the disk is busy; /metrics shows the request times", "took %v", took.Round(time.Millisecond))
	} else {
		e.ok("answer", "in %v", took.Round(100*time.Microsecond))
	}
	reached := e.addresses(m)
	e.leaders(m)
	if !reached {
		e.note("disk", "", "not looked at: that is asked at the address above")
		return
	}
	e.disks(ctx, adm)
}

// addresses dials what the broker told this client, the most common fault of all, and
// says whether all of it can be reached.
func (e *examination) addresses(m kadm.Metadata) (reached bool) {
	reached = true
	if len(m.Brokers) == 0 {
		e.bad("address", "look at advertised.listeners", "the broker names no broker at all")
	}
	for _, b := range m.Brokers {
		address := net.JoinHostPort(b.Host, strconv.Itoa(int(b.Port)))
		conn, err := net.DialTimeout("tcp", address, 3*time.Second)
		if err != nil {
			reached = false
			e.bad("address", advertiseHint,
				"clients here are told that broker %d is at %s, and cannot reach it: %v", b.NodeID, address, rootCause(err))
			continue
		}
		_ = conn.Close()
		e.ok("address", "broker %d is told to clients here as %s, which works", b.NodeID, address)
	}
	if m.Controller < 0 {
		e.bad("controller", "look at the broker's log", "there is no active controller, so topics cannot be created or changed")
	}
	return reached
}

func (e *examination) leaders(m kadm.Metadata) {
	var partitions, without int
	var first string
	for _, t := range m.Topics.Sorted() {
		for _, p := range t.Partitions.Sorted() {
			partitions++
			if p.Leader < 0 || p.Err != nil {
				without++
				if first == "" {
					first = fmt.Sprintf("%s-%d", t.Topic, p.Partition)
				}
			}
		}
	}
	if without > 0 {
		e.bad("partitions", "look at the broker's log for the partition's name", "%d of %d cannot be used, %s first", without, partitions, first)
		return
	}
	e.ok("partitions", "%s of %s, all with a leader", plural(partitions, "partition"), plural(len(m.Topics), "topic"))
}

func (e *examination) disks(ctx context.Context, adm *kadm.Client) {
	dirs, err := adm.DescribeAllLogDirs(ctx, nil)
	if err != nil {
		e.bad("disk", "look at the broker's log", "the broker does not describe its data folder: %v", err)
		return
	}
	for node, list := range dirs {
		for _, d := range list {
			switch {
			case d.Err != nil:
				e.bad("disk", "look at the broker's log", "broker %d: %s: %v", node, d.Dir, d.Err)
			case d.UsableBytes >= 0 && d.UsableBytes < lowDiskBytes:
				e.note("disk", "make room, or lower retention.ms or retention.bytes", "broker %d: %s has only %s free", node, d.Dir, sizeText(d.UsableBytes))
			default:
				e.ok("disk", "broker %d: %s holds %s, %s free", node, d.Dir, sizeText(d.Size()), sizeText(d.UsableBytes))
			}
		}
	}
}
