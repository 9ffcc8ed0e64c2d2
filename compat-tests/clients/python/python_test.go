package python

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/barnabas-mq/barnabas/compat-tests/harness"
)

var common = []string{
	"codec-none", "codec-gzip", "codec-snappy", "codec-lz4", "codec-zstd", "acks-0", "acks-1", "acks-all", "offsets-by-time", "admin",
}

func cases(more ...string) []string { return append(append([]string(nil), common...), more...) }

// noSticky is the same fault in the two clients that share kafka-python 2.0.2's assignors.
const noSticky = "kafka-python 2.0.2's sticky assignor raises a TypeError in Python 3.11 before it asks the broker anything"

// The codecs' packages that the client has no extra of its own for.
const codecs = "crc32c==2.9.post0 lz4==4.4.5 python-snappy==0.7.3 xxhash==3.5.0 zstandard==0.25.0"

func TestMain(m *testing.M) {
	harness.MainOf(m, nil,
		client("kafka-python", "3.0.12", codecs, "kafka_python.py",
			cases("idempotent", "group-range", "group-roundrobin", "group-sticky", "group-cooperative", "transaction", "fencing"), nil),
		client("kafka-python", "2.0.2", codecs, "kafka_python.py", cases("group-range", "group-roundrobin"), map[string]string{
			"idempotent": "the client has no idempotent producer", "transaction": "the client has no transactions", "group-sticky": noSticky,
		}),
		renamed("kafka-python, as of old brokers", client("kafka-python", "2.0.2", codecs, "kafka_python_ages.py",
			[]string{"age-0.8.1", "age-0.8.2", "age-0.9", "age-0.10", "age-0.10.1", "age-0.11", "age-1.0"}, nil)),
		client("aiokafka", "0.14.0", "cramjam==2.14.0", "aio_kafka.py",
			cases("idempotent", "group-range", "group-roundrobin", "group-sticky", "transaction", "fencing"), nil),
		client("aiokafka", "0.8.1", "kafka-python==2.0.2 cramjam==2.14.0 "+codecs, "aio_kafka.py",
			cases("idempotent", "group-range", "group-roundrobin", "transaction", "fencing"), map[string]string{"group-sticky": noSticky}),
		client("confluent-kafka", "2.16.1", "", "confluent.py",
			cases("idempotent", "group-range", "group-roundrobin", "group-cooperative-sticky", "group-consumer", "transaction", "fencing"), nil),
		client("confluent-kafka", "2.0.2", "", "confluent.py",
			cases("idempotent", "group-range", "group-roundrobin", "group-cooperative-sticky", "transaction", "fencing"), map[string]string{
				"group-consumer": "the client is older than KIP-848",
			}),
	)
}

func TestClients(t *testing.T) { harness.RunClients(t) }

// renamed is a client that stands in the table once more.
func renamed(name string, c *harness.Client) *harness.Client {
	c.Name = name
	return c
}

// client is a package of PyPI in a virtual environment of its own.
func client(name, version, with, program string, cases []string, lacks map[string]string) *harness.Client {
	packages := append([]string{name + "==" + version}, strings.Fields(with)...)
	install := func() (*exec.Cmd, error) {
		dir, err := harness.Install("python/"+name+"-"+version, strings.Join(packages, " "), func(dir string) error {
			if err := harness.Command(dir, nil, "python3", "-m", "venv", "venv"); err != nil {
				return err
			}
			pip := filepath.Join(dir, "venv", "bin", "pip")
			return harness.Command(dir, nil, pip, append([]string{"install", "-q"}, packages...)...)
		})
		if err != nil {
			return nil, err
		}
		cmd := exec.Command(filepath.Join(dir, "venv", "bin", "python"), "-B", "-W", "ignore",
			filepath.Join(harness.Root(), "clients", "python", program))
		cmd.Env = []string{"PYTHONUNBUFFERED=1"}
		return cmd, nil
	}
	return &harness.Client{Name: name, Version: version, Install: install, Cases: cases, Lacks: lacks}
}
