package main

import (
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// A reader ends with an error that only its user can do something about, and with no
// other: of a group's session everything comes as one type of error.
func TestWhatAReaderWaitsOut(t *testing.T) {
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	for _, c := range []struct {
		err    error
		passes bool
		ends   string
	}{
		{err: &kgo.ErrGroupSession{Err: fmt.Errorf("unable to dial: %w", refused)}, passes: true},
		{err: &kgo.ErrGroupSession{Err: io.EOF}, passes: true},
		{err: &kgo.ErrGroupSession{Err: kerr.CoordinatorLoadInProgress}, passes: true},
		{err: &kgo.ErrGroupSession{Err: kerr.NotCoordinator}, passes: true},
		{err: &kgo.ErrGroupSession{Err: kerr.UnknownMemberID}, passes: true},
		{err: &kgo.ErrGroupSession{Err: kerr.IllegalGeneration}, passes: true},
		{err: fmt.Errorf("unable to dial: %w", refused), passes: true},
		{err: &kgo.ErrGroupSession{Err: kerr.GroupAuthorizationFailed}, ends: "consume: group readers: GROUP_AUTHORIZATION_FAILED ("},
		{err: &kgo.ErrGroupSession{Err: kerr.GroupMaxSizeReached}, ends: "consume: group readers: GROUP_MAX_SIZE_REACHED ("},
		{err: &kgo.ErrGroupSession{Err: kerr.FencedInstanceID}, ends: "consume: group readers: FENCED_INSTANCE_ID ("},
		{err: &kgo.ErrGroupSession{Err: kerr.UnsupportedVersion}, ends: "consume: group readers: UNSUPPORTED_VERSION ("},
		{err: &kgo.ErrGroupSession{Err: kerr.InconsistentGroupProtocol}, ends: "consume: group readers: INCONSISTENT_GROUP_PROTOCOL ("},
		{err: kerr.TopicAuthorizationFailed, ends: "consume: TOPIC_AUTHORIZATION_FAILED"},
	} {
		w := newWatch(nil, "readers", true)
		err := w.fetchError(kgo.NewErrFetch(c.err))
		if c.passes != (err == nil) || !c.passes && !strings.HasPrefix(err.Error(), c.ends) {
			t.Errorf("%v: %v, want %q", c.err, err, c.ends)
		}
	}
}

// What is waited out is told once, and again when it comes again.
func TestWatchTellsOnce(t *testing.T) {
	var out strings.Builder
	w := newWatch(&out, "readers", false)
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	broker := kgo.BrokerMetadata{NodeID: 1, Host: "localhost", Port: 9092}
	for range 2 {
		w.OnBrokerConnect(broker, 0, nil, nil)
		for range 2 {
			w.OnBrokerConnect(broker, 0, nil, fmt.Errorf("unable to dial: %w", refused))
			w.OnBrokerConnect(kgo.BrokerMetadata{NodeID: -1}, 0, nil, refused)
			w.fetchError(kgo.NewErrFetch(&kgo.ErrGroupSession{Err: refused})) //nolint:errcheck // what is told counts
		}
	}
	w.OnBrokerConnect(broker, 0, nil, nil)
	for range 2 {
		w.fetchError(kgo.NewErrFetch(&kgo.ErrGroupSession{Err: kerr.CoordinatorLoadInProgress})) //nolint:errcheck // what is told counts
	}
	lost := "The broker at localhost:9092 is lost (dial tcp: connection refused): trying again until it is back.\n"
	back := "The broker at localhost:9092 is back.\n"
	if got := out.String(); !strings.HasPrefix(got, lost+back+lost+back+"group readers: COORDINATOR_LOAD_IN_PROGRESS (") || strings.Count(got, "\n") != 5 {
		t.Errorf("told %q", got)
	}
}
