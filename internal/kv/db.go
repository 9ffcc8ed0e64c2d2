package kv

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs/atomicfs"

	"github.com/barnabas-mq/barnabas/internal/vfs"
)

const (
	// memTableBytes and cacheBytes are small because what is written is read
	// back only at start and when a coordinator loads.
	memTableBytes = 1 << 20
	cacheBytes    = 1 << 20
	// openFiles bounds the open sstables: 2 MiB and more each.
	openFiles = 64
)

var (
	// ErrClosed answers calls after Close.
	ErrClosed = errors.New("store is closed")
	// ErrCorrupt says that stored bytes are damaged. What can be rebuilt from
	// elsewhere is dropped with a Delete of its whole range, then written anew.
	ErrCorrupt = errors.New("stored bytes are damaged")
)

// DB is one ordered store of keys and values. It is safe for concurrent use.
//
// An error of the disk, or one that pebble would end the process for, fails only
// the store: the goroutine that met it stops for good, callers get the error, and
// no operation touches the disk any more. That is why every operation runs on a
// goroutine of its own that its caller may give up on.
type DB struct {
	dir    string
	fs     *adapter
	pebble *pebble.DB
	log    *slog.Logger

	failed   chan struct{}
	failOnce sync.Once
	failErr  error

	// calls guards against closing pebble under a running operation.
	calls  sync.RWMutex
	closed bool
}

// Open opens the store in dir, which is made when missing.
func Open(fs vfs.FS, dir string, log *slog.Logger) (*DB, error) {
	d := &DB{dir: dir, log: log, failed: make(chan struct{})}
	d.fs = &adapter{fs: fs, fail: d.fail}
	err := d.do(func() (err error) {
		if err := prepare(d.fs, dir); err != nil {
			return err
		}
		d.pebble, err = pebble.Open(dir, d.options())
		return err
	})
	if err != nil {
		d.fs.stop()
		return nil, fmt.Errorf("open store %s: %w", dir, d.name(err))
	}
	return d, nil
}

// OpenReadOnly opens a store that is there, and leaves its files as they are;
// fs.ErrNotExist without one.
func OpenReadOnly(fsys vfs.FS, dir string, log *slog.Logger) (*DB, error) {
	d := &DB{dir: dir, log: log, failed: make(chan struct{})}
	d.fs = &adapter{fs: fsys, fail: d.fail}
	err := d.do(func() (err error) {
		names, err := d.fs.List(dir)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, "marker.manifest.") }) {
			return fs.ErrNotExist
		}
		opts := d.options()
		opts.ReadOnly = true
		d.pebble, err = pebble.Open(dir, opts)
		return err
	})
	if err != nil {
		d.fs.stop()
		return nil, fmt.Errorf("open store %s to read: %w", dir, d.name(err))
	}
	return d, nil
}

// prepare looks at the folder before pebble does. A new store is marked with the
// format it gets, or pebble would make the oldest one and raise it version by
// version, with an fsync each (5 ms). A folder that has data but no longer says
// which manifest is its own would be taken for a new one.
func prepare(fs *adapter, dir string) error {
	if err := vfs.MkdirAllSync(fs.fs, dir, dirPerm); err != nil {
		return err
	}
	names, err := fs.List(dir)
	if err != nil {
		return err
	}
	var hasData, hasManifest, hasFormat bool
	for _, name := range names {
		hasData = hasData || strings.HasSuffix(name, ".sst") || strings.HasSuffix(name, ".log")
		hasManifest = hasManifest || strings.HasPrefix(name, "marker.manifest.")
		hasFormat = hasFormat || strings.HasPrefix(name, "marker.format-version.")
	}
	if hasData && !hasManifest {
		return fmt.Errorf("%w: the manifest's marker is missing", ErrCorrupt)
	}
	if hasManifest || hasFormat {
		return nil
	}
	marker, _, err := atomicfs.LocateMarkerInListing(fs, dir, "format-version", names)
	if err != nil {
		return err
	}
	return errors.Join(marker.Move(pebble.FormatNewest.String()), marker.Close())
}

func (d *DB) options() *pebble.Options {
	opts := &pebble.Options{
		FS:                          d.fs,
		Logger:                      logger{d},
		CacheSize:                   cacheBytes,
		MemTableSize:                memTableBytes,
		MemTableStopWritesThreshold: 4,
		MaxOpenFiles:                openFiles,
		FormatMajorVersion:          pebble.FormatNewest,
		DisableTableStats:           true,
		EventListener: &pebble.EventListener{
			BackgroundError: func(err error) {
				d.log.Warn("store: background work failed", "dir", d.dir, "err", err)
			},
			DataCorruption: func(info pebble.DataCorruptionInfo) {
				d.log.Error("store: a file is damaged", "path", info.Path, "err", info.Details)
			},
		},
	}
	opts.Experimental.FileCacheShards = 1
	// Compactions are tried whenever a flush or a compaction ends. Looking again
	// ten times a second, as the default does, is most of an idle broker's work.
	opts.Experimental.CompactionScheduler = pebble.NewConcurrencyLimitSchedulerWithNoPeriodicGrantingForTest()
	return opts
}

// name marks damage with ErrCorrupt.
func (d *DB) name(err error) error {
	if pebble.IsCorruptionError(err) {
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return err
}

// do runs fn where pebble may stop it for good, and gives up on it when the
// store fails.
func (d *DB) do(fn func() error) error {
	done := make(chan error, 1)
	go func() { done <- fn() }()
	select {
	case err := <-done:
		return err
	case <-d.failed:
		return d.Failed()
	}
}

// call is do for an open store.
func (d *DB) call(what string, fn func() error) error {
	if err := d.Failed(); err != nil {
		return err
	}
	err := d.do(func() error {
		d.calls.RLock()
		defer d.calls.RUnlock()
		if d.closed {
			return ErrClosed
		}
		return fn()
	})
	if err != nil && d.Failed() == nil {
		return fmt.Errorf("store %s: %s: %w", d.dir, what, d.name(err))
	}
	return err
}

// result is call for what has a result. The goroutine that was given up on must
// not write to variables of its caller.
func result[T any](d *DB, what string, fn func() (T, error)) (T, error) {
	got := make(chan T, 1)
	err := d.call(what, func() error {
		v, err := fn()
		got <- v
		return err
	})
	if err != nil {
		var none T
		return none, err
	}
	return <-got, nil
}

// Get reads one key; ok is false when there is none. The caller owns value.
func (d *DB) Get(key []byte) (value []byte, ok bool, err error) {
	found, err := result(d, "get", func() (*[]byte, error) {
		v, closer, err := d.pebble.Get(key)
		if errors.Is(err, pebble.ErrNotFound) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		own := slices.Clone(v)
		return &own, closer.Close()
	})
	if err != nil || found == nil {
		return nil, false, err
	}
	return *found, true, nil
}

// Apply does all of ops or, after a crash, none. With sync it is durable, with
// everything applied before it, once Apply returns.
func (d *DB) Apply(ops []Op, sync bool) error {
	return d.call("write", func() error {
		b := d.pebble.NewBatch()
		defer b.Close()
		for _, op := range ops {
			if err := addOp(b, op); err != nil {
				return err
			}
		}
		return b.Commit(&pebble.WriteOptions{Sync: sync})
	})
}

func addOp(b *pebble.Batch, op Op) error {
	switch {
	case op.Delete && op.End != nil:
		return b.DeleteRange(op.Key, op.End, nil)
	case op.Delete:
		return b.Delete(op.Key, nil)
	default:
		return b.Set(op.Key, op.Value, nil)
	}
}

// pageBytes bounds what a scan copies before it hands it over.
const pageBytes = 256 << 10

// Scan calls fn for every key with the prefix, in order, until it returns false.
// The caller owns key and value. Keys that are written or deleted under the
// prefix during the scan may be seen or not.
func (d *DB) Scan(prefix []byte, fn func(key, value []byte) bool) error {
	return d.ScanFrom(prefix, prefix, fn)
}

// ScanFrom is Scan without the keys below from.
func (d *DB) ScanFrom(prefix, from []byte, fn func(key, value []byte) bool) error {
	for more := true; more; more = from != nil {
		p, err := d.readPage(prefix, from)
		if err != nil {
			return err
		}
		for _, e := range p.entries {
			if !fn(e.Key, e.Value) {
				return nil
			}
		}
		from = p.next
	}
	return nil
}

// page is a part of a scan; next is nil on the last one.
type page struct {
	entries []Op
	next    []byte
}

// readPage copies a part of a scan, because fn must not run on a goroutine that
// its caller may have given up on.
func (d *DB) readPage(prefix, from []byte) (page, error) {
	if len(from) == 0 {
		from = nil // an empty bound is not the same to pebble
	}
	return result(d, "scan", func() (p page, err error) {
		it, err := d.pebble.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: PrefixEnd(prefix)})
		if err != nil {
			return p, err
		}
		defer func() { err = errors.Join(err, it.Close()) }()
		size := 0
		for ok := it.First(); ok; ok = it.Next() {
			if size > pageBytes {
				p.next = slices.Clone(it.Key())
				break
			}
			value, err := it.ValueAndErr()
			if err != nil {
				return p, err
			}
			p.entries = append(p.entries, Op{Key: slices.Clone(it.Key()), Value: slices.Clone(value)})
			size += len(it.Key()) + len(value)
		}
		return p, it.Error()
	})
}

// Last is the last key with the prefix; nil when there is none.
func (d *DB) Last(prefix []byte) (key []byte, err error) {
	return result(d, "scan", func() (key []byte, err error) {
		it, err := d.pebble.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: PrefixEnd(prefix)})
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, it.Close()) }()
		if it.Last() {
			key = slices.Clone(it.Key())
		}
		return key, it.Error()
	})
}

// PrefixEnd is the first key after all that start with prefix; nil when there is
// no such key.
func PrefixEnd(prefix []byte) []byte {
	end := bytes.TrimRight(prefix, "\xff")
	if len(end) == 0 {
		return nil
	}
	end = slices.Clone(end)
	end[len(end)-1]++
	return end
}

// Failed is the error that ended the store, nil while it works.
func (d *DB) Failed() error {
	select {
	case <-d.failed:
		return d.failErr
	default:
		return nil
	}
}

// Done is closed when the store fails.
func (d *DB) Done() <-chan struct{} { return d.failed }

func (d *DB) fail(err error) {
	d.failOnce.Do(func() {
		d.failErr = fmt.Errorf("store %s failed: %w", d.dir, err)
		d.fs.stop()
		d.log.Error("store failed; nothing more is written to it", "dir", d.dir, "err", err)
		close(d.failed)
	})
}

// Close ends the store once running operations are done. A failed store is left
// as it is: its files are in the state of the failure.
func (d *DB) Close() error {
	if err := d.Failed(); err != nil {
		return err
	}
	err := d.do(func() error {
		d.calls.Lock()
		defer d.calls.Unlock()
		if d.closed {
			return nil
		}
		d.closed = true
		return d.pebble.Close()
	})
	if err != nil {
		return fmt.Errorf("close store %s: %w", d.dir, err)
	}
	return nil
}

// logger passes pebble's words on. Fatalf never returns, as pebble expects, but
// it does not end the process either.
type logger struct{ d *DB }

func (l logger) Infof(format string, args ...any) {
	l.d.log.Debug("store: " + fmt.Sprintf(format, args...))
}

func (l logger) Errorf(format string, args ...any) {
	l.d.log.Warn("store: " + fmt.Sprintf(format, args...))
}

func (l logger) Fatalf(format string, args ...any) {
	err := fmt.Errorf(format, args...)
	for _, arg := range args {
		if cause, ok := arg.(error); ok {
			err = fatal{text: err.Error(), cause: cause}
			break
		}
	}
	l.d.fail(err)
	select {}
}

// fatal keeps the cause of an error that pebble gives only as text.
type fatal struct {
	text  string
	cause error
}

func (f fatal) Error() string { return f.text }
func (f fatal) Unwrap() error { return f.cause }
