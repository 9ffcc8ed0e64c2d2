package kcat

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/barnabas-mq/barnabas/compat-tests/harness"
)

// kcat is the program with a librdkafka: its own, or an older one.
type kcat struct {
	librdkafka string // the older one's version
	name       string // as a test has it
	version    string // as docs/compat.md has it
	env        []string
	err        error // why it cannot be run
}

var kcats = []*kcat{{name: "own"}, {name: "librdkafka-1.6.1", librdkafka: "1.6.1"}}

func TestMain(m *testing.M) {
	for _, k := range kcats {
		k.err = k.prepare()
	}
	harness.Main(m, nil)
}

func TestClients(t *testing.T) {
	for _, k := range kcats {
		t.Run(k.name, func(t *testing.T) {
			harness.DescribePart("kcat", k.version, t.Name()) // in this order
			t.Parallel()
			t.Run("Codecs", k.testCodecs)
			t.Run("Acks", k.testAcks)
			t.Run("KeysHeadersNulls", k.testKeysHeadersNulls)
			t.Run("LargeMessage", k.testLargeMessage)
			t.Run("MetadataListing", k.testMetadataListing)
			t.Run("OffsetsByTimestamp", k.testOffsetsByTimestamp)
			t.Run("Group", k.testGroup)
			t.Run("OldBrokers", k.testOldBrokers)
		})
	}
}

// prepare finds the program, gives it its library and asks it what it is.
func (k *kcat) prepare() error {
	k.version = "not installed"
	if _, err := exec.LookPath("kcat"); err != nil {
		return errors.New("kcat is not installed (apt-get install kcat)")
	}
	if k.librdkafka != "" {
		dir, err := olderLibrdkafka(k.librdkafka)
		if err != nil {
			return err
		}
		k.env = []string{"LD_LIBRARY_PATH=" + dir}
	}
	cmd := exec.Command("kcat", "-V")
	cmd.Env = append(os.Environ(), k.env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("kcat -V: %w: %s", err, out)
	}
	said := strings.Join(regexp.MustCompile(`Version [0-9.]+|librdkafka [0-9.]+`).FindAllString(string(out), -1), ", ")
	if !strings.HasSuffix(said, k.librdkafka) {
		return fmt.Errorf("kcat has not taken librdkafka %s: it is %s", k.librdkafka, said)
	}
	k.version = strings.TrimPrefix(said, "Version ")
	return nil
}

// olderLibrdkafka is the folder of a librdkafka under the name by which kcat asks for it: the one that the wheel of
// confluent-kafka of that version ships. With one before 1.6 kcat's groups lack a function.
func olderLibrdkafka(version string) (dir string, err error) {
	wheel := "confluent-kafka==" + version
	return harness.Install("kcat/librdkafka-"+version, wheel, func(dir string) error {
		if err := harness.Command(dir, nil, "python3", "-m", "venv", "venv"); err != nil {
			return err
		}
		err := harness.Command(dir, nil, filepath.Join(dir, "venv", "bin", "pip"), "install", "-q", "--no-deps", "--only-binary=:all:",
			"--python-version=3.8", "--implementation=cp", "--abi=cp38", "--platform=manylinux2010_x86_64", "--target=wheel", wheel)
		if err != nil {
			return err
		}
		libs, err := filepath.Glob(filepath.Join(dir, "wheel", "confluent_kafka.libs", "librdkafka-*.so.1"))
		if err != nil || len(libs) != 1 {
			return fmt.Errorf("the libraries in %s: %v, %v", wheel, libs, err)
		}
		return os.Symlink(libs[0], filepath.Join(dir, "librdkafka.so.1"))
	})
}

// run has it run with input and returns what it prints. A failure fails the test.
func (k *kcat) run(t *testing.T, input string, args ...string) string {
	t.Helper()
	if k.err != nil {
		harness.Skip(t, "%v", k.err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "kcat", append([]string{"-b", harness.Shared.Addr()}, args...)...)
	cmd.Env = append(os.Environ(), k.env...)
	cmd.Stdin = strings.NewReader(input)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("kcat %s: %v\n%s\n%s", strings.Join(args, " "), err, stdout.String(), stderr.String())
	}
	if strings.Contains(stderr.String(), "ERROR") {
		t.Fatalf("kcat %s complains: %s", strings.Join(args, " "), stderr.String())
	}
	return stdout.String()
}

func lines(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format+"\n", i)
	}
	return b.String()
}

func (k *kcat) testCodecs(t *testing.T) {
	for _, codec := range []string{"none", "gzip", "snappy", "lz4", "zstd"} {
		for _, idempotent := range []string{"false", "true"} {
			t.Run(codec+"/idempotent="+idempotent, func(t *testing.T) {
				topic := harness.Name(t, "kcat")
				sent := lines(2000, "message %d of many that are alike")
				k.run(t, sent, "-P", "-t", topic, "-z", codec, "-X", "enable.idempotence="+idempotent, "-X", "batch.num.messages=300")
				got := k.run(t, "", "-C", "-t", topic, "-e", "-q", "-X", "check.crcs=true")
				if got != sent {
					t.Fatalf("sent %d bytes, read %d", len(sent), len(got))
				}
			})
		}
	}
}

func (k *kcat) testAcks(t *testing.T) {
	for _, acks := range []string{"0", "1", "-1"} {
		t.Run(acks, func(t *testing.T) {
			topic := harness.Name(t, "kcat-acks")
			k.run(t, "first\n", "-P", "-t", topic) // the topic is there before acks=0 may lose anything
			sent := lines(500, "%d")
			k.run(t, sent, "-P", "-t", topic, "-X", "acks="+acks)
			if got := k.run(t, "", "-C", "-t", topic, "-q", "-c", "501"); got != "first\n"+sent {
				t.Fatalf("read %d bytes of %d", len(got), len(sent)+6)
			}
		})
	}
}

func (k *kcat) testKeysHeadersNulls(t *testing.T) {
	topic := harness.Name(t, "kcat-keys")
	k.run(t, "k1=v1\nk2=\n=v3\n", "-P", "-t", topic, "-K", "=", "-Z", "-H", "color=red", "-H", "empty=", "-H", "color=blue")
	got := k.run(t, "", "-C", "-t", topic, "-e", "-q", "-f", `%o %K:%k %S:%s %h\n`)
	want := "0 2:k1 2:v1 color=red,empty=,color=blue\n" +
		"1 2:k2 -1: color=red,empty=,color=blue\n" +
		"2 -1: 2:v3 color=red,empty=,color=blue\n"
	if got != want {
		t.Fatalf("got\n%swant\n%s", got, want)
	}
}

func (k *kcat) testLargeMessage(t *testing.T) {
	topic := harness.Name(t, "kcat-large")
	file := filepath.Join(t.TempDir(), "m")
	want := bytes.Repeat([]byte("0123456789abcdef"), 60_000)
	if err := os.WriteFile(file, want, 0o644); err != nil {
		t.Fatal(err)
	}
	k.run(t, "", "-P", "-t", topic, file)
	if got := k.run(t, "", "-C", "-t", topic, "-e", "-q", "-D", ""); got != string(want) {
		t.Fatalf("%d bytes became %d", len(want), len(got))
	}
}

func (k *kcat) testMetadataListing(t *testing.T) {
	topic := harness.Name(t, "kcat-meta")
	k.run(t, "x\n", "-P", "-t", topic)
	var meta struct {
		Brokers []struct {
			ID   int
			Name string
		}
		ControllerID int
		Topics       []struct {
			Topic      string
			Error      string
			Partitions []struct {
				Partition, Leader int
				Replicas, ISRs    []struct{ ID int }
			}
		}
	}
	if err := json.Unmarshal([]byte(k.run(t, "", "-L", "-J", "-t", topic)), &meta); err != nil {
		t.Fatal(err)
	}
	if len(meta.Brokers) != 1 || meta.Brokers[0].ID != 1 || len(meta.Topics) != 1 || meta.ControllerID != 1 {
		t.Fatalf("%+v", meta)
	}
	parts := meta.Topics[0].Partitions
	if meta.Topics[0].Topic != topic || meta.Topics[0].Error != "" || len(parts) != 1 || parts[0].Leader != 1 || len(parts[0].Replicas) != 1 || len(parts[0].ISRs) != 1 {
		t.Fatalf("%+v", meta.Topics)
	}
	if all := k.run(t, "", "-L"); !strings.Contains(all, `topic "`+topic+`" with 1 partitions:`) {
		t.Fatalf("the whole listing lacks the topic:\n%s", all)
	}
}

func (k *kcat) testOffsetsByTimestamp(t *testing.T) {
	topic := harness.Name(t, "kcat-time")
	k.run(t, lines(10, "early %d"), "-P", "-t", topic)
	var stamps []int64
	for _, line := range strings.Fields(k.run(t, "", "-C", "-t", topic, "-e", "-q", "-f", "%T\n")) {
		var ms int64
		if _, err := fmt.Sscan(line, &ms); err != nil {
			t.Fatal(err)
		}
		stamps = append(stamps, ms)
	}
	after := stamps[9] + 1
	for time.Now().UnixMilli() <= after { // the next batch is of a later millisecond
		time.Sleep(time.Millisecond)
	}
	k.run(t, lines(10, "late %d"), "-P", "-t", topic)
	query := func(stamp int64) string {
		return strings.TrimSpace(k.run(t, "", "-Q", "-t", fmt.Sprintf("%s:0:%d", topic, stamp)))
	}
	for stamp, want := range map[int64]string{stamps[0]: "0", after: "10", -2: "0", -1: "20"} {
		if got := query(stamp); got != topic+" [0] offset "+want {
			t.Errorf("offset at %d: %q, want %s", stamp, got, want)
		}
	}
	got := k.run(t, "", "-C", "-t", topic, "-e", "-q", "-o", fmt.Sprintf("s@%d", after))
	if got != lines(10, "late %d") {
		t.Errorf("reading from a timestamp:\n%s", got)
	}
	for from, want := range map[string]string{"-3": "late 7\nlate 8\nlate 9\n", "18": "late 8\nlate 9\n", "end": ""} {
		if got := k.run(t, "", "-C", "-t", topic, "-e", "-q", "-o", from); got != want {
			t.Errorf("reading from %s: %q", from, got)
		}
	}
}

// testGroup consumes in a group, leaves it, and goes on in it where it was.
func (k *kcat) testGroup(t *testing.T) {
	for _, assignor := range []string{"range", "roundrobin", "cooperative-sticky"} {
		t.Run(assignor, func(t *testing.T) {
			topic := harness.Name(t, "kcat-group")
			group := "g-" + topic
			first, second := lines(100, "first %d"), lines(50, "second %d")
			consume := func(count string) string {
				return k.run(t, "", "-G", group, "-q", "-c", count, "-X", "auto.offset.reset=earliest",
					"-X", "partition.assignment.strategy="+assignor, topic)
			}
			k.run(t, first, "-P", "-t", topic)
			if got := consume("100"); got != first {
				t.Fatalf("first run: %d bytes of %d", len(got), len(first))
			}
			k.run(t, second, "-P", "-t", topic)
			if got := consume("50"); got != second {
				t.Fatalf("second run:\n%s", got)
			}
		})
	}
}
