package streams

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/barnabas-mq/barnabas/compat-tests/harness"
)

const version = "4.4.0"

var (
	classes string
	why     error
)

func TestMain(m *testing.M) {
	classes, why = install()
	harness.Describe("Kafka Streams", version)
	harness.Main(m, nil)
}

// install resolves Kafka Streams and compiles the program.
func install() (string, error) {
	here := filepath.Join(harness.Root(), "clients", "streams")
	pom, err := os.ReadFile(filepath.Join(here, "pom.xml"))
	if err != nil {
		return "", err
	}
	program, err := os.ReadFile(filepath.Join(here, "WordCount.java"))
	if err != nil {
		return "", err
	}
	return harness.Install("streams", string(pom)+string(program), func(dir string) error {
		if err := harness.Command(dir, nil, "mvn", "-q", "-B", "-f", filepath.Join(here, "pom.xml"),
			"org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies", "-DincludeScope=runtime", "-DoutputDirectory="+dir); err != nil {
			return err
		}
		return harness.Command(dir, nil, "javac", "-cp", filepath.Join(dir, "*"), "-d", dir, filepath.Join(here, "WordCount.java"))
	})
}

// counted is a run of the program that can be killed and started again.
type counted struct {
	t         *testing.T
	addr, dir string
	cmd       *exec.Cmd
	log       *os.File
	starts    int
}

func (c *counted) start() {
	c.cmd = exec.Command("java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
		"-cp", classes+":"+filepath.Join(classes, "*"), "WordCount", c.addr, filepath.Join(c.dir, "state"))
	c.cmd.Stdout, c.cmd.Stderr = c.log, c.log
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := c.cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.starts++
}

func (c *counted) kill() {
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait()
}

const (
	lines   = 6000
	perLine = 4
	words   = 40
)

// line is the n-th line; its words are decided by its number, so what the counts must be is known.
func line(n int) string {
	var out []string
	for i := range perLine {
		out = append(out, "word-"+strconv.Itoa((n*7+i*13)%words))
	}
	return strings.Join(out, " ")
}

// TestWordCount counts words with exactly_once_v2 while the broker and the program are killed in turn. Read with
// read_committed, the counts of each word must be 1, 2, 3 and so on, without a gap or a repetition.
func TestWordCount(t *testing.T) {
	if why != nil {
		harness.Skip(t, "%v", why)
	}
	ctx := harness.Context(t, 6*time.Minute)
	dir := t.TempDir()
	settings := harness.Options{Dir: filepath.Join(dir, "broker")}
	b, err := harness.Start(ctx, settings)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { b.Kill() }()
	settings = b.Options
	client, err := kgo.NewClient(kgo.SeedBrokers(b.Addr()), kgo.DefaultProduceTopic("lines"), kgo.RecordPartitioner(kgo.RoundRobinPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	for _, topic := range []string{"lines", "counts"} {
		if _, err := admin.CreateTopic(ctx, 2, 1, nil, topic); err != nil {
			t.Fatal(err)
		}
	}
	log, err := os.Create(filepath.Join(dir, "program.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	program := &counted{t: t, addr: b.Addr(), dir: dir, log: log}
	program.start()
	defer func() { program.kill() }()
	const rounds = 8
	for round := range rounds {
		for n := round * lines / rounds; n < (round+1)*lines/rounds; n++ {
			client.Produce(ctx, &kgo.Record{Value: []byte(line(n))}, func(_ *kgo.Record, err error) {
				if err != nil {
					t.Errorf("write line %d: %v", n, err)
				}
			})
		}
		awaitCounts(ctx, t, b.Addr(), round*lines*perLine/rounds/2) // the next kill shall meet a program at work
		if round%2 == 0 {
			b.Kill()
			if b, err = harness.Start(ctx, settings); err != nil {
				t.Fatal(err)
			}
		} else {
			program.kill()
			program.start()
		}
	}
	if err := client.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	checkCounts(ctx, t, b.Addr(), filepath.Join(dir, "program.log"))
}

// awaitCounts waits until the output has at least so many records, committed or not.
func awaitCounts(ctx context.Context, t *testing.T, addr string, least int) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(addr))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for {
		ends, err := kadm.NewClient(client).ListEndOffsets(ctx, "counts")
		total := int64(0)
		if err == nil {
			ends.Each(func(e kadm.ListedOffset) { total += e.Offset })
		}
		if total >= int64(least) {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("only %d counts, not %d: %v", total, least, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// checkCounts reads the counts with read_committed until there are as many as words were written.
func checkCounts(ctx context.Context, t *testing.T, addr, log string) {
	client, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.ConsumeTopics("counts"), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	last := map[string]int{}
	for seen := 0; seen < lines*perLine; {
		fetches := client.PollFetches(ctx)
		if err := ctx.Err(); err != nil {
			tail, _ := os.ReadFile(log)
			t.Fatalf("%d of %d counts: %v; the program's log ends:\n%s", seen, lines*perLine, err, tail[max(0, len(tail)-3000):])
		}
		fetches.EachRecord(func(r *kgo.Record) {
			n, err := strconv.Atoi(string(r.Value))
			if err != nil || n != last[string(r.Key)]+1 {
				t.Fatalf("%s: %q after %d", r.Key, r.Value, last[string(r.Key)])
			}
			last[string(r.Key)] = n
			seen++
		})
	}
	total := 0
	for _, n := range last {
		total += n
	}
	if total != lines*perLine || len(last) != words {
		t.Fatal(fmt.Sprintf("%d words were counted %d times, not %d words %d times", len(last), total, words, lines*perLine))
	}
}
