package importer

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/barnabas-mq/barnabas/internal/clock"
	"github.com/barnabas-mq/barnabas/internal/vfs"
	"github.com/barnabas-mq/barnabas/protocol/batch"
	"github.com/barnabas-mq/barnabas/server"
	"github.com/barnabas-mq/barnabas/storage"
	"github.com/barnabas-mq/barnabas/storage/segment"
)

// What cannot be taken over is refused by name, and neither folder is changed.
func TestRefused(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(k *kafkaFolder)
		o     Options
		from  []string
		says  []string
	}{
		{name: "in use", spoil: func(k *kafkaFolder) { _, _ = k.fs.Lock(sourceDir + "/.lock") }, says: []string{"in use: stop the Apache Kafka broker first"}},
		{name: "nothing there", from: []string{"/nowhere"}, says: []string{"/nowhere"}},
		{name: "not Kafka's", spoil: func(k *kafkaFolder) { _ = k.fs.Remove(sourceDir + "/meta.properties") }, says: []string{"it has no meta.properties"}},
		{name: "ours", spoil: func(k *kafkaFolder) { k.put("kv/x", nil) }, says: []string{"a data folder of Barnabas"}},
		{name: "twice", from: []string{sourceDir, sourceDir + "/."}, says: []string{"given twice"}},
		{name: "newer folder", spoil: func(k *kafkaFolder) { k.put("meta.properties", []byte("version=2\ncluster.id=x\nnode.id=1\n")) }, says: []string{"version 2"}},
		{name: "no metadata", spoil: func(k *kafkaFolder) { _ = k.fs.RemoveAll(sourceDir + "/__cluster_metadata-0") }, says: []string{"metadata.log.dir", "--without-metadata"}},
		{name: "unknown topic", o: Options{Topics: []string{"nope*", "orders"}}, says: []string{`"nope*" is none of the topics: there are ledger, orders`}},
		{name: "bad pattern", o: Options{Topics: []string{"[x"}}, says: []string{"is no pattern"}},
		{name: "Kafka's own", o: Options{Topics: []string{"__consumer_offsets"}}, says: []string{"topic __consumer_offsets is Kafka's own"}},
		{name: "lost file", spoil: func(k *kafkaFolder) { _ = k.fs.Remove(sourceDir + "/orders-0/00000000000000000030.log") }, says: []string{"topic orders", "partition 0: it ends at offset 30, and everything up to 42"}},
		{name: "lost partition", spoil: func(k *kafkaFolder) { _ = k.fs.RemoveAll(sourceDir + "/orders-1") }, says: []string{"topic orders: partition 1 is in none of the folders: it is on broker 1"}},
		{name: "swap", spoil: func(k *kafkaFolder) { k.put("orders-1/00000000000000000100.log.swap", nil) }, says: []string{"partition 1: it was being compacted"}},
		{name: "damage", spoil: func(k *kafkaFolder) {
			b := batches(0, 10, -1, false)
			b[700] ^= 1
			k.segment("orders", 0, 0, b)
		}, says: []string{"topic orders: partition 0: /kafka/orders-0/00000000000000000000.log is corrupt at byte"}},
		{name: "start behind the end", spoil: func(k *kafkaFolder) {
			k.put("log-start-offset-checkpoint", []byte("0\n1\norders 0 999999999\n"))
		}, says: []string{"topic orders: partition 0: it ends at offset 42, and log-start-offset-checkpoint has it begin at 999999999"}},
		{name: "tiered", spoil: func(k *kafkaFolder) {
			value := "true"
			k.config("orders", "remote.storage.enable", &value)
			k.stop(true)
		}, says: []string{"topic orders: remote.storage.enable=true"}},
		{name: "newer metadata", spoil: func(k *kafkaFolder) {
			k.metadata = append(k.metadata, rec(recordTopic, 1))
			k.stop(true)
		}, says: []string{"record kind 2 has version 1", "a newer Kafka"}},
		{name: "damaged offsets", spoil: func(k *kafkaFolder) {
			w := &offsetsWriter{}
			w.commit("g", "orders", ordersID, 0, 1, -1)
			w.log[80] ^= 1
			k.segment("__consumer_offsets", 0, 0, w.log)
		}, says: []string{"committed offsets: __consumer_offsets-0", "--without-groups"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			fs := vfs.NewMem()
			k := written(t, fs, true)
			if c.spoil != nil {
				c.spoil(k)
			}
			before := tree(t, fs, sourceDir)
			p, _, err := imports(t, fs, c.o, c.from...)
			if err == nil {
				t.Fatal("it was imported")
			}
			for _, says := range c.says {
				if !strings.Contains(err.Error(), says) {
					t.Errorf("said %q, want %q", err, says)
				}
			}
			if after := tree(t, fs, sourceDir); after != before {
				t.Error("the original has changed")
			}
			if c.name == "damage" || c.name == "lost file" {
				// The others are taken over.
				if taken(t, fs, "ledger") == "" || p == nil {
					t.Error("ledger is not there")
				}
			}
			if _, err := fs.Stat(targetDir); err == nil && taken(t, fs, "orders") != "" {
				t.Error("a part of it was imported")
			}
		})
	}
}

// A topic that the target has under the same name is refused before anything is
// written.
func TestRefusedByTheTarget(t *testing.T) {
	fs := vfs.NewMem()
	written(t, fs, true)
	if _, _, err := imports(t, fs, Options{}); err != nil {
		t.Fatal(err)
	}
	other := newKafkaFolder(t, fs, "/other")
	other.topic("orders", storage.TopicID{42}, 1)
	other.topic("fresh", storage.TopicID{43}, 1)
	other.topic("ledger-2", ledgerID, 1)
	other.stop(true)
	_, _, err := imports(t, fs, Options{}, "/other")
	for _, says := range []string{"topic orders: the target has another topic of that name", "topic ledger-2: the target has it under the name ledger"} {
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("said %v, want %q", err, says)
		}
	}
	if taken(t, fs, "fresh") != "" {
		t.Error("a topic beside them was imported")
	}
	if _, _, err := imports(t, fs, Options{Topics: []string{"fr?sh"}}, "/other"); err != nil || taken(t, fs, "fresh") == "" {
		t.Errorf("the topic alone: %v", err)
	}
	node, err := server.OpenOffline(env(fs), static(t))
	if err != nil {
		t.Fatal(err)
	}
	defer node.Close(t.Context())
	if _, err := server.OpenOffline(env(fs), static(t)); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("a target in use: %v", err)
	}
}

// An unclean stop leaves a tail that was not whole: it is left out, as Kafka's
// recovery does, but not what was synced.
func TestUncleanStop(t *testing.T) {
	fs := vfs.NewMem()
	k := written(t, fs, false)
	whole := batches(30, 4, 77, false)
	k.segment("orders", 0, 30, append(slices.Clone(whole), batches(42, 1, 77, false)[:100]...))
	k.put("orders-0/00000000000000000030.index", make([]byte, 4096)) // preallocated
	k.segment("ledger", 0, 0, slices.Concat(batches(0, 2, 5, true), markerAt(6, 5, false), batches(7, 40, -1, false)))
	p, _, err := imports(t, fs, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if notes := strings.Join(p.Topics[1].Notes, "\n"); !strings.Contains(notes, "partition 0: 100 bytes at its end were not whole") {
		t.Errorf("said %q", notes)
	}
	if got := mustRead(t, fs, targetDir+"/orders-0/00000000000000000030.log"); string(got) != string(whole) {
		t.Errorf("%d bytes, want the %d whole ones", len(got), len(whole))
	}
	if _, err := fs.Stat(targetDir + "/orders-0/00000000000000000042.snapshot"); err != nil {
		t.Errorf("the producers are forgotten: %v", err)
	}

	// What the indexes lack, nobody would look for again.
	for name, least := range map[string]int{"orders-0/00000000000000000030.timeindex": 12, "ledger-0/00000000000000000000.index": 16, "ledger-0/00000000000000000000.timeindex": 24} {
		if b := mustRead(t, fs, filepath.Join(targetDir, name)); len(b) < least || len(b) > 1000 {
			t.Errorf("%s has %d bytes", name, len(b))
		}
	}
	want := segment.EncodeAbortedTxn(nil, segment.AbortedTxn{ProducerID: 5, FirstOffset: 0, LastOffset: 6, LastStableOffset: 7})
	if b := mustRead(t, fs, targetDir+"/ledger-0/00000000000000000000.txnindex"); string(b) != string(want) {
		t.Errorf("aborted transactions %x, want %x", b, want)
	}

	fs = vfs.NewMem()
	k = written(t, fs, false)
	k.segment("orders", 0, 30, whole[:len(whole)-10])
	k.put("recovery-point-offset-checkpoint", storage.OffsetCheckpoint{{Topic: "orders"}: 42}.Encode())
	if _, _, err := imports(t, fs, Options{}); err == nil || !strings.Contains(err.Error(), "topic orders: partition 0") || taken(t, fs, "orders") != "" {
		t.Errorf("synced data is gone: %v", err)
	}
}

// Messages of formats v0 and v1 become batches at their offsets.
func TestOldFormats(t *testing.T) {
	fs := vfs.NewMem()
	k := newKafkaFolder(t, fs, sourceDir)
	k.topic("old", storage.TopicID{1}, 1)
	message := func(offset int64, value string) []byte {
		body := []byte{1, 0, 0, 0, 1, 139, 207, 229, 104, 0, 0xff, 0xff, 0xff, 0xff} // v1, a timestamp, no key
		body = append(binary.BigEndian.AppendUint32(body, uint32(len(value))), value...)
		b := binary.BigEndian.AppendUint64(nil, uint64(offset))
		b = binary.BigEndian.AppendUint32(b, uint32(4+len(body)))
		return append(binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(body)), body...)
	}
	k.segment("old", 0, 5, slices.Concat(message(5, "a"), message(9, "b"), batches(12, 1, -1, false)))
	k.put("old-0/00000000000000000005.index", []byte("not to be taken"))
	k.stop(true)
	p, _, err := imports(t, fs, Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := p.Topics[0].Partitions[0].Contents
	if c.Converted != 1 || c.LogStartOffset != 5 || c.LogEndOffset != 15 || c.Records != 5 {
		t.Errorf("%+v", c)
	}
	var got []string
	for rest := mustRead(t, fs, targetDir+"/old-0/00000000000000000005.log"); len(rest) > 0; {
		var v batch.View
		if v, rest, err = batch.Next(rest); err != nil {
			t.Fatal(err)
		}
		err := batch.Records(v, 0, func(r batch.Record) error {
			got = append(got, fmt.Sprintf("%d %d %.5s", r.Offset, r.TimestampMs, r.Value))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if want := []string{"5 1700000000000 a", "9 1700000000000 b", "12 1700000000012 value", "13 1700000000013 value", "14 1700000000014 value"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if _, err := fs.Stat(targetDir + "/old-0/00000000000000000005.index"); err == nil {
		if b := mustRead(t, fs, targetDir+"/old-0/00000000000000000005.index"); strings.Contains(string(b), "taken") {
			t.Error("the index of another file was taken")
		}
	}
}

// The folders of several brokers are one cluster: of each partition the leader's
// copy is taken, or one that is in sync.
func TestSeveralBrokers(t *testing.T) {
	fs := vfs.NewMem()
	id := storage.TopicID{5}
	one, two := newKafkaFolder(t, fs, "/one"), newKafkaFolder(t, fs, "/two")
	two.node = 2
	topic := append(append(str(rec(recordTopic, 0), "t"), id[:]...), noTags)
	change := func(index, tag int32, field []byte) []byte {
		b := append(i32(rec(recordPartitionChange, 1), index), id[:]...)
		b = append(b, 1, byte(tag), byte(len(field)))
		return append(b, field...)
	}
	for _, k := range []*kafkaFolder{one, two} {
		k.metadata = append(k.metadata, topic, partitionRecord(id, 0, 1, 1, 2), partitionRecord(id, 1, 0, 2, 1), partitionRecord(id, 2, 2, 1, 2),
			change(1, 1, i32(nil, 2)), // the same leader once more, at a new epoch
			change(2, 0, i32s(nil, 2)), change(2, 1, i32(nil, 2)))
	}
	for p, bases := range []struct{ one, two int }{{3, 2}, {1, 4}, {9, 5}} {
		one.put(fmt.Sprintf("t-%d/partition.metadata", p), storage.EncodePartitionMetadata(id))
		two.put(fmt.Sprintf("t-%d/partition.metadata", p), storage.EncodePartitionMetadata(id))
		one.segment("t", int32(p), 0, batches(0, bases.one, -1, false))
		two.segment("t", int32(p), 0, batches(0, bases.two, -1, false))
	}
	one.stop(true)
	two.stop(true)
	if _, _, err := imports(t, fs, Options{}, "/one"); err == nil || !strings.Contains(err.Error(), "partition 2 of broker 1 is not in sync: give the folders of broker 2") {
		t.Errorf("one alone: %v", err)
	}
	p, _, err := imports(t, fs, Options{}, "/one", "/two")
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []int64{9, 12, 15} {
		if part := p.Topics[0].Partitions[i]; part.Contents.LogEndOffset != want {
			t.Errorf("partition %d ends at %d, want %d", i, part.Contents.LogEndOffset, want)
		}
	}
	v, err := server.Look(env(fs), static(t))
	if err != nil {
		t.Fatal(err)
	}
	topicOf, _ := v.Image().Topic("t")
	if got := []int32{topicOf.Partitions[0].LeaderEpoch, topicOf.Partitions[1].LeaderEpoch, topicOf.Partitions[2].LeaderEpoch}; !slices.Equal(got, []int32{7, 8, 8}) {
		t.Errorf("leader epochs %v", got)
	}
	// A folder of another cluster is none of theirs.
	three := newKafkaFolder(t, fs, "/three")
	three.stop(true)
	three.put("meta.properties", []byte("version=1\nnode.id=3\ncluster.id=another\n"))
	if _, err := Open(fs, []string{"/one", "/three"}, false); err == nil || !strings.Contains(err.Error(), "import one cluster at a time") {
		t.Errorf("two clusters: %v", err)
	}
}

// Without a metadata log the folders tell the topics, and nothing of theirs is
// deleted before somebody has looked.
func TestWithoutMetadata(t *testing.T) {
	fs := vfs.NewMem()
	k := newKafkaFolder(t, fs, sourceDir)
	k.segment("with-id", 0, 0, batches(0, 1, -1, false))
	k.put("with-id-0/partition.metadata", storage.EncodePartitionMetadata(ordersID))
	k.segment("no-id", 0, 0, batches(0, 1, -1, false))
	k.segment("no-id", 1, 0, batches(0, 2, -1, false))
	k.stop(true)
	if err := fs.RemoveAll(filepath.Join(sourceDir, "__cluster_metadata-0")); err != nil {
		t.Fatal(err)
	}
	k.put("meta.properties", []byte("version=0\nbroker.id=0\ncluster.id="+testCluster+"\n"))
	for round := range 2 {
		s, err := Open(fs, []string{sourceDir}, true)
		if err != nil {
			t.Fatal(err)
		}
		node, err := server.OpenOffline(env(fs), static(t))
		if err != nil {
			t.Fatal(err)
		}
		p, err := s.Plan(context.Background(), node, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Import(t.Context(), node, quiet{}); err != nil {
			t.Fatal(err)
		}
		if round == 1 && len(p.Present) != 2 {
			t.Errorf("the second time %v are known", p.Present)
		}
		if len(s.Notes) != 1 || !strings.Contains(s.Notes[0], "no-id, with-id get retention.ms=-1") {
			t.Errorf("said %q", s.Notes)
		}
		if err := node.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		_ = s.Close()
	}
	if got := taken(t, fs, "no-id"); !strings.Contains(got, "map[retention.bytes:-1 retention.ms:-1]") || !strings.Contains(got, "1/00000000000000000000.log") {
		t.Errorf("no-id: %s", got)
	}
}

// The metadata log's snapshots, transactions and deletions.
func TestCatalog(t *testing.T) {
	fs := vfs.NewMem()
	k := newKafkaFolder(t, fs, sourceDir)
	id := func(n byte) storage.TopicID { return storage.TopicID{n} }
	remove := func(id storage.TopicID) []byte { return append(append(rec(recordRemoveTopic, 0), id[:]...), noTags) }
	k.topic("a", id(1), 1, "retention.ms", "5", "segment.bytes", "9")
	k.topic("b", id(2), 1)
	k.config("a", "segment.bytes", nil)
	snapshot := k.metadata
	k.metadata = nil
	k.topic("b", id(3), 2) // made again after the deletion that follows
	again := k.metadata
	k.metadata = slices.Concat([][]byte{remove(id(2))}, again, [][]byte{
		append(rec(recordBeginTransaction, 0), noTags), append(append(str(rec(recordTopic, 0), "held"), slices.Repeat([]byte{9}, 16)...), noTags),
		append(rec(recordAbort, 0), noTags),
		append(rec(recordBeginTransaction, 0), noTags), append(append(str(rec(recordTopic, 0), "kept"), slices.Repeat([]byte{8}, 16)...), noTags),
		append(rec(recordEndTransaction, 0), noTags),
		append(rec(recordBeginTransaction, 0), noTags), remove(id(1)),
		append(rec(200, 17), "of a kind that does not count"...),
	})
	k.stop(true)
	k.put("__cluster_metadata-0/00000000000000000000.log", []byte("older than the snapshot"))
	k.put("__cluster_metadata-0/00000000000000000100-0000000003.checkpoint", k.log(0, snapshot...))
	k.put("__cluster_metadata-0/00000000000000000040-0000000002.checkpoint", []byte("an older one"))
	k.put("__cluster_metadata-0/00000000000000000090.log", append(k.log(90, slices.Repeat([][]byte{remove(id(1))}, 10)...), k.log(100, k.metadata...)...))
	s, err := Open(fs, []string{sourceDir}, false)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var got []string
	for _, topic := range s.catalog.topics {
		got = append(got, fmt.Sprintf("%s %d %v", topic.name, len(topic.partitions), s.catalog.configs[catalogResource{resourceTopic, topic.name}]))
	}
	slices.Sort(got)
	if want := []string{"a 1 map[retention.ms:5]", "b 2 map[]", "kept 0 map[]"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if s.catalog.features["metadata.version"] != 25 {
		t.Errorf("features %v", s.catalog.features)
	}
	// A log that begins after its start without a snapshot tells nothing.
	_ = fs.RemoveAll(filepath.Join(sourceDir, "__cluster_metadata-0"))
	k.put("__cluster_metadata-0/00000000000000000090.log", k.log(90, k.metadata...))
	if _, err := Open(fs, []string{sourceDir}, false); err == nil || !strings.Contains(err.Error(), "neither its start nor a snapshot") {
		t.Errorf("a log without its start: %v", err)
	}
}

// A broker that was killed soon after its start has checkpoints that are empty yet:
// there is nothing to say of them.
func TestEmptyCheckpointsAreNotDamaged(t *testing.T) {
	fs := vfs.NewMem()
	k := newKafkaFolder(t, fs, sourceDir)
	k.topic("kept", storage.TopicID{2}, 1, "retention.ms", "-1")
	k.segment("kept", 0, 0, batches(0, 2, -1, false))
	k.stop(false)
	for _, name := range []string{"log-start-offset-checkpoint", "recovery-point-offset-checkpoint", "kept-0/leader-epoch-checkpoint"} {
		k.put(name, nil)
	}
	p, notes, err := imports(t, fs, Options{})
	if err != nil || len(notes) != 0 || p.Topics[0].Records() != 6 {
		t.Fatalf("%d records, notes %q, %v", p.Topics[0].Records(), notes, err)
	}
}

// Records that this broker's retention would remove are told of, and stay until
// somebody has had the time to change it.
func TestOldRecordsStay(t *testing.T) {
	fs := vfs.NewMem()
	k := newKafkaFolder(t, fs, sourceDir)
	k.topic("old", storage.TopicID{1}, 1)
	k.topic("kept", storage.TopicID{2}, 1, "retention.ms", "-1")
	for _, topic := range []string{"old", "kept"} {
		k.segment(topic, 0, 0, batches(0, 2, -1, false))
		k.segment(topic, 0, 6, batches(6, 1, -1, false))
	}
	k.stop(true)
	s, err := Open(fs, []string{sourceDir}, false)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	e := env(fs)
	later := clock.NewManual(time.UnixMilli(1_700_000_000_000).Add(30 * 24 * time.Hour))
	e.Clock = later
	node, err := server.OpenOffline(e, static(t))
	if err != nil {
		t.Fatal(err)
	}
	defer node.Close(t.Context())
	p, err := s.Plan(context.Background(), node, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Import(t.Context(), node, quiet{}); err != nil {
		t.Fatal(err)
	}
	notes := fmt.Sprint(p.Topics[0].Notes, p.Topics[1].Notes)
	if want := "[] [1.3 KiB are older than its retention.ms of 604800000 here allows, and the broker will delete them soon after its start: start it with `barnabas serve --set log.retention.ms=-1`"; !strings.HasPrefix(notes, want) {
		t.Errorf("said %s, want %s", notes, want)
	}
	later.Advance(time.Hour)
	if b := mustRead(t, fs, targetDir+"/old-0/00000000000000000000.log"); len(b) == 0 {
		t.Error("they are gone before the broker runs")
	}
}
