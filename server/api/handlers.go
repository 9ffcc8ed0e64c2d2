package api

import (
	"context"
	"log/slog"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kmsg"
	"golang.org/x/sync/semaphore"

	"github.com/barnabas-mq/barnabas/cluster/metadata"
	"github.com/barnabas-mq/barnabas/internal/clock"
	"github.com/barnabas-mq/barnabas/internal/park"
)

// Handlers holds one small interface per collaborator, so that a handler's test
// needs no socket. Each family's file declares the interface it uses.
type Handlers struct {
	Clock clock.Clock
	Log   *slog.Logger
	// NodeID is this broker's id.
	NodeID int32
	// Image is the newest metadata; read it once per request.
	Image func() *metadata.Image
	// Controller takes the requests that change metadata.
	Controller Controller
	// Configs is the newest configuration, ConfigChecker says what may be set.
	Configs       Configs
	ConfigChecker BrokerConfigChecker
	// LogLevel is the level of the broker's own log, which clients may change.
	LogLevel *slog.LevelVar
	// Partitions are the replicas that this broker holds.
	Partitions Partitions
	// Waits runs requests whose wait is over.
	Waits *park.Pool
	// Sessions are the incremental fetch sessions.
	Sessions *FetchSessions
	// FetchMaxBytes is fetch.max.bytes.
	FetchMaxBytes func() int
	// ProducerIDs hands out producer ids.
	ProducerIDs *ProducerIDs
	// LogDir is the data folder, DirectoryID its id.
	LogDir      LogDir
	DirectoryID [16]byte
	// ClientMetrics takes what clients push; TelemetryMaxBytes is
	// telemetry.max.bytes.
	ClientMetrics     ClientMetrics
	TelemetryMaxBytes int32
	// Quorum is the metadata log.
	Quorum Quorum
	// Resolves says that a host is an address or has one; it may wait for a name
	// server, until ctx is done.
	Resolves func(ctx context.Context, host string) bool
	// AutoCreate is auto.create.topics.enable.
	AutoCreate func() bool
	// Groups coordinates consumer groups.
	Groups Groups
	// Transactions coordinates transactional producers.
	Transactions Transactions
	// InternalTopic is how a coordinator's topic is made.
	InternalTopic func(name string) InternalTopic

	creations    creations
	autoCreating autoCreating
	waiting      waitingCalls
	// table, metrics, heavy, which has a place for each of heavyDecodes, bulky, which
	// has one for a conversion between message formats that may take much memory, cold,
	// which has coldReads, converting, which has oldBytesMax, and answering, which has
	// answeringMax, are set by NewDispatcher.
	table        []API
	metrics      *metrics
	heavy, bulky chan struct{}
	cold         chan struct{}
	converting   *semaphore.Weighted
	answering    *semaphore.Weighted
	// keptBytes is what Call.keep has counted for all calls.
	keptBytes atomic.Int64
}

// Controller decides requests that change metadata.
type Controller interface {
	// Handle decides req and calls done exactly once, on any goroutine, after
	// the decision is committed, published and served by this broker: a topic
	// that was created takes Produce and Fetch when done runs.
	Handle(req kmsg.Request, done func(kmsg.Response, error))
}
