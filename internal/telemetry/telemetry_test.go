package telemetry_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/barnabas-mq/barnabas/internal/telemetry"
)

func scrape(t *testing.T, r *telemetry.Registry) string {
	t.Helper()
	w := httptest.NewRecorder()
	r.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	return w.Body.String()
}

func TestMetricsAreServed(t *testing.T) {
	r := telemetry.NewRegistry()
	c := r.Counter("a_total", "As.")
	c.Inc()
	c.Add(2)
	r.Counter("b_total", "Bs.", "api", "code").With("Fetch", "0").Add(5)
	g := r.Gauge("c", "Cs.")
	g.Set(4)
	g.Add(-1)
	r.GaugeFunc("d", "Ds.", func() float64 { return 7 })
	r.CounterFunc("e_total", "Es.", func() float64 { return 8 })
	r.Histogram("f_seconds", "Fs.", "api").With("Produce").ObserveDuration(2 * time.Millisecond)

	got := scrape(t, r)
	for _, line := range []string{
		"a_total 3\n", `b_total{api="Fetch",code="0"} 5` + "\n", "\nc 3\n", "\nd 7\n", "e_total 8\n",
		`f_seconds_bucket{api="Produce",le="0.001"} 0`, `f_seconds_bucket{api="Produce",le="0.0025"} 1`,
		"# HELP a_total As.", "go_goroutines ",
	} {
		if !strings.Contains(got, line) {
			t.Errorf("scrape lacks %q:\n%s", line, got)
		}
	}
}

func TestSameDefinitionIsSharedAndAnotherPanics(t *testing.T) {
	r := telemetry.NewRegistry()
	r.Counter("x_total", "Xs.").Inc()
	r.Counter("x_total", "Xs.").Inc()
	r.GaugeFunc("y", "Ys.", func() float64 { return 1 })
	r.GaugeFunc("y", "Ys.", func() float64 { return 2 })
	if got := scrape(t, r); !strings.Contains(got, "x_total 2\n") || !strings.Contains(got, "\ny 2\n") {
		t.Errorf("scrape: %s", got)
	}
	defer func() {
		if recover() == nil {
			t.Error("a second definition of x_total was accepted")
		}
	}()
	r.Gauge("x_total", "Xs.")
}

func TestNilRegistryCountsNothing(t *testing.T) {
	var r *telemetry.Registry
	r.Counter("a", "").Inc()
	r.Counter("a", "", "l").With("v").Add(1)
	r.Gauge("a", "").Set(1)
	r.Gauge("a", "", "l").With("v").Add(1)
	r.Gauge("a", "", "l").Delete("v")
	r.GaugeFunc("a", "", nil)
	r.CounterFunc("a", "", nil)
	r.Histogram("a", "").Observe(1)
	r.Histogram("a", "", "l").With("v").ObserveDuration(1)
	if d := r.Defs(); d != nil {
		t.Errorf("defs of nil: %v", d)
	}
}

func TestMarkdownListsEveryMetricSorted(t *testing.T) {
	r := telemetry.NewRegistry()
	r.Gauge("z", "Last, with a | in it.")
	r.Counter("a_total", "First.", "api", "code")
	md := r.Markdown()
	a := strings.Index(md, "| `a_total` | counter | `api`, `code` | First. |\n")
	z := strings.Index(md, "| `z` | gauge |  | Last, with a \\| in it. |\n")
	if a < 0 || z < a {
		t.Errorf("markdown:\n%s", md)
	}
}

func TestLoggerFormatsAndLevels(t *testing.T) {
	var text, js bytes.Buffer
	lt := telemetry.NewLogger(telemetry.FormatText, slog.LevelWarn, &text)
	lj := telemetry.NewLogger(telemetry.FormatJSON, slog.LevelInfo, &js)
	lt.Info("hidden")
	lt.Warn("shown", "peer", "1.2.3.4")
	lj.Info("hello", "n", 3)
	if s := text.String(); strings.Contains(s, "hidden") || !strings.Contains(s, "msg=shown peer=1.2.3.4") {
		t.Errorf("text: %s", s)
	}
	var rec map[string]any
	if err := json.Unmarshal(js.Bytes(), &rec); err != nil || rec["msg"] != "hello" || rec["n"] != 3.0 {
		t.Errorf("json: %s (%v)", js.String(), err)
	}
	for name, want := range map[string]slog.Level{"DEBUG": slog.LevelDebug, "info": slog.LevelInfo, "Warn": slog.LevelWarn, "ERROR": slog.LevelError} {
		if got, err := telemetry.ParseLevel(name); err != nil || got != want {
			t.Errorf("ParseLevel(%q) = %v, %v", name, got, err)
		}
	}
	if _, err := telemetry.ParseLevel("loud"); err == nil {
		t.Error("ParseLevel accepted \"loud\"")
	}
}
