package storage

import (
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// epochFile is the file of a partition's leader epochs.
const epochFile = "leader-epoch-checkpoint"

// NoEpoch and NoOffset are what Kafka answers when it knows none.
const (
	NoEpoch  = -1
	NoOffset = -1
)

// EpochStart is the offset at which a leader epoch begins.
type EpochStart struct {
	Epoch       int32
	StartOffset int64
}

// epochs are the leader epochs of a log in rising order, of epoch and of offset
// (KIP-101, KIP-279). Every method returns whether something changed.
type epochs []EpochStart

func (e epochs) latest() int32 {
	if len(e) == 0 {
		return NoEpoch
	}
	return e[len(e)-1].Epoch
}

// assign notes that an epoch begins at an offset. Entries that contradict it
// are dropped: they belonged to records that were never there or are gone.
func (e *epochs) assign(epoch int32, offset int64) bool {
	if epoch < 0 || epoch == e.latest() {
		return false
	}
	keep := 0
	for keep < len(*e) && (*e)[keep].Epoch < epoch && (*e)[keep].StartOffset < offset {
		keep++
	}
	*e = append((*e)[:keep:keep], EpochStart{Epoch: epoch, StartOffset: offset})
	return true
}

// endOffset finds where an epoch ends: the start of the next one, or the log
// end for the newest. For an epoch that the log does not have it answers with
// the newest one before it.
func (e epochs) endOffset(epoch int32, logEnd int64) (int32, int64) {
	if epoch < 0 || len(e) == 0 {
		return NoEpoch, NoOffset
	}
	if epoch == e.latest() {
		return epoch, logEnd
	}
	higher := sort.Search(len(e), func(i int) bool { return e[i].Epoch > epoch })
	switch higher {
	case len(e):
		return NoEpoch, NoOffset
	case 0:
		return epoch, e[0].StartOffset
	}
	return e[higher-1].Epoch, e[higher].StartOffset
}

// at is the epoch of the record at an offset.
func (e epochs) at(offset int64) int32 {
	i := sort.Search(len(e), func(i int) bool { return e[i].StartOffset > offset })
	if i == 0 {
		return NoEpoch
	}
	return e[i-1].Epoch
}

// truncateFromEnd drops the epochs that begin at or after the log's new end.
func (e *epochs) truncateFromEnd(end int64) bool {
	i := sort.Search(len(*e), func(i int) bool { return (*e)[i].StartOffset >= end })
	if i == len(*e) {
		return false
	}
	*e = slices.Clip((*e)[:i])
	return true
}

// truncateFromStart drops the epochs before the log's new start; the one that
// goes on across it begins there now.
func (e *epochs) truncateFromStart(start int64) bool {
	i := sort.Search(len(*e), func(i int) bool { return (*e)[i].StartOffset > start })
	if i == 0 || (i == 1 && (*e)[0].StartOffset == start) {
		return false
	}
	next := slices.Clone((*e)[i-1:])
	next[0].StartOffset = start
	*e = next
	return true
}

// EncodeEpochs is a leader-epoch-checkpoint file: version, number of entries,
// and a line `epoch startOffset` each.
func EncodeEpochs(list []EpochStart) []byte {
	b := fmt.Appendf(nil, "%d\n%d\n", checkpointVersion, len(list))
	for _, e := range list {
		b = fmt.Appendf(b, "%d %d\n", e.Epoch, e.StartOffset)
	}
	return b
}

// ParseEpochs reads a leader-epoch-checkpoint file.
func ParseEpochs(b []byte) ([]EpochStart, error) {
	lines, err := checkpointLines(b)
	if err != nil {
		return nil, err
	}
	list := make([]EpochStart, 0, len(lines))
	for _, line := range lines {
		f := strings.Fields(line)
		if len(f) != 2 {
			return nil, fmt.Errorf("%w: line %q", ErrCorrupt, line)
		}
		epoch, err1 := strconv.ParseInt(f[0], 10, 32)
		offset, err2 := strconv.ParseInt(f[1], 10, 64)
		if err1 != nil || err2 != nil || epoch < 0 || offset < 0 {
			return nil, fmt.Errorf("%w: line %q", ErrCorrupt, line)
		}
		if n := len(list); n > 0 && (list[n-1].Epoch >= int32(epoch) || list[n-1].StartOffset > offset) {
			return nil, fmt.Errorf("%w: line %q does not follow the one before", ErrCorrupt, line)
		}
		list = append(list, EpochStart{Epoch: int32(epoch), StartOffset: offset})
	}
	return list, nil
}
