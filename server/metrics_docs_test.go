package server_test

import (
	"flag"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/barnabas-mq/barnabas/internal/clock"
	"github.com/barnabas-mq/barnabas/internal/telemetry"
	"github.com/barnabas-mq/barnabas/internal/vfs"
	"github.com/barnabas-mq/barnabas/server"
	"github.com/barnabas-mq/barnabas/server/config"
)

var updateMetrics = flag.Bool("update-metrics", false, "write docs/metrics.md anew")

const metricsFile = "../docs/metrics.md"

// TestMetricsPage starts a whole node, because each part registers its own metrics.
func TestMetricsPage(t *testing.T) {
	static, _, err := config.Load(config.Input{Flags: []config.Setting{
		{Key: config.LogDirs.Name, Value: "data"},
		{Key: "listeners", Value: "PLAINTEXT://127.0.0.1:0"},
		{Key: config.AdminListener.Name, Value: "127.0.0.1:0"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	metrics := telemetry.NewRegistry()
	n, err := server.Start(server.Env{
		Clock: clock.Real(), FS: vfs.NewMem(), Random: rand.Uint64, Log: telemetry.Discard(), Metrics: metrics, Version: "test",
	}, static)
	if err != nil {
		t.Fatal(err)
	}
	want := metrics.Markdown()
	if err := n.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if *updateMetrics {
		if err := os.WriteFile(metricsFile, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(metricsFile)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("docs/metrics.md is not what the program has; write it with: go test ./server -run TestMetricsPage -update-metrics")
	}
}
