package storage

import (
	"fmt"
	"strconv"
	"strings"
)

type folderKind int8

const (
	folderOther folderKind = iota
	folderPartition
	// folderDeleted waits for its removal.
	folderDeleted
	// folderStray belonged to a topic that is not ours; a human decides.
	folderStray
)

const (
	deleteSuffix = "-delete"
	straySuffix  = "-stray"
	maxFileName  = 255
)

// parseFolder says what a folder of a data directory is. A topic name may hold
// dashes and dots, so only the end decides.
func parseFolder(name string) (folderKind, TopicPartition) {
	switch {
	case hasUniqueSuffix(name, deleteSuffix):
		return folderDeleted, TopicPartition{}
	case hasUniqueSuffix(name, straySuffix):
		return folderStray, TopicPartition{}
	}
	tp, ok := ParseFolderName(name)
	if !ok {
		return folderOther, TopicPartition{}
	}
	return folderPartition, tp
}

// ParseFolderName splits `<topic>-<partition>`.
func ParseFolderName(name string) (tp TopicPartition, ok bool) {
	dash := strings.LastIndexByte(name, '-')
	if dash <= 0 || dash == len(name)-1 {
		return tp, false
	}
	digits := name[dash+1:]
	n, err := strconv.ParseInt(digits, 10, 32)
	if err != nil || n < 0 || strconv.FormatInt(n, 10) != digits {
		return tp, false
	}
	return TopicPartition{Topic: name[:dash], Partition: int32(n)}, true
}

// hasUniqueSuffix matches `<topic>-<p>.<32 hex><suffix>`.
func hasUniqueSuffix(name, suffix string) bool {
	rest, ok := strings.CutSuffix(name, suffix)
	if !ok || len(rest) < 34 {
		return false
	}
	dot, hex := rest[len(rest)-33], rest[len(rest)-32:]
	return dot == '.' && strings.Trim(hex, "0123456789abcdef") == ""
}

// uniqueFolder is the name a partition's folder gets when it is given up; long
// topic names are cut, as Kafka does, for the sake of the file system.
func (s *Store) uniqueFolder(tp TopicPartition, suffix string) string {
	tail := fmt.Sprintf("-%d.%016x%016x%s", tp.Partition, s.env.Rand(), s.env.Rand(), suffix)
	topic := tp.Topic[:min(len(tp.Topic), maxFileName-len(tail))]
	return topic + tail
}
