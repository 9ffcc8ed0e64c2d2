package api

import (
	"log/slog"
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/cluster/metadata"
	"github.com/barnabas-mq/barnabas/internal/clock"
	"github.com/barnabas-mq/barnabas/internal/park"
	"github.com/barnabas-mq/barnabas/storage"
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
	// Waits runs requests whose wait is over, Reads fetches that may have to
	// wait for the disk.
	Waits, Reads *park.Pool
	// Sessions are the incremental fetch sessions.
	Sessions *FetchSessions
	// FetchMaxBytes is fetch.max.bytes.
	FetchMaxBytes func() int
	// ProducerIDs hands out producer ids.
	ProducerIDs *ProducerIDs
	// LogDir is the data folder.
	LogDir LogDir
	// AutoCreate is auto.create.topics.enable.
	AutoCreate func() bool
	// Groups coordinates consumer groups.
	Groups Groups
	// OffsetsTopic is how the groups' internal topic is made.
	OffsetsTopic func() OffsetsTopic
	// Transactions coordinates transactional producers; nil where there is no
	// coordinator.
	Transactions Transactions
	// AddPartitionsRetry is how a Produce asks it again.
	AddPartitionsRetry func() AddPartitionsRetry

	offsetsTopic      onceMaker
	transactionsAsked sync.Once
	// table, metrics and heavy, which has a place for each of heavyDecodes, are set
	// by NewDispatcher.
	table   []API
	metrics *metrics
	heavy   chan struct{}
}

// Transactions coordinates the transactional ids whose partitions this broker
// leads. Each method calls done exactly once, on any goroutine, maybe before it
// returns.
type Transactions interface {
	// VerifyOrAdd asks whether partitions are part of the transaction that a
	// producer has open (KIP-890). With add, those that are not become part of it,
	// and a transaction begins where none is open; done then waits until the log
	// has that. done gets an entry for every partition, nil where the append may go
	// on. The codes are the coordinator's: TRANSACTION_ABORTABLE where a partition is
	// not part of the transaction, CONCURRENT_TRANSACTIONS while an earlier one
	// ends, PRODUCER_FENCED, INVALID_PRODUCER_ID_MAPPING, and NOT_COORDINATOR,
	// COORDINATOR_NOT_AVAILABLE or COORDINATOR_LOAD_IN_PROGRESS for all of them
	// where nobody can tell. What a producer shall see of them is the caller's.
	VerifyOrAdd(transactionalID string, producerID int64, epoch int16, partitions []storage.TopicPartition, add bool, done func(map[storage.TopicPartition]*kerr.Error))
}

// Controller decides requests that change metadata.
type Controller interface {
	// Handle decides req and calls done exactly once, on any goroutine, after
	// the decision is committed, published and served by this broker: a topic
	// that was created takes Produce and Fetch when done runs.
	Handle(req kmsg.Request, done func(kmsg.Response, error))
}
