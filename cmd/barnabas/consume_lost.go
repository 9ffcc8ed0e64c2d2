package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// watch tells on standard error, once, what a reader waits out: a broker that is away,
// a group that can't be joined just now. The client's goroutines call it as its hook,
// so its fields are under mu.
type watch struct {
	w     io.Writer // nil with --quiet
	group string    // "" without one

	mu   sync.Mutex
	away map[int32]bool // brokers that did not take the last connection
	told string         // what was last told of the group
}

func newWatch(w io.Writer, group string, quiet bool) *watch {
	if quiet {
		w = nil
	}
	return &watch{w: w, group: group, away: map[int32]bool{}}
}

func (w *watch) tell(format string, args ...any) {
	if w.w != nil {
		fmt.Fprintf(w.w, format+"\n", args...)
	}
}

// OnBrokerConnect is the client's hook for a connection that was tried. Addresses of
// --broker have ids below 0: what they name is a broker with an id of its own.
func (w *watch) OnBrokerConnect(meta kgo.BrokerMetadata, _ time.Duration, _ net.Conn, err error) {
	if meta.NodeID < 0 || errors.Is(err, context.Canceled) {
		return
	}
	address := net.JoinHostPort(meta.Host, strconv.Itoa(int(meta.Port)))
	w.mu.Lock()
	defer w.mu.Unlock()
	was := w.away[meta.NodeID]
	w.away[meta.NodeID] = err != nil
	switch {
	case err != nil && !was:
		w.tell("The broker at %s is lost (%v): trying again until it is back.", address, rootCause(err))
	case err == nil && was:
		w.tell("The broker at %s is back.", address)
		w.told = ""
	}
}

// waitsOut says whether err goes away by itself, and tells what it is unless a lost
// broker explains it.
func (w *watch) waitsOut(err error) bool {
	if !passes(err) {
		return false
	}
	var session *kgo.ErrGroupSession
	if !errors.As(err, &session) {
		return true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	text := describeFailure("group "+w.group, session.Err, "")
	for _, away := range w.away {
		if away && connectionFailed(err) {
			return true
		}
	}
	if text != w.told {
		w.told = text
		w.tell("%s: trying again.", text)
	}
	return true
}

// rejoined are the errors after which a member joins again, as Kafka's own consumer does.
var rejoined = []error{kerr.UnknownMemberID, kerr.IllegalGeneration, kerr.RebalanceInProgress, kerr.FencedMemberEpoch, kerr.StaleMemberEpoch}

// passes says whether the client gets over err without help. It goes on after every
// error of a group's session; those that only the user can end, such as a refusal, a
// full group or an instance id that another member took, are not to be waited for.
func passes(err error) bool {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || connectionFailed(err) {
		return true
	}
	var k *kerr.Error
	if errors.As(err, &k) {
		for _, r := range rejoined {
			if errors.Is(err, r) {
				return true
			}
		}
		return k.Retriable
	}
	var session *kgo.ErrGroupSession
	return errors.As(err, &session) && !errors.Is(err, kgo.ErrClientClosed)
}

// connectionFailed says whether err is of the network and not a broker's answer.
func connectionFailed(err error) bool {
	var network net.Error
	return errors.As(err, &network) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed)
}

// fetchError is the first error that will not go away by itself.
func (w *watch) fetchError(fetches kgo.Fetches) error {
	for _, e := range fetches.Errors() {
		if w.waitsOut(e.Err) {
			continue
		}
		var session *kgo.ErrGroupSession
		switch {
		case errors.As(e.Err, &session):
			return fmt.Errorf("consume: %s", describeFailure("group "+w.group, session.Err, ""))
		case e.Topic == "":
			return fmt.Errorf("consume: %w", e.Err)
		case e.Partition < 0:
			return fmt.Errorf("consume: %s", describeFailure(e.Topic, e.Err, ""))
		}
		return fmt.Errorf("consume: %s", describeFailure(fmt.Sprintf("%s partition %d", e.Topic, e.Partition), e.Err, ""))
	}
	return nil
}
