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

func TestRoundTrip(t *testing.T) {
	for _, what := range []string{
		"codec:none:true", "codec:gzip:true", "codec:snappy:true", "codec:lz4:true", "codec:zstd:true", "codec:none:false",
		"group:RangeAssignor", "group:RoundRobinAssignor", "group:StickyAssignor", "group:CooperativeStickyAssignor", "admin",
	} {
		t.Run(what, func(t *testing.T) { java(t, what) })
	}
}

func java(t *testing.T, what string) {
	if errors.Is(libsErr, harness.ErrNoJVM) {
		harness.Skip(t, "%v", libsErr)
	}
	if libsErr != nil {
		t.Fatal(libsErr)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	source := filepath.Join(harness.Root(), "clients", "java", "RoundTrip.java")
	out, err := exec.CommandContext(ctx, "java", harness.JavaArgs(libs, 256, source, harness.Shared.Addr(), what)...).CombinedOutput()
	if err != nil || !strings.HasSuffix(strings.TrimSpace(string(out)), "done") {
		t.Fatalf("%v:\n%s", err, out)
	}
}
