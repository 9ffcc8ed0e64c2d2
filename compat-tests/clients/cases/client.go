package cases

import (
	"context"
	"time"
)

// Record is what was sent to a partition, or came from it.
type Record struct {
	Partition  int32
	Offset     int64
	Key, Value []byte // nil is null
	Headers    []Header
	Time       time.Time // when it is zero the client sends its own
}

// Header is one of a record's headers.
type Header struct {
	Key   string
	Value []byte
}

// Settings are a producer's. The zero value is no compression and acks=all.
type Settings struct {
	Codec      string // "", gzip, snappy, lz4 or zstd
	Acks       string // "", all, 1 or 0
	Idempotent bool
}

// Client is one client library in one version. The topics are there already.
type Client interface {
	// Send sends the records in their order, each to its own partition, and returns when all are acknowledged.
	Send(ctx context.Context, topic string, with Settings, records []Record) error
	// Read gives deliver the records of each of the partitions from its beginning on, until deliver wants no more or ctx
	// is over, which is an error.
	Read(ctx context.Context, topic string, partitions int, level Isolation, deliver func(Record) (more bool)) error
	// Join starts a member of a group, which commits what it has delivered. deliver may be called by several at a time.
	Join(topic, group, assignor string, deliver func(Record)) (Member, error)
	// OffsetAt is the offset of partition 0's first record of that time or later, negative when there is none.
	OffsetAt(ctx context.Context, topic string, at time.Time) (int64, error)
	// Ends are the earliest and the latest offset of partition 0.
	Ends(ctx context.Context, topic string) (earliest, latest int64, err error)
	// Committed is the group's offset of partition 0.
	Committed(ctx context.Context, topic, group string) (int64, error)
}

// Isolation is a reader's isolation level.
type Isolation string

// The isolation levels, by Kafka's names.
const (
	ReadCommitted   Isolation = "read_committed"
	ReadUncommitted Isolation = "read_uncommitted"
)

// Member is a member of a group.
type Member interface {
	// Held is how many partitions the member has now.
	Held() (int, error)
	// Leave commits, leaves, and returns the first error of the member's life.
	Leave() error
}

// Admin is what a client has for the topics, beside reading and writing them.
type Admin interface {
	CreateTopic(ctx context.Context, topic string, partitions int) error
	Partitions(ctx context.Context, topic string) (int, error) // 0 when there is no such topic
	AddPartitions(ctx context.Context, topic string, total int) error
	SetConfig(ctx context.Context, topic, key, value string) error
	Config(ctx context.Context, topic, key string) (string, error)
	DeleteTopic(ctx context.Context, topic string) error
}

// GroupLister is an Admin that can list the groups.
type GroupLister interface {
	Groups(ctx context.Context) ([]string, error)
}

// Transactor is a Client that has transactions.
type Transactor interface {
	Client
	// Transactional makes a producer with a transactional id, which is initialised when it returns. The group's offsets
	// that it may take into a transaction are those of partition 0 of the topic input.
	Transactional(ctx context.Context, id, group, input string) (Transactional, error)
	// Fenced says whether an error tells a producer that another one has its transactional id now.
	Fenced(error) bool
}

// Transactional is a producer with a transactional id.
type Transactional interface {
	Begin() error
	Send(ctx context.Context, topic string, records []Record) error
	// SendOffset makes next the group's offset, with the transaction.
	SendOffset(ctx context.Context, next int64) error
	Commit(ctx context.Context) error
	Abort(ctx context.Context) error
	Close()
}
