package quorum

import (
	"errors"
	"log/slog"

	"github.com/barnabas-mq/barnabas/internal/kv"
)

// NodeID names a member. It is bound to the data folder and never used again
// for another one; 0 is nobody.
type NodeID = uint64

// StateMachine is what the log's entries build. All calls come from one
// goroutine, in log order; an error ends the node, because a state machine that
// missed an entry must not go on.
type StateMachine interface {
	// Apply takes one committed entry.
	Apply(index, term uint64, data []byte) error
	// Snapshot is the whole state after the last applied entry.
	Snapshot() ([]byte, error)
	// Restore replaces the state by that of a snapshot at index.
	Restore(snapshot []byte, index, term uint64) error
	// LeaderChange tells who leads from a term on. self is true only after an
	// entry of this node's own term was applied: the state is then complete.
	LeaderChange(leader NodeID, term uint64, self bool)
}

// Log is the proposer's side.
type Log interface {
	// Propose appends data if this node leads term, and returns once it is
	// committed and applied. ErrNotLeader means that nothing was appended; any
	// other error leaves the outcome open.
	Propose(term uint64, data []byte) (index uint64, err error)
}

// Status describes the log.
type Status struct {
	// Leads says that this node leads in Term.
	Leads bool
	Term  uint64
	// Committed and Last are indexes of entries.
	Committed, Last uint64
}

var (
	// ErrNotLeader says that the node does not lead the given term.
	ErrNotLeader = errors.New("not the leader of this term")
	// ErrClosed says that the node ended before the outcome was known.
	ErrClosed = errors.New("quorum node is closed")
)

const (
	// A snapshot is taken after this much log, so that a restart replays less
	// than about 100 ms of it.
	defaultSnapshotEntries = 10_000
	defaultSnapshotBytes   = 8 << 20
)

// Options is what a node is made of.
type Options struct {
	// ID is this node's; the data folder remembers it.
	ID NodeID
	// DB holds everything under the prefix raft/.
	DB      *kv.DB
	Machine StateMachine
	Log     *slog.Logger
	// Persisted is told, on the node's goroutine, of the last index that is durable
	// after entries were added. It may be nil.
	Persisted func(index uint64)
	// SnapshotEntries and SnapshotBytes override how much log leads to a
	// snapshot; 0 is the default.
	SnapshotEntries, SnapshotBytes int
}
