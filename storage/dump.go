package storage

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/barnabas-mq/barnabas/storage/producer"
	"github.com/barnabas-mq/barnabas/storage/segment"
)

// dumpsOfSmallFiles are the files that are read as a whole, by name.
var dumpsOfSmallFiles = map[string]func(io.Writer, []byte) error{
	recoveryPointFile: dumpCheckpoint, highWatermarkFile: dumpCheckpoint, logStartFile: dumpCheckpoint, cleanedFile: dumpCheckpoint,
	epochFile: dumpEpochs, partitionMetadataFile: dumpPartitionMetadata,
	metaPropertiesFile: dumpMetaProperties, cleanShutdownFile: dumpCleanShutdown, MetadataEndFile: dumpMetadataEnd,
}

// IsDataFile says whether a file with this name is one that Dump reads.
func IsDataFile(name string) bool {
	base := filepath.Base(name)
	if _, _, ok := segment.ParseFileName(base); ok {
		return true
	}
	_, ok := dumpsOfSmallFiles[base]
	return ok
}

// Dump prints a file of a data directory for people: a .log, .index, .timeindex,
// .txnindex or .snapshot, a checkpoint, partition.metadata, meta.properties, metadata-end or
// the mark of a clean stop. The name decides how the content is read. What was printed
// before an error is sound.
func Dump(w io.Writer, name string, r io.ReaderAt, sizeBytes int64) error {
	base := filepath.Base(name)
	for _, extra := range []string{segment.DeletedSuffix, segment.CorruptSuffix, segment.CleanedSuffix, segment.SwapSuffix} {
		base = strings.TrimSuffix(base, extra)
	}
	if offset, suffix, ok := segment.ParseFileName(base); ok {
		switch suffix {
		case segment.LogSuffix:
			return segment.DumpLog(w, name, r, offset, sizeBytes)
		case segment.IndexSuffix:
			return segment.DumpOffsetIndex(w, r, offset, sizeBytes)
		case segment.TimeIndexSuffix:
			return segment.DumpTimeIndex(w, r, offset, sizeBytes)
		case segment.TxnIndexSuffix:
			return segment.DumpTxnIndex(w, r, sizeBytes)
		case segment.SnapshotSuffix:
			return dumpSmall(w, r, sizeBytes, dumpSnapshot)
		}
	}
	dump, ok := dumpsOfSmallFiles[base]
	if !ok {
		return errors.New("it is none of the files of a data directory")
	}
	return dumpSmall(w, r, sizeBytes, dump)
}

func dumpSmall(w io.Writer, r io.ReaderAt, sizeBytes int64, dump func(io.Writer, []byte) error) error {
	if sizeBytes > maxSmallFile {
		return fmt.Errorf("%w: %d bytes", ErrCorrupt, sizeBytes)
	}
	b, err := io.ReadAll(io.NewSectionReader(r, 0, sizeBytes))
	if err != nil {
		return err
	}
	return dump(w, b)
}

func dumpSnapshot(w io.Writer, b []byte) error {
	table, err := producer.Decode(b)
	if err != nil {
		return err
	}
	return table.Dump(w)
}

func dumpCheckpoint(w io.Writer, b []byte) error {
	c, err := ParseOffsetCheckpoint(b)
	if err != nil {
		return err
	}
	for _, tp := range c.partitions() {
		if _, err := fmt.Fprintf(w, "%s offset: %d\n", tp, c[tp]); err != nil {
			return err
		}
	}
	return nil
}

func dumpEpochs(w io.Writer, b []byte) error {
	list, err := ParseEpochs(b)
	if err != nil {
		return err
	}
	for _, e := range list {
		if _, err := fmt.Fprintf(w, "leaderEpoch: %d startOffset: %d\n", e.Epoch, e.StartOffset); err != nil {
			return err
		}
	}
	return nil
}

func dumpPartitionMetadata(w io.Writer, b []byte) error {
	id, err := ParsePartitionMetadata(b)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "topicId: %s\n", FormatID(id))
	return err
}

func dumpMetaProperties(w io.Writer, b []byte) error {
	m, err := ParseMetaProperties(b)
	if err != nil {
		return err
	}
	_, err = w.Write(m.Encode())
	return err
}

func dumpCleanShutdown(w io.Writer, b []byte) error {
	epoch, err := ParseCleanShutdown(b)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "brokerEpoch: %d\n", epoch)
	return err
}
