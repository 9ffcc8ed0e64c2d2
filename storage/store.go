package storage

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/barnabas-mq/barnabas/internal/clock"
	"github.com/barnabas-mq/barnabas/internal/telemetry"
	"github.com/barnabas-mq/barnabas/internal/vfs"
	"github.com/barnabas-mq/barnabas/storage/segment"
)

// Env is what a store needs of the world.
type Env struct {
	FS     vfs.FS
	Clock  clock.Clock
	Logger *slog.Logger
	// Metrics may be nil.
	Metrics *telemetry.Registry
	// Rand gives random numbers for names and jitter; it is safe for concurrent
	// use.
	Rand func() uint64
	// OnOffline is told when a partition goes offline (err says why) and when it
	// is back (err is nil), on a goroutine of its own: Log.Err is the truth. It
	// may be nil.
	OnOffline func(tp TopicPartition, err error)
}

// Region is a range of a segment file, for large reads.
type Region = segment.Region

// The values that stand in for a StoreConfig's zeros.
const (
	defaultFlushBehind     = 256 << 20
	defaultReserve         = 256 << 20
	defaultOpenFiles       = 4096
	defaultMapped          = 64 << 20
	defaultRetentionCheck  = 5 * time.Minute
	defaultCheckpointEvery = time.Minute
	defaultProducerExpiry  = 24 * 60 * 60 * 1000
	defaultTxnMaxTimeout   = 15 * 60 * 1000
	defaultRecoveryThreads = 2
	// healthEvery is how often offline partitions, free space and delayed
	// deletions are looked at.
	healthEvery = time.Second
)

func (c StoreConfig) withDefaults() StoreConfig {
	c.FlushBehindBytes = orDefault(c.FlushBehindBytes, defaultFlushBehind)
	c.ReserveBytes = orDefault(c.ReserveBytes, defaultReserve)
	c.OpenFiles = orDefault(c.OpenFiles, defaultOpenFiles)
	c.MappedBytes = orDefault(c.MappedBytes, defaultMapped)
	c.RetentionCheck = orDefault(c.RetentionCheck, defaultRetentionCheck)
	c.CheckpointEvery = orDefault(c.CheckpointEvery, defaultCheckpointEvery)
	c.ProducerIDExpirationMs = orDefault(c.ProducerIDExpirationMs, defaultProducerExpiry)
	c.TransactionMaxTimeoutMs = orDefault(c.TransactionMaxTimeoutMs, defaultTxnMaxTimeout)
	c.RecoveryThreads = orDefault(c.RecoveryThreads, defaultRecoveryThreads)
	return c
}

// orDefault replaces 0; a negative value means none at all.
func orDefault[T ~int | ~int64](v, standard T) T {
	if v == 0 {
		return standard
	}
	return max(v, 0)
}

// Store is one data directory: it opens the logs in it and does what concerns
// all of them. Its methods are safe for concurrent use.
type Store struct {
	env  Env
	dir  string
	cfg  StoreConfig
	seg  *segment.Env
	lock io.Closer
	// locked is the file that lock is on; gone is closed when the directory does not
	// have it any more.
	locked      fs.FileInfo
	gone        chan struct{}
	removedOnce sync.Once
	metrics     metrics

	// clean says that the last stop was clean; previousEpoch is the broker epoch
	// that it left.
	clean         bool
	previousEpoch int64
	brokerEpoch   atomic.Int64

	// unflushed is the bytes past recovery points over all logs.
	unflushed atomic.Int64
	flushing  atomic.Bool
	room      atomic.Int64 // free bytes above the reserve, as far as known
	roomCheck atomic.Int64 // when that was measured, by Clock.Elapsed
	full      atomic.Bool  // appends were refused for want of room, and the log says so
	slowUntil atomic.Int64 // disk pressure until then, by Clock.Elapsed

	// maintenance is held (its one slot filled) while checkpoints are written.
	maintenance chan struct{}
	// written is what each checkpoint file durably holds; who holds maintenance
	// owns it.
	written    map[string]OffsetCheckpoint
	work       sync.WaitGroup
	spawn      func(func()) // starts a goroutine; tests run the work in their own order
	recovering recoveryQueue
	cleaner    *cleaner

	mu      sync.Mutex
	closed  bool
	logs    map[TopicPartition]*Log
	opening map[TopicPartition]chan struct{} // closed when the log is open
	folders map[string]struct{}              // partition folders found at start and not opened yet
	points  OffsetCheckpoint                 // checkpoints read at start, of logs not opened yet
	marks   OffsetCheckpoint
	starts  OffsetCheckpoint
	cleaned OffsetCheckpoint
	// leftover are partitions without a folder that the checkpoint files may name:
	// what they say is of a topic that is gone.
	leftover map[TopicPartition]struct{}
	// everCleaned says that there is a file of the offsets that compaction has
	// reached.
	everCleaned bool
	timers      []clock.Timer
	later       []removal
}

// removal is a file or folder that is removed when its delay is over.
type removal struct {
	at   time.Time
	path string
}

// Open takes a data directory, which it makes when missing. It reads the
// checkpoints and the list of folders; logs are opened by OpenLog.
func Open(env Env, dir string, cfg StoreConfig) (*Store, error) {
	return openWith(env, dir, cfg, func(f func()) { go f() })
}

func openWith(env Env, dir string, cfg StoreConfig, spawn func(func())) (*Store, error) {
	cfg = cfg.withDefaults()
	s := &Store{
		env: env, dir: dir, cfg: cfg, previousEpoch: -1,
		maintenance: make(chan struct{}, 1), written: map[string]OffsetCheckpoint{},
		spawn: spawn, gone: make(chan struct{}),
		logs: map[TopicPartition]*Log{}, opening: map[TopicPartition]chan struct{}{},
		folders: map[string]struct{}{}, leftover: map[TopicPartition]struct{}{},
	}
	s.brokerEpoch.Store(-1)
	s.seg = &segment.Env{FS: env.FS, Files: segment.NewFiles(env.FS, cfg.OpenFiles), Maps: segment.NewMaps(cfg.MappedBytes), Room: s.roomAhead}
	s.cleaner = newCleaner(s, cfg.Cleaner)
	s.metrics = newMetrics(env.Metrics, s)
	if err := s.open(); err != nil {
		return nil, fmt.Errorf("open data directory %s: %w", dir, err)
	}
	return s, nil
}

func (s *Store) open() error {
	if err := makeDurableDir(s.env.FS, s.dir); err != nil {
		return err
	}
	lock, err := s.env.FS.Lock(s.path(lockFile))
	if errors.Is(err, vfs.ErrLocked) {
		return fmt.Errorf("%w: %w", ErrLocked, err)
	}
	if err != nil {
		return err
	}
	s.lock = lock
	s.locked, err = s.env.FS.Stat(s.path(lockFile))
	if err == nil {
		err = s.inspect()
	}
	if err != nil {
		return errors.Join(err, lock.Close())
	}
	s.startTimers()
	return nil
}

func (s *Store) path(name string) string { return filepath.Join(s.dir, name) }

// inspect reads everything at the top of the directory.
func (s *Store) inspect() error {
	if meta, err := s.MetaProperties(); err == nil && meta.Version > metaPropertiesVersion {
		return fmt.Errorf("%w: %s has version %d", ErrNewerFormat, metaPropertiesFile, meta.Version)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	s.points = s.readCheckpoint(recoveryPointFile)
	s.marks = s.readCheckpoint(highWatermarkFile)
	s.starts = s.readCheckpoint(logStartFile)
	s.cleaned = s.readCheckpoint(cleanedFile)
	s.everCleaned = len(s.cleaned) > 0
	if err := s.takeCleanShutdown(); err != nil {
		return err
	}
	entries, err := s.env.FS.ReadDir(s.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		s.inspectEntry(e)
	}
	s.noteLeftovers()
	s.measureRoom()
	return nil
}

func (s *Store) inspectEntry(e fs.DirEntry) {
	if !e.IsDir() {
		return
	}
	switch kind, _ := parseFolder(e.Name()); kind {
	case folderPartition:
		s.folders[e.Name()] = struct{}{}
	case folderDeleted:
		s.later = append(s.later, removal{at: s.env.Clock.Now(), path: s.path(e.Name())})
	}
}

// noteLeftovers finds what the checkpoints name without there being a folder.
func (s *Store) noteLeftovers() {
	for _, c := range []OffsetCheckpoint{s.points, s.marks, s.starts, s.cleaned} {
		for tp := range c {
			if _, found := s.folders[tp.String()]; !found {
				s.leftover[tp] = struct{}{}
			}
		}
	}
}

// takeCleanShutdown reads and removes the mark of a clean stop. The removal must
// be durable before anything is written: a mark that a crash brought back would
// hide that crash.
func (s *Store) takeCleanShutdown() error {
	name := s.path(cleanShutdownFile)
	b, err := readFile(s.env.FS, name)
	if errors.Is(err, fs.ErrNotExist) {
		// The last start may have removed it without getting as far as this.
		return s.env.FS.SyncDir(s.dir)
	}
	if err != nil {
		return err
	}
	s.clean = true
	if s.previousEpoch, err = ParseCleanShutdown(b); err != nil {
		s.env.Logger.Warn("the mark of a clean stop is unreadable, all logs are recovered", "file", name, "err", err)
		s.clean = false
	}
	if err := s.env.FS.Remove(name); err != nil {
		return err
	}
	return s.env.FS.SyncDir(s.dir)
}

// readCheckpoint reads a checkpoint. One that is damaged is set aside and counts
// as empty: the logs hold all that is needed to do without.
func (s *Store) readCheckpoint(name string) OffsetCheckpoint {
	path := s.path(name)
	b, err := readFile(s.env.FS, path)
	if errors.Is(err, fs.ErrNotExist) {
		return OffsetCheckpoint{}
	}
	var c OffsetCheckpoint
	if err == nil {
		c, err = ParseOffsetCheckpoint(b)
	}
	if err == nil {
		return c
	}
	setAside := s.env.FS.Rename(path, path+segment.CorruptSuffix)
	s.env.Logger.Error("a checkpoint is unreadable; the logs are scanned instead", "file", path, "err", err, "setAside", setAside == nil)
	return OffsetCheckpoint{}
}

// CleanStart says that the last stop was clean, so nothing needs recovery.
func (s *Store) CleanStart() bool { return s.clean }

// PreviousBrokerEpoch is the broker epoch that the last clean stop left, -1
// after an unclean one (KIP-966).
func (s *Store) PreviousBrokerEpoch() int64 { return s.previousEpoch }

// SetBrokerEpoch is noted in the mark of a clean stop.
func (s *Store) SetBrokerEpoch(epoch int64) { s.brokerEpoch.Store(epoch) }

// Dir is the data directory.
func (s *Store) Dir() string { return s.dir }

// MetaProperties reads meta.properties; fs.ErrNotExist in a new directory.
func (s *Store) MetaProperties() (MetaProperties, error) {
	b, err := readFile(s.env.FS, s.path(metaPropertiesFile))
	if err != nil {
		return MetaProperties{}, err
	}
	m, err := ParseMetaProperties(b)
	if err != nil {
		return m, fmt.Errorf("%s: %w", s.path(metaPropertiesFile), err)
	}
	return m, nil
}

// SetMetaProperties writes meta.properties.
func (s *Store) SetMetaProperties(m MetaProperties) error {
	m.Version = metaPropertiesVersion
	return replaceFile(s.env.FS, s.path(metaPropertiesFile), m.Encode())
}

// Log is an opened log.
func (s *Store) Log(tp TopicPartition) (*Log, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l, ok := s.logs[tp]
	return l, ok
}

// Logs are the opened logs, in no order.
func (s *Store) Logs() []*Log {
	s.mu.Lock()
	defer s.mu.Unlock()
	logs := make([]*Log, 0, len(s.logs))
	for _, l := range s.logs {
		logs = append(logs, l)
	}
	return logs
}

// Sizes are the sizes of the opened logs in bytes; a log whose size can't be
// read is left out.
func (s *Store) Sizes() map[TopicPartition]int64 {
	sizes := map[TopicPartition]int64{}
	for _, l := range s.Logs() {
		if n, err := l.SizeBytes(); err == nil {
			sizes[l.tp] = n
		}
	}
	return sizes
}

// Usage is the space of the directory's file system.
func (s *Store) Usage() (freeBytes, totalBytes uint64, err error) { return s.env.FS.Usage(s.dir) }

// Close stops cleanly: every log is flushed, the checkpoints and the mark of a
// clean stop are written. After an error the next start recovers, what was flushed
// quickly.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	timers := s.timers
	s.timers = nil
	s.mu.Unlock()
	for _, t := range timers {
		t.Stop()
	}
	s.recovering.stop()
	s.cleaner.close()
	s.work.Wait()
	err := s.closeLogs()
	s.recovering.tell(s.env, true)
	if err == nil && !s.clean {
		// Folders that nobody opened were not recovered: the next start must not
		// take their recovery points for their ends.
		s.mu.Lock()
		s.points, s.starts = OffsetCheckpoint{}, OffsetCheckpoint{}
		s.mu.Unlock()
	}
	err = errors.Join(err, s.writeCheckpoints())
	if err == nil {
		err = replaceFile(s.env.FS, s.path(cleanShutdownFile), encodeCleanShutdown(s.brokerEpoch.Load()))
	}
	s.seg.Files.CloseAll()
	if err := errors.Join(err, s.lock.Close()); err != nil {
		return fmt.Errorf("close data directory %s: %w", s.dir, err)
	}
	return nil
}

// closeLogs flushes in parallel: a stop with thousands of partitions waits for
// many fsyncs.
func (s *Store) closeLogs() error {
	logs := s.Logs()
	jobs := make(chan *Log, len(logs))
	for _, l := range logs {
		jobs <- l
	}
	close(jobs)
	workers := min(len(logs), closeWorkers)
	errs := make(chan error, workers)
	for range workers {
		go func() {
			var err error
			for l := range jobs {
				err = errors.Join(err, l.close())
			}
			errs <- err
		}()
	}
	var err error
	for range workers {
		err = errors.Join(err, <-errs)
	}
	return err
}

// closeWorkers bounds the fsyncs in flight at a stop: measured, sixteen files at
// once reach three times the rate of one.
const closeWorkers = 16

// goWork runs f in a goroutine that Close waits for; false when the store is
// closed already.
func (s *Store) goWork(f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.work.Add(1)
	s.spawn(func() {
		defer s.work.Done()
		f()
	})
	return true
}
