package rust

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/barnabas-mq/barnabas/compat-tests/harness"
)

var codecs = []string{"codec-none", "codec-gzip", "codec-snappy", "codec-lz4", "codec-zstd"}

// What both versions of rdkafka do, and what the newest one does besides.
var (
	bound = []string{
		"acks-0", "acks-1", "acks-all", "idempotent", "group-range", "group-roundrobin", "offsets-by-time", "transaction", "fencing", "admin",
	}
	boundNewest = []string{
		"group-cooperative-sticky", "group-consumer", "restart-none", "restart-gzip", "restart-snappy", "restart-lz4", "restart-zstd", "delete-records",
	}
)

// lacking is what rskafka has no means for in any version, and more.
func lacking(more map[string]string) map[string]string {
	const acks, groups, txn = "the client always waits for all in-sync replicas", "the client has no groups, and so no commits", "the client has no transactions"
	lacks := map[string]string{
		"acks-0": acks, "acks-1": acks, "idempotent": "the client has no idempotent producer",
		"group": groups, "restart": groups, "transaction": txn, "fencing": txn,
	}
	maps.Copy(lacks, more)
	return lacks
}

func TestMain(m *testing.M) {
	harness.MainOf(m, nil,
		rdkafka("0.39.0", "4.10.0", `[]`, slices.Concat(codecs, bound, boundNewest), nil),
		rdkafka("0.26.0", "4.0.0", `["old"]`, slices.Concat(codecs, bound), map[string]string{
			"group-cooperative-sticky": "the client has no incremental assignment", "group-consumer": "the client is older than KIP-848",
			"restart": "the client cannot commit an offset with a note", "delete-records": "the client has no such request",
		}),
		rskafka("0.6.0", `chrono = { version = "=0.4.42", default-features = false }`, `[]`,
			slices.Concat(codecs, []string{"acks-all", "offsets-by-time", "delete-records", "admin"}), lacking(nil)),
		rskafka("0.2.0", `time = "=0.3.44"`, `["old"]`,
			slices.Concat(codecs, []string{"acks-all", "delete-records", "admin"}), lacking(map[string]string{
				"offsets-by-time": "the client cannot search by time",
			})),
	)
}

func TestClients(t *testing.T) { harness.RunClients(t) }

// rdkafka builds librdkafka from the source that a version of rdkafka-sys ships.
func rdkafka(version, sys, features string, cases []string, lacks map[string]string) *harness.Client {
	dependencies := fmt.Sprintf(`rdkafka = { version = "=%s", default-features = false, features = ["libz-static", "zstd"] }
rdkafka-sys = { version = "=%s", default-features = false }
futures-executor = "=0.3.31"`, version, sys)
	c := &harness.Client{Name: "rdkafka", Version: version, Cases: cases, Lacks: lacks}
	c.Install = program("rust/"+c.ID(), fmt.Sprintf(manifest, features, dependencies), "rdkafka.rs", "group.rs", "common.rs")
	return c
}

// rskafka is told times in the types of another crate, which is not the same in every version.
func rskafka(version, times, features string, cases []string, lacks map[string]string) *harness.Client {
	dependencies := fmt.Sprintf(`rskafka = "=%s"
tokio = { version = "=1.47.1", features = ["rt", "net", "time"] }
%s`, version, times)
	c := &harness.Client{Name: "rskafka", Version: version, Cases: cases, Lacks: lacks}
	c.Install = program("rust/"+c.ID(), fmt.Sprintf(manifest, features, dependencies), "rskafka.rs", "common.rs")
	return c
}

// manifest is a package's, with the features that are on and the dependencies. What those depend on in turn is settled
// by the first build, in the cache; edition 2024 has Cargo pick nothing that asks for a newer Rust than is there.
// What a program does otherwise with the feature "old" is said in it.
const manifest = `[package]
name = "client"
version = "0.0.0"
edition = "2024"

[features]
default = %s
old = []

[dependencies]
serde_json = "=1.0.145"
%s

[profile.dev]
debug = false
incremental = false
`

// program installs a package whose main program is the first of the sources of this folder.
func program(name, manifest string, sources ...string) func() (*exec.Cmd, error) {
	return func() (*exec.Cmd, error) {
		files := map[string][]byte{}
		for i, source := range sources {
			text, err := os.ReadFile(filepath.Join(harness.Root(), "clients", "rust", source))
			if err != nil {
				return nil, err
			}
			if i == 0 {
				source = "main.rs"
			}
			files[source] = text
		}
		program, err := harness.Cargo(name, manifest, files)
		if err != nil {
			return nil, err
		}
		return exec.Command(program), nil
	}
}
