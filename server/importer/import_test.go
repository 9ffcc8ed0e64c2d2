package importer

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/barnabas-mq/barnabas/coordinator/group"
	"github.com/barnabas-mq/barnabas/internal/clock"
	"github.com/barnabas-mq/barnabas/internal/vfs"
	"github.com/barnabas-mq/barnabas/server"
	"github.com/barnabas-mq/barnabas/server/config"
	"github.com/barnabas-mq/barnabas/storage"
	"github.com/barnabas-mq/barnabas/storage/segment"
)

const (
	sourceDir = "/kafka"
	targetDir = "/barnabas"
)

var (
	ordersID  = storage.TopicID{1, 2, 3}
	ledgerID  = storage.TopicID{4, 5, 6}
	offsetsID = storage.TopicID{7}
)

// written is the folder that most tests import: two topics, one with a transaction
// that ended and one that did not, and groups.
func written(t testing.TB, fs *vfs.Mem, clean bool) *kafkaFolder {
	k := newKafkaFolder(t, fs, sourceDir)
	k.topic("orders", ordersID, 2, "cleanup.policy", "compact", "retention.ms", "-1")
	k.topic("ledger", ledgerID, 1, "max.message.bytes", "2000000", "retention.ms", "-1")
	k.topic("__consumer_offsets", offsetsID, 1, "cleanup.policy", "compact")
	k.segment("orders", 0, 0, batches(0, 10, -1, false))
	k.segment("orders", 0, 30, batches(30, 4, 77, false))
	k.segment("orders", 1, 100, batches(100, 5, -1, false))
	k.starts[storage.TopicPartition{Topic: "orders", Partition: 1}] = 107
	ledger := slices.Concat(batches(0, 2, 5, true), markerAt(6, 5, true), batches(7, 1, 6, true), batches(10, 1, -1, false))
	k.segment("ledger", 0, 0, ledger)
	w := &offsetsWriter{}
	w.members("readers", 12)
	w.commit("readers", "orders", ordersID, 0, 7, -1)
	w.commit("readers", "orders", ordersID, 1, 110, -1)
	w.commit("readers", "orders", storage.TopicID{9}, 1, 999, -1) // for an earlier topic of that name
	w.commit("readers", "orders", ordersID, 1, 111, -1)
	w.commit("readers", "gone", storage.TopicID{8}, 0, 4, -1)
	w.commit("simple", "ledger", storage.TopicID{}, 0, 3, -1)
	w.commit("simple", "ledger", storage.TopicID{}, 0, 5, 50)
	w.mark(50, true)
	w.commit("simple", "ledger", storage.TopicID{}, 0, 6, 51)
	w.mark(51, false)
	w.commit("pending", "ledger", storage.TopicID{}, 0, 8, 52)
	k.segment("__consumer_offsets", 0, 0, w.log)
	for tp, end := range map[storage.TopicPartition]int64{{Topic: "orders"}: 42, {Topic: "orders", Partition: 1}: 115, {Topic: "ledger"}: 13, {Topic: "__consumer_offsets"}: w.next} {
		k.ends[tp] = end
	}
	k.stop(clean)
	return k
}

func env(fs vfs.FS) server.Env {
	return server.Env{Clock: clock.NewManual(time.UnixMilli(1_700_000_100_000)), FS: fs, Random: rand.Uint64, Log: slog.New(slog.DiscardHandler)}
}

func static(t testing.TB) *config.Static { return loaded(t) }

// loaded is the target's settings, with some more.
func loaded(t testing.TB, more ...config.Setting) *config.Static {
	t.Helper()
	s, _, err := config.Load(config.Input{Flags: append([]config.Setting{
		{Key: "log.dirs", Value: targetDir, Where: "test"}, {Key: "offsets.topic.num.partitions", Value: "3", Where: "test"},
		{Key: "listeners", Value: "PLAINTEXT://127.0.0.1:0", Where: "test"},
	}, more...)})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

type quiet struct{}

func (quiet) Topic(*TopicPlan)       {}
func (quiet) Moved(int64)            {}
func (quiet) Done(*TopicPlan, error) {}

// imports runs one import to its end.
func imports(t testing.TB, fs vfs.FS, o Options, from ...string) (p *Plan, notes []string, err error) {
	t.Helper()
	if len(from) == 0 {
		from = []string{sourceDir}
	}
	s, err := Open(fs, from, false)
	if err != nil {
		return nil, nil, err
	}
	defer s.Close()
	node, err := server.OpenOffline(env(fs), static(t))
	if err != nil {
		return nil, nil, err
	}
	if p, err = s.Plan(context.Background(), node, o); err == nil {
		err = p.Import(context.Background(), node, quiet{})
	}
	return p, s.Notes, errors.Join(err, node.Close(context.Background()))
}

// taken is what the target has of a topic, "" for nothing: its settings, its
// files, and what groups have committed for it.
func taken(t testing.TB, fs vfs.FS, topic string) string {
	t.Helper()
	v, err := server.Look(env(fs), static(t))
	if err != nil {
		t.Fatal(err)
	}
	have, ok := v.Image().Topic(topic)
	if !ok {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s\n", storage.FormatID(have.ID), fmt.Sprint(v.Image().TopicConfig(topic)))
	for _, p := range have.Partitions {
		dir := filepath.Join(targetDir, fmt.Sprintf("%s-%d", topic, p.Index))
		entries, err := fs.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if strings.HasSuffix(e.Name(), segment.LogSuffix) {
				content, err := (&Source{fs: fs}).readFile(filepath.Join(dir, e.Name()))
				if err != nil {
					t.Fatal(err)
				}
				fmt.Fprintf(&b, "%d/%s %d bytes, sum %x\n", p.Index, e.Name(), len(content), sha256.Sum256(content))
			}
		}
	}
	for p := range 3 {
		c := &copyOf{path: filepath.Join(targetDir, fmt.Sprintf("%s-%d", group.Topic, p)), in: &folder{}}
		if _, err := fs.Stat(c.path); err != nil {
			continue
		}
		groups, err := (&Source{fs: fs}).committedIn(context.Background(), c)
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range groups {
			for _, r := range g.Offsets {
				if r.Topic == topic {
					fmt.Fprintf(&b, "group %s %q %d: %d committed %d epoch %d %q of %x\n", g.Group, g.ProtocolType, g.Generation, r.Partition, r.Offset.Offset, r.Offset.LeaderEpoch, r.Offset.Metadata, r.Offset.TopicID[:2])
				}
			}
		}
	}
	return b.String()
}

func TestImport(t *testing.T) {
	fs := vfs.NewMem()
	written(t, fs, true)
	before := tree(t, fs, sourceDir)
	p, notes, err := imports(t, fs, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if after := tree(t, fs, sourceDir); after != before {
		t.Error("the original has changed")
	}
	var said []string
	for _, topic := range p.Topics {
		for _, part := range topic.Partitions {
			c := part.Contents
			said = append(said, fmt.Sprintf("%s-%d from %d to %d, %d records, epoch %d", topic.Name, part.Index, c.LogStartOffset, c.LogEndOffset, c.Records, c.LatestEpoch))
		}
		said = append(said, topic.Notes...)
	}
	said = append(said, notes...)
	want := []string{
		"ledger-0 from 0 to 13, 12 records, epoch 5", // the thirteenth is a marker
		"partition 0: producer 6 (epoch 2) has a transaction open since offset 7, which nobody will end: readers with read_committed stop there until " +
			"`barnabas txn abort --partition ledger:0 --start-offset 7` ends it",
		"orders-0 from 0 to 42, 42 records, epoch 5", "orders-1 from 107 to 115, 8 records, epoch 5",
		`group "pending" has offsets for 1 partitions in a transaction that has not ended; they are not taken over`,
	}
	if !slices.Equal(said, want) {
		t.Errorf("said\n%s\nwant\n%s", strings.Join(said, "\n"), strings.Join(want, "\n"))
	}
	for topic, want := range map[string][]string{
		"orders": {storage.FormatID(ordersID), "map[cleanup.policy:compact retention.ms:-1]", "0/00000000000000000000.log", "0/00000000000000000030.log", "1/00000000000000000100.log",
			`group readers "consumer" 12: 0 committed 7 epoch 3 "m" of 0102`, `group readers "consumer" 12: 1 committed 111 epoch 3 "m" of 0102`},
		"ledger": {storage.FormatID(ledgerID), "map[max.message.bytes:2000000 retention.ms:-1]", "0/00000000000000000000.log", `group simple "" 0: 0 committed 5 epoch 3 "m" of 0000`},
	} {
		got := taken(t, fs, topic)
		for _, w := range want {
			if !strings.Contains(got, w) {
				t.Errorf("%s lacks %q:\n%s", topic, w, got)
			}
		}
		if n := strings.Count(got, "\n"); n != len(want)-1 {
			t.Errorf("%s has %d lines, want %d:\n%s", topic, n, len(want)-1, got)
		}
	}
	for _, name := range []string{"orders-0/00000000000000000000.log", "orders-0/00000000000000000030.log", "orders-1/00000000000000000100.log", "ledger-0/00000000000000000000.log", "orders-1/partition.metadata"} {
		if string(mustRead(t, fs, filepath.Join(sourceDir, name))) != string(mustRead(t, fs, filepath.Join(targetDir, name))) {
			t.Errorf("%s is not the same byte for byte", name)
		}
	}
	// Again: they are there.
	p, _, err = imports(t, fs, Options{})
	if err != nil || len(p.Topics) != 0 || !slices.Equal(p.Present, []string{"ledger", "orders"}) {
		t.Errorf("again: %v, topics %v, present %v", err, p.Topics, p.Present)
	}
}

// The broker goes on where Kafka stopped: offsets, leader epochs, producer ids.
func TestImportedTopicGoesOn(t *testing.T) {
	fs := vfs.NewMem()
	written(t, fs, true)
	if _, _, err := imports(t, fs, Options{}); err != nil {
		t.Fatal(err)
	}
	v, err := server.Look(env(fs), static(t))
	if err != nil {
		t.Fatal(err)
	}
	if next := v.Image().NextProducerID(); next != 78 {
		t.Errorf("the next producer id is %d, and 77 is in the logs", next)
	}
	orders, _ := v.Image().Topic("orders")
	if epoch := orders.Partitions[0].LeaderEpoch; epoch < 7 {
		t.Errorf("leader epoch %d, and Kafka's was 7", epoch)
	}
	node, err := server.OpenOffline(env(fs), static(t))
	if err != nil {
		t.Fatal(err)
	}
	defer node.Close(context.Background())
	store, err := storage.ParseOffsetCheckpoint(mustRead(t, fs, filepath.Join(targetDir, "log-start-offset-checkpoint")))
	if err != nil || store[storage.TopicPartition{Topic: "orders", Partition: 1}] != 107 {
		t.Errorf("start offsets %v, %v", store, err)
	}
}

func mustRead(t testing.TB, fs vfs.FS, name string) []byte {
	t.Helper()
	b, err := (&Source{fs: fs}).readFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestDryRunChangesNothing(t *testing.T) {
	fs := vfs.NewMem()
	written(t, fs, true)
	check := func() *Plan {
		s, err := Open(fs, []string{sourceDir}, false)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		v, err := server.Look(env(fs), static(t))
		if err != nil {
			t.Fatal(err)
		}
		p, err := s.Plan(context.Background(), v, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Check(context.Background(), v, quiet{}); err != nil {
			t.Fatal(err)
		}
		return p
	}
	before := tree(t, fs, "/")
	if p := check(); len(p.Topics) != 2 || p.Topics[1].Records() != 50 || !slices.Equal(p.Groups, []string{"readers", "simple"}) {
		t.Errorf("%d topics, groups %v", len(p.Topics), p.Groups)
	}
	if tree(t, fs, "/") != before {
		t.Error("a look at a target that is not there has changed something")
	}
	if _, _, err := imports(t, fs, Options{Topics: []string{"orders"}}); err != nil {
		t.Fatal(err)
	}
	before = tree(t, fs, "/")
	if p := check(); len(p.Topics) != 1 || !slices.Equal(p.Present, []string{"orders"}) {
		t.Errorf("%d topics, present %v", len(p.Topics), p.Present)
	}
	if tree(t, fs, "/") != before {
		t.Error("a look at a target has changed something")
	}
}

// A crash before any change of the disk leaves each topic whole or not at all,
// and running the import again brings the rest. IMPORT_CRASHES=every tries every
// change, not every third.
func TestImportThroughCrashes(t *testing.T) {
	whole := vfs.NewMem()
	written(t, whole, true)
	first := whole.Ops()
	if _, _, err := imports(t, whole, Options{}); err != nil {
		t.Fatal(err)
	}
	steps := whole.Ops() - first
	want := map[string]string{"orders": taken(t, whole, "orders"), "ledger": taken(t, whole, "ledger")}
	stride := int64(3)
	if os.Getenv("IMPORT_CRASHES") == "every" {
		stride = 1
	}
	seen := map[string]int{}
	for n := int64(1); n <= steps+20; n += stride {
		fs := vfs.NewMem()
		written(t, fs, true)
		fs.CrashAt(n)
		_, _, err := imports(t, fs, Options{})
		if err == nil && n <= steps {
			continue // the operations are not the same in every run
		}
		fs.Crash(uint64(n))
		fs = fs.Next()
		for topic, w := range want {
			got := taken(t, fs, topic)
			if got != "" && got != w {
				t.Fatalf("after a crash at step %d topic %s is\n%s\nwant\n%s", n, topic, got, w)
			}
			seen[fmt.Sprint(topic, " ", got != "")]++
		}
		if _, _, err := imports(t, fs, Options{}); err != nil {
			t.Fatalf("again after a crash at step %d: %v", n, err)
		}
		for topic, w := range want {
			if got := taken(t, fs, topic); got != w {
				t.Fatalf("again after a crash at step %d, topic %s is\n%s\nwant\n%s", n, topic, got, w)
			}
		}
		if _, err := fs.Stat(filepath.Join(targetDir, storage.ImportFolder)); err == nil {
			t.Fatalf("again after a crash at step %d: %s is left", n, storage.ImportFolder)
		}
	}
	if seen["orders true"] == 0 || seen["orders false"] == 0 || seen["ledger true"] == 0 || seen["ledger false"] == 0 {
		t.Errorf("the crashes met only %v", seen)
	}
}
