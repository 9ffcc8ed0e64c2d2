package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/barnabas-mq/barnabas/coordinator/group"
	"github.com/barnabas-mq/barnabas/internal/clock"
	"github.com/barnabas-mq/barnabas/internal/telemetry"
	"github.com/barnabas-mq/barnabas/internal/vfs"
	"github.com/barnabas-mq/barnabas/server/config"
)

// testDir is the data folder on a file system in memory.
const testDir = "/data"

// load is a configuration with free ports on this machine.
func load(t *testing.T, dir string, settings ...string) *config.Static {
	t.Helper()
	set := []config.Setting{
		{Key: "listeners", Value: "PLAINTEXT://127.0.0.1:0", Where: "test"},
		{Key: "log.dirs", Value: dir, Where: "test"},
		{Key: "barnabas.admin.listener", Value: "off", Where: "test"},
	}
	for _, s := range settings {
		key, value, _ := strings.Cut(s, "=")
		set = append(set, config.Setting{Key: key, Value: value, Where: "test"})
	}
	static, _, err := config.Load(config.Input{Flags: set})
	if err != nil {
		t.Fatal(err)
	}
	return static
}

// start runs a node until the test ends.
func start(t *testing.T, fsys vfs.FS, static *config.Static) *Node {
	t.Helper()
	n, err := Start(testEnv(fsys), static)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stop(n) })
	return n
}

func testEnv(fsys vfs.FS) Env {
	return Env{
		Clock: clock.Real(), FS: fsys, Random: rand.Uint64, Log: slog.New(slog.DiscardHandler),
		Metrics: telemetry.NewRegistry(), Version: "test",
	}
}

// patience is how long a test waits for what should happen at once: a busy machine
// is no fault.
const patience = 2 * time.Minute

// clientsOf are the clients of each node. They are closed before it is stopped: its port
// may be that of another test's server at once, which a client that looks for its broker
// would disturb.
var clientsOf = struct {
	sync.Mutex
	of map[*Node][]*kgo.Client
}{of: map[*Node][]*kgo.Client{}}

func stop(n *Node) error {
	clientsOf.Lock()
	clients := clientsOf.of[n]
	delete(clientsOf.of, n)
	clientsOf.Unlock()
	for _, cl := range clients {
		cl.Close()
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return n.Stop(ctx)
}

func client(t *testing.T, n *Node, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	opts = append([]kgo.Opt{kgo.SeedBrokers(n.Addrs()[0].String()), kgo.AllowAutoTopicCreation(), kgo.RetryTimeout(patience)}, opts...)
	cl, err := kgo.NewClient(opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	clientsOf.Lock()
	clientsOf.of[n] = append(clientsOf.of[n], cl)
	clientsOf.Unlock()
	return cl
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

func produce(t *testing.T, cl *kgo.Client, topic string, values ...string) {
	t.Helper()
	for _, v := range values {
		if err := cl.ProduceSync(within(t), &kgo.Record{Topic: topic, Value: []byte(v)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
}

// consume reads until it has n records.
func consume(t *testing.T, cl *kgo.Client, n int) (values []string) {
	t.Helper()
	ctx := within(t)
	for len(values) < n {
		fetches := cl.PollRecords(ctx, n-len(values))
		if err := fetches.Err(); err != nil {
			t.Fatal(err)
		}
		fetches.EachRecord(func(r *kgo.Record) { values = append(values, string(r.Value)) })
	}
	return values
}

func numbered(from, to int) (values []string) {
	for i := from; i < to; i++ {
		values = append(values, fmt.Sprintf("record %d", i))
	}
	return values
}

func wantValues(t *testing.T, got, want []string) {
	t.Helper()
	if strings.Join(got, "|") != strings.Join(want, "|") {
		t.Fatalf("got %q, want %q", got, want)
	}
}

func TestRecordsSurviveRestart(t *testing.T) {
	fsys := vfs.NewMem()
	n := start(t, fsys, load(t, testDir))
	id := n.ClusterID()
	produce(t, client(t, n), "orders", numbered(0, 10)...)
	if err := stop(n); err != nil {
		t.Fatal(err)
	}

	n = start(t, fsys, load(t, testDir))
	if n.ClusterID() != id {
		t.Fatalf("the cluster id changed from %s to %s", id, n.ClusterID())
	}
	cl := client(t, n, kgo.ConsumeTopics("orders"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	produce(t, cl, "orders", numbered(10, 12)...)
	wantValues(t, consume(t, cl, 12), numbered(0, 12))
}

// With an fsync before every acknowledgement, nothing acknowledged depends on
// what the machine had not written yet.
func TestFlushedRecordsSurvivePowerFailure(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			fsys := vfs.NewMem()
			n := start(t, fsys, load(t, testDir, "log.flush.interval.messages=1"))
			produce(t, client(t, n), "orders", numbered(0, 20)...)
			fsys.CrashAt(1) // nothing of what the old node does from here on counts
			_ = stop(n)
			fsys.Crash(seed)
			fsys = fsys.Next()

			n = start(t, fsys, load(t, testDir, "log.flush.interval.messages=1"))
			cl := client(t, n, kgo.ConsumeTopics("orders"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
			wantValues(t, consume(t, cl, 20), numbered(0, 20))
		})
	}
}

func TestGroupGoesOnFromItsCommitAfterRestart(t *testing.T) {
	fsys := vfs.NewMem()
	n := start(t, fsys, load(t, testDir))
	produce(t, client(t, n), "orders", numbered(0, 10)...)
	member := func(n *Node) *kgo.Client {
		return client(t, n, kgo.ConsumerGroup("billing"), kgo.ConsumeTopics("orders"), kgo.DisableAutoCommit(),
			kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	}
	first := member(n)
	wantValues(t, consume(t, first, 4), numbered(0, 4))
	if err := first.CommitUncommittedOffsets(within(t)); err != nil {
		t.Fatal(err)
	}
	first.Close()
	if err := stop(n); err != nil {
		t.Fatal(err)
	}

	n = start(t, fsys, load(t, testDir))
	wantValues(t, consume(t, member(n), 6), numbered(4, 10))
}

// A topic that was deleted and made again inherits nothing: neither records nor
// what groups had committed for it.
func TestRecreatedTopicInheritsNothing(t *testing.T) {
	n := start(t, vfs.NewMem(), load(t, testDir))
	cl := client(t, n)
	adm := kadm.NewClient(cl)
	produce(t, cl, "orders", numbered(0, 5)...)
	commit := kadm.Offsets{}
	commit.AddOffset("orders", 0, 5, -1)
	if err := adm.CommitAllOffsets(within(t), "billing", commit); err != nil {
		t.Fatal(err)
	}
	if _, err := adm.DeleteTopic(within(t), "orders"); err != nil {
		t.Fatal(err)
	}
	if _, err := adm.CreateTopic(within(t), 1, 1, nil, "orders"); err != nil {
		t.Fatal(err)
	}
	ends, err := adm.ListEndOffsets(within(t), "orders")
	if err != nil {
		t.Fatal(err)
	}
	if o, _ := ends.Lookup("orders", 0); o.Err != nil || o.Offset != 0 {
		t.Fatalf("the new topic ends at %d (%v), want 0", o.Offset, o.Err)
	}
	committed, err := adm.FetchOffsets(within(t), "billing")
	if err != nil {
		t.Fatal(err)
	}
	if o, ok := committed.Lookup("orders", 0); ok && o.At >= 0 {
		t.Fatalf("the group has offset %d of the deleted topic", o.At)
	}
	// Of the internal topic's 50 partitions only the group's was loaded.
	rec := httptest.NewRecorder()
	n.env.Metrics.Handler().ServeHTTP(rec, httptest.NewRequest("GET", "/metrics", nil))
	if want := fmt.Sprintf("barnabas_coordinator_partitions{topic=%q} 1\n", group.Topic); !strings.Contains(rec.Body.String(), want) {
		t.Errorf("no %q in the metrics", want)
	}
}

func TestFolderInUseIsRefused(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	start(t, vfs.OS(), load(t, dir))
	_, err := Start(testEnv(vfs.OS()), load(t, dir))
	if !errors.Is(err, vfs.ErrLocked) || !strings.Contains(err.Error(), "--data") {
		t.Fatalf("got %v, want a refusal that names the way out", err)
	}
}

// A start that fails half-way leaves the folder free for the next one.
func TestFailedStartReleasesEverything(t *testing.T) {
	fsys := vfs.NewMem()
	first := start(t, vfs.NewMem(), load(t, testDir))
	taken := first.Addrs()[0].String()
	static := load(t, testDir, "listeners=PLAINTEXT://"+taken)
	if _, err := Start(testEnv(fsys), static); err == nil {
		t.Fatalf("a second broker started on %s", taken)
	}
	n := start(t, fsys, load(t, testDir))
	produce(t, client(t, n), "orders", "works")
}

func TestAdminSaysReadyAndCounts(t *testing.T) {
	n := start(t, vfs.NewMem(), load(t, testDir, "barnabas.admin.listener=127.0.0.1:0"))
	produce(t, client(t, n), "orders", "one")
	if got := get(t, n, "/readyz", http.StatusOK); !strings.Contains(got, "ready") {
		t.Fatalf("/readyz says %q", got)
	}
	if got := get(t, n, "/metrics", http.StatusOK); !strings.Contains(got, `api="Produce"`) {
		t.Fatal("/metrics does not count the produce request")
	}
}

func get(t *testing.T, n *Node, path string, status int) string {
	t.Helper()
	resp, err := http.Get("http://" + n.AdminAddr().String() + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != status {
		t.Fatalf("%s: status %d (%v), want %d", path, resp.StatusCode, err, status)
	}
	return string(body)
}
