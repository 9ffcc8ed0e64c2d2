package storage

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/barnabas-mq/barnabas/storage/segment"
)

// Compaction replaces segments by one that was made from them, in steps of which
// each is durable before the next begins:
//
//  1. the new segment is written to `*.cleaned` files and synced;
//  2. they are renamed to `*.swap`;
//  3. the files of the old segments are renamed to `*.deleted`;
//  4. `*.swap` is renamed to the final names, the .log first.
//
// A crash before the end of step 2 leaves a `*.cleaned` file, and the old segments
// stay; after it the new one takes their place. The names are Kafka's, so that a
// folder which it left in the middle is read right as well.

// interrupted is what a swap that did not end has left in a folder.
type interrupted struct {
	// cleaned and swap are the base offsets of such files, by name.
	cleaned, swap map[string]int64
}

func (i *interrupted) note(name string) bool {
	into := &i.cleaned
	plain, found := strings.CutSuffix(name, segment.CleanedSuffix)
	if !found {
		if plain, found = strings.CutSuffix(name, segment.SwapSuffix); !found {
			return false
		}
		into = &i.swap
	}
	if *into == nil {
		*into = map[string]int64{}
	}
	base, _, ok := segment.ParseFileName(plain)
	if !ok {
		base = math.MaxInt64 // nobody's; it says nothing and is removed
	}
	(*into)[name] = base
	return true
}

func (i *interrupted) any() bool { return len(i.cleaned)+len(i.swap) > 0 }

// finishSwap ends, or takes back, what an interrupted swap has left. It may itself
// be interrupted at any point.
func (l *Log) finishSwap(left *interrupted, files *folderFiles) error {
	// Not all files of one segment, or not all that one segment was split into,
	// got as far as `*.swap`: none of them counts.
	oldest := int64(math.MaxInt64)
	for _, base := range left.cleaned {
		oldest = min(oldest, base)
	}
	var back, cleaned []string
	for name, base := range left.swap {
		if base >= oldest {
			back = append(back, name)
			delete(left.swap, name)
		}
	}
	for name := range left.cleaned {
		cleaned = append(cleaned, name)
	}
	// The `*.cleaned` files go last: they are what tells that the others do not
	// count.
	if err := l.removeDurably(back); err != nil {
		return err
	}
	if err := l.removeDurably(cleaned); err != nil {
		return err
	}
	return l.completeSwap(left.swap, files)
}

// removeDurably removes files of the partition's folder, in no order.
func (l *Log) removeDurably(names []string) error {
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	for _, name := range names {
		if err := l.store.env.FS.Remove(l.path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return l.store.env.FS.SyncDir(l.dir)
}

// completeSwap puts the `*.swap` files in place of what they were made from.
func (l *Log) completeSwap(swap map[string]int64, files *folderFiles) error {
	if len(swap) == 0 {
		return nil
	}
	bases, replaced := map[int64]struct{}{}, map[int64]struct{}{}
	from, to := int64(math.MaxInt64), int64(math.MinInt64)
	for name, base := range swap {
		bases[base] = struct{}{}
		if !strings.HasSuffix(name, segment.LogSuffix+segment.SwapSuffix) {
			continue
		}
		end, err := l.endOfSwap(name, base)
		if err != nil {
			return err
		}
		l.store.env.Logger.Info("an interrupted compaction is completed", "log", l.tp.String(), "baseOffset", base, "nextOffset", end)
		from, to = min(from, base), max(to, end)
		replaced[base] = struct{}{}
	}
	for base := range files.sizes {
		if base >= from && base < to {
			replaced[base] = struct{}{}
		}
	}
	var old []string
	for base := range replaced {
		for _, suffix := range []string{segment.LogSuffix, segment.IndexSuffix, segment.TimeIndexSuffix, segment.TxnIndexSuffix} {
			old = append(old, segment.FileName(base, suffix))
		}
	}
	if err := l.removeDurably(old); err != nil {
		return err
	}
	for base := range bases {
		if err := segment.PlaceFiles(l.store.seg, l.dir, base); err != nil {
			return err
		}
	}
	return nil
}

// endOfSwap is the offset behind the last batch of a `*.swap` file.
func (l *Log) endOfSwap(name string, base int64) (int64, error) {
	f, err := l.store.env.FS.OpenFile(l.path(name), os.O_RDONLY, 0)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	sc := segment.NewScanner(f, l.path(name), 0, info.Size(), base, false)
	for sc.Next() {
	}
	var bad *segment.CorruptError
	if err := sc.Err(); err != nil && !errors.As(err, &bad) {
		return 0, err
	}
	return sc.NextOffset(), nil // damaged bytes are met again by who reads them
}
