package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"time"

	"github.com/twmb/franz-go/pkg/kversion"
)

// oldRecords is how many records the topics of old formats have.
const oldRecords = 500

// txnVersions name a topic by name in TxnOffsetCommit.
func txnVersions() *kversion.Versions {
	v := kversion.Stable()
	v.SetMaxKeyVersion(28, 3)
	return v
}

// oldTopics makes the logs as long as what oldFormats puts in their place.
func (f *filler) oldTopics(ctx context.Context) error {
	for _, topic := range []string{"old-v0", "old-v1"} {
		if err := f.write(ctx, nil, f.records(topic, 0, oldRecords, 10)...); err != nil {
			return err
		}
	}
	return nil
}

// oldFormats replaces segments of a stopped Kafka by what a Kafka before 0.11 would have written: no broker with KRaft
// writes these formats, but one may still have them.
func (f *filler) oldFormats(source string) error {
	for magic := range int8(2) {
		topic := fmt.Sprintf("old-v%d", magic)
		for _, folder := range folders(source) {
			dir := filepath.Join(folder, topic+"-0")
			if _, err := os.Stat(dir); err != nil {
				continue
			}
			base := filepath.Join(dir, fmt.Sprintf("%020d", 0))
			if err := os.WriteFile(base+".log", oldSegment(magic), 0o644); err != nil {
				return err
			}
			for _, suffix := range []string{".index", ".timeindex"} {
				if err := os.Remove(base + suffix); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// oldSegment is messages and gzip wrappers in turn, with a few offsets left out as by compaction.
func oldSegment(magic int8) []byte {
	var out []byte
	at := time.Now().Add(-time.Hour).UnixMilli()
	for offset := int64(0); offset < oldRecords; {
		if offset%7 == 3 && offset < oldRecords-20 {
			offset += 2 // compacted away
		}
		if offset%2 == 0 {
			out = append(out, oldMessage(magic, 0, offset, at+offset, []byte("k"), []byte(fmt.Sprint("plain ", offset)))...)
			offset++
			continue
		}
		first, n := offset, min(5, oldRecords-offset)
		var inner []byte
		for ; offset < first+n; offset++ {
			at0 := offset
			if magic > 0 {
				at0 = offset - first
			}
			inner = append(inner, oldMessage(magic, 0, at0, at+offset, nil, []byte(fmt.Sprint("wrapped ", offset)))...)
		}
		var z bytes.Buffer
		w := gzip.NewWriter(&z)
		_, _ = w.Write(inner)
		_ = w.Close()
		out = append(out, oldMessage(magic, 1, offset-1, at+offset-1, nil, z.Bytes())...)
	}
	return out
}

func oldMessage(magic, attributes int8, offset, timestampMs int64, key, value []byte) []byte {
	body := []byte{byte(magic), byte(attributes)}
	if magic > 0 {
		body = binary.BigEndian.AppendUint64(body, uint64(timestampMs))
	}
	for _, field := range [][]byte{key, value} {
		if field == nil {
			body = binary.BigEndian.AppendUint32(body, 0xffffffff)
			continue
		}
		body = append(binary.BigEndian.AppendUint32(body, uint32(len(field))), field...)
	}
	out := binary.BigEndian.AppendUint64(nil, uint64(offset))
	out = binary.BigEndian.AppendUint32(out, uint32(4+len(body)))
	out = binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(body))
	return append(out, body...)
}
