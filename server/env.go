package server

import (
	"log/slog"
	"math/rand/v2"

	"github.com/barnabas-mq/barnabas/internal/clock"
	"github.com/barnabas-mq/barnabas/internal/telemetry"
	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// Env is the world that a node lives in. Tests replace each part.
type Env struct {
	Clock clock.Clock
	FS    vfs.FS
	// Random gives 64 random bits; it is safe for concurrent use.
	Random func() uint64
	Log    *slog.Logger
	// LogLevel is the level of Log, which clients may change; nil for none.
	LogLevel *slog.LevelVar
	// Metrics may be nil.
	Metrics *telemetry.Registry
	// Version is the program's version, for logs and metrics.
	Version string
}

// newRand is a generator of its own for one owner.
func (e Env) newRand() *rand.Rand { return rand.New(rand.NewPCG(e.Random(), e.Random())) }

// newID is 16 random bytes as a version 4 UUID has them (RFC 9562).
func (e Env) newID() (id [16]byte) {
	r := e.newRand()
	for i := range id {
		id[i] = byte(r.Uint64())
	}
	id[6] = id[6]&0x0f | 0x40
	id[8] = id[8]&0x3f | 0x80
	return id
}
