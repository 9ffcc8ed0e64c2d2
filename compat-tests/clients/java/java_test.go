package java

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/barnabas-mq/barnabas/compat-tests/harness"
)

var (
	libs    string
	libsErr error
)

func TestMain(m *testing.M) {
	version := "not installed"
	if libs, libsErr = harness.JavaLibs(); libsErr == nil {
		if jars, _ := filepath.Glob(filepath.Join(libs, "kafka-clients-*.jar")); len(jars) == 1 {
			version = strings.TrimSuffix(strings.TrimPrefix(filepath.Base(jars[0]), "kafka-clients-"), ".jar")
		}
	}
	harness.Describe("Apache Kafka's Java client", version)
	harness.Main(m, nil)
}

var parts = []string{
	"codec:none:true", "codec:gzip:true", "codec:snappy:true", "codec:lz4:true", "codec:zstd:true", "codec:none:false",
	"group:RangeAssignor", "group:RoundRobinAssignor", "group:StickyAssignor", "group:CooperativeStickyAssignor", "admin",
}

// consumerParts are those of the new group protocol (KIP-848).
var consumerParts = []string{"commit", "join", "range", "static", "regex", "migrate", "configs"}

// TestRoundTrip and TestConsumerProtocol run a Java program once for all its
// parts.
func TestRoundTrip(t *testing.T) { runParts(t, "RoundTrip.java", parts) }

func TestConsumerProtocol(t *testing.T) { runParts(t, "ConsumerProtocol.java", consumerParts) }

func runParts(t *testing.T, program string, parts []string) {
	t.Helper()
	if errors.Is(libsErr, harness.ErrNoJVM) {
		harness.Skip(t, "%v", libsErr)
	}
	if libsErr != nil {
		t.Fatal(libsErr)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Minute)
	defer cancel()
	source := filepath.Join(harness.Root(), "clients", "java", program)
	args := append([]string{harness.Shared.Addr()}, parts...)
	out, err := exec.CommandContext(ctx, "java", harness.JavaArgs(libs, 256, source, args...)...).CombinedOutput()
	if err != nil || !strings.HasSuffix(strings.TrimSpace(string(out)), "done") {
		t.Fatalf("%v:\n%s", err, out)
	}
	for _, part := range parts {
		t.Run(part, func(t *testing.T) {
			if !strings.Contains(string(out), "passed "+part+"\n") {
				t.Errorf("%s", out)
			}
		})
	}
}
