package connect

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/barnabas-mq/barnabas/compat-tests/harness"
)

const version = "4.3.1" // the newest whose file connectors are on Maven

var (
	libs string
	why  error
)

func TestMain(m *testing.M) {
	libs, why = install()
	harness.Describe("Kafka Connect", version)
	harness.Main(m, nil)
}

func install() (string, error) {
	file := filepath.Join(harness.Root(), "clients", "connect", "pom.xml")
	pom, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	return harness.Install("connect", string(pom), func(dir string) error {
		return harness.Command(dir, nil, "mvn", "-q", "-B", "-f", file,
			"org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies", "-DincludeScope=runtime", "-DoutputDirectory="+dir)
	})
}

// worker is a distributed worker that can be killed and started again; all it knows is in the broker's topics.
type worker struct {
	t    *testing.T
	dir  string
	rest string
	cmd  *exec.Cmd
}

func newWorker(t *testing.T, dir string) *worker {
	port, err := harness.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	w := &worker{t: t, dir: dir, rest: fmt.Sprintf("http://127.0.0.1:%d", port)}
	lines := []string{
		"bootstrap.servers=" + harness.Shared.Addr(), "group.id=connect-workers", "listeners=" + w.rest,
		"key.converter=org.apache.kafka.connect.storage.StringConverter", "value.converter=org.apache.kafka.connect.storage.StringConverter",
		"offset.storage.topic=connect-offsets", "config.storage.topic=connect-configs", "status.storage.topic=connect-status",
		"offset.storage.replication.factor=1", "config.storage.replication.factor=1", "status.storage.replication.factor=1",
		"offset.storage.partitions=5", "status.storage.partitions=2", "offset.flush.interval.ms=500", "exactly.once.source.support=enabled",
		"session.timeout.ms=6000", "heartbeat.interval.ms=1000", "rebalance.timeout.ms=10000", "scheduled.rebalance.max.delay.ms=0",
		"plugin.discovery=only_scan", "connector.client.config.override.policy=All",
	}
	if err := os.WriteFile(filepath.Join(dir, "worker.properties"), []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *worker) start() {
	log, err := os.OpenFile(filepath.Join(w.dir, "worker.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		w.t.Fatal(err)
	}
	defer log.Close()
	w.cmd = exec.Command("java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx384m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
		"-cp", filepath.Join(libs, "*"), "org.apache.kafka.connect.cli.ConnectDistributed", filepath.Join(w.dir, "worker.properties"))
	w.cmd.Stdout, w.cmd.Stderr = log, log
	w.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := w.cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
}

func (w *worker) kill() {
	_ = w.cmd.Process.Kill()
	_ = w.cmd.Wait()
}

// put makes or changes a connector, as soon as the worker takes it.
func (w *worker) put(ctx context.Context, name string, config map[string]string) {
	w.t.Helper()
	body, err := json.Marshal(config)
	if err != nil {
		w.t.Fatal(err)
	}
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodPut, w.rest+"/connectors/"+name+"/config", bytes.NewReader(body))
		if err != nil {
			w.t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		said := ""
		if resp, err := http.DefaultClient.Do(req); err == nil {
			text, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			if resp.StatusCode/100 == 2 {
				return
			}
			said = fmt.Sprint(resp.Status, " ", string(text))
		}
		select {
		case <-ctx.Done():
			w.t.Fatalf("connector %s: %v: %s; the worker's log ends:\n%s", name, ctx.Err(), said, w.logTail())
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func (w *worker) logTail() string {
	b, _ := os.ReadFile(filepath.Join(w.dir, "worker.log"))
	return string(b[max(0, len(b)-4000):])
}

// TestFileToFile has a worker read a file into a topic, exactly once, and write the topic into another file, through a
// kill -9 of the worker.
func TestFileToFile(t *testing.T) {
	if why != nil {
		harness.Skip(t, "%v", why)
	}
	ctx := harness.Context(t, 5*time.Minute)
	dir := t.TempDir()
	source, sink, topic := filepath.Join(dir, "source.txt"), filepath.Join(dir, "sink.txt"), harness.Name(t, "lines")
	w := newWorker(t, dir)
	w.start()
	defer func() { w.kill() }()
	appendLines(t, source, 0, 500)
	w.put(ctx, "source", map[string]string{
		"connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector", "tasks.max": "1", "file": source, "topic": topic,
		"exactly.once.support": "required", "batch.size": "50",
	})
	w.put(ctx, "sink", map[string]string{
		"connector.class": "org.apache.kafka.connect.file.FileStreamSinkConnector", "tasks.max": "1", "file": sink, "topics": topic,
		"consumer.override.auto.offset.reset": "earliest", "consumer.override.isolation.level": "read_committed",
	})
	awaitFile(ctx, t, w, sink, 500)
	appendLines(t, source, 500, 2000)
	w.kill() // with whatever it has read of them
	w.start()
	appendLines(t, source, 2000, 3000)
	awaitFile(ctx, t, w, sink, 3000)
	checkTopic(ctx, t, topic, 3000)
}

func text(n int) string { return fmt.Sprintf("line %05d", n) }

func appendLines(t *testing.T, file string, from, to int) {
	t.Helper()
	f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for n := from; n < to; n++ {
		if _, err := fmt.Fprintln(f, text(n)); err != nil {
			t.Fatal(err)
		}
	}
}

// awaitFile waits until the sink has every line. A killed sink may write some again, so only presence counts.
func awaitFile(ctx context.Context, t *testing.T, w *worker, file string, lines int) {
	t.Helper()
	for {
		content, _ := os.ReadFile(file)
		seen := map[string]bool{}
		for _, line := range strings.Split(string(content), "\n") {
			if line != "" {
				seen[line] = true
			}
		}
		if len(seen) >= lines {
			for n := range lines {
				if !seen[text(n)] {
					t.Fatalf("the sink lacks %q", text(n))
				}
			}
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("the sink has %d of %d lines: %v; the worker's log ends:\n%s", len(seen), lines, ctx.Err(), w.logTail())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// checkTopic wants each line once and in order, as read_committed shows the topic.
func checkTopic(ctx context.Context, t *testing.T, topic string, lines int) {
	client, err := kgo.NewClient(kgo.SeedBrokers(harness.Shared.Addr()), kgo.ConsumeTopics(topic), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for n := 0; n < lines; {
		fetches := client.PollFetches(ctx)
		if err := ctx.Err(); err != nil {
			t.Fatalf("%d of %d lines: %v", n, lines, err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if string(r.Value) != text(n) {
				t.Fatalf("line %d of the topic is %q", n, r.Value)
			}
			n++
		})
	}
}
