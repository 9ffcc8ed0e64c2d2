package node

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/barnabas-mq/barnabas/compat-tests/harness"
)

var common = []string{
	"codec-none", "codec-gzip", "codec-snappy", "codec-lz4", "codec-zstd", "acks-0", "acks-1", "acks-all", "idempotent", "offsets-by-time", "admin",
}

func cases(more ...string) []string { return append(append([]string(nil), common...), more...) }

// The codecs that users of kafkajs add to it. Its zstd is Node's own.
const codecs = "kafkajs-snappy@1.1.0 lz4-napi@2.10.0"

const classicOnly = "the client is older than KIP-848"

func TestMain(m *testing.M) {
	harness.MainOf(m, nil,
		client("kafkajs", "2.2.4", codecs, "kafkajs.mjs", newest, cases("group", "transaction", "fencing"), nil),
		client("kafkajs", "1.15.0", codecs, "kafkajs.mjs", newest, cases("group", "transaction", "fencing"), nil),
		client("@platformatic/kafka", "2.12.1", "", "platformatic.mjs", newest, cases("group", "group-consumer", "transaction", "fencing"), nil),
		client("@platformatic/kafka", "1.20.0", "", "platformatic.mjs", newest, cases("group"), map[string]string{
			"transaction": "the client has no transactions", "group-consumer": classicOnly,
		}),
		client("node-rdkafka", "3.6.1", "", "node-rdkafka.mjs", native,
			cases("group-range", "group-roundrobin", "group-cooperative-sticky", "group-consumer", "transaction", "fencing"), nil),
		client("node-rdkafka", "2.18.0", "", "node-rdkafka.mjs", native, cases("group-range", "group-roundrobin", "transaction", "fencing"), map[string]string{
			"group-cooperative-sticky": "the client has no incremental assignment", "group-consumer": classicOnly,
		}),
	)
}

func TestClients(t *testing.T) { harness.RunClients(t) }

// runtime makes a Node ready and returns its binary.
type runtime func() (string, error)

// newest is the Node that npm itself has: the clients' newest versions want a newer one than most machines have.
func newest() (string, error) {
	const version = "24.21.0"
	dir, err := harness.Npm("node/node-"+version, nil, "node@"+version)
	return filepath.Join(dir, "node_modules", "node", "bin", "node"), err
}

// native is the machine's Node, whose headers are there to build against.
func native() (string, error) {
	node, err := exec.LookPath("node")
	if err != nil {
		return "", fmt.Errorf("there is no Node.js on this machine (apt-get install nodejs npm): %w", err)
	}
	return node, nil
}

// client is a package of npm in a folder of its own, with the programs beside it.
func client(name, version, with, program string, node runtime, cases []string, lacks map[string]string) *harness.Client {
	c := &harness.Client{Name: name, Version: version, Cases: cases, Lacks: lacks}
	c.Install = func() (*exec.Cmd, error) {
		bin, err := node()
		if err != nil {
			return nil, err
		}
		var dir string
		if name == "node-rdkafka" {
			dir, err = harness.NodeRdkafka(version)
		} else {
			dir, err = harness.Npm("node/"+c.ID(), nil, append([]string{name + "@" + version}, strings.Fields(with)...)...)
		}
		if err != nil {
			return nil, err
		}
		for _, file := range []string{"common.mjs", program} { // a module is looked for from its importer's place
			text, err := os.ReadFile(filepath.Join(harness.Root(), "clients", "node", file))
			if err != nil {
				return nil, err
			}
			if err := os.WriteFile(filepath.Join(dir, file), text, 0o644); err != nil {
				return nil, err
			}
		}
		return exec.Command(bin, filepath.Join(dir, program)), nil
	}
	return c
}
