package segment

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
)

// The suffixes of a partition's files.
const (
	LogSuffix       = ".log"
	IndexSuffix     = ".index"
	TimeIndexSuffix = ".timeindex"
	TxnIndexSuffix  = ".txnindex"
	SnapshotSuffix  = ".snapshot"
	// DeletedSuffix marks a file that waits for file.delete.delay.ms.
	DeletedSuffix = ".deleted"
	// CleanedSuffix marks a file that compaction is writing, SwapSuffix one that is
	// whole and takes the place of those it was made from.
	CleanedSuffix = ".cleaned"
	SwapSuffix    = ".swap"
	// CorruptSuffix marks a file that was set aside.
	CorruptSuffix = ".corrupt"
)

// offsetDigits is the width of an offset in a file name.
const offsetDigits = 20

// FileName is the name of the file that belongs to an offset.
func FileName(offset int64, suffix string) string {
	return fmt.Sprintf("%0*d%s", offsetDigits, offset, suffix)
}

// ParseFileName splits a file name into its offset and suffix.
func ParseFileName(name string) (offset int64, suffix string, ok bool) {
	digits, rest, found := strings.Cut(name, ".")
	if !found || len(digits) != offsetDigits {
		return 0, "", false
	}
	offset, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || offset < 0 {
		return 0, "", false
	}
	return offset, "." + rest, true
}

func path(dir string, offset int64, suffix string) string {
	return filepath.Join(dir, FileName(offset, suffix))
}
