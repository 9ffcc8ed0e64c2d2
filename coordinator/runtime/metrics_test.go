package runtime

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/barnabas-mq/barnabas/internal/telemetry"
)

func TestMetrics(t *testing.T) {
	f, r := newFixture(t), telemetry.NewRegistry()
	f.rt.metrics = newMetrics(r, "numbers")
	f.openErr = errAppend
	f.rt.Elected(0, 1)
	f.want(f.get("a"), "error 14")
	f.openErr = nil
	f.clock.Advance(reloadMin)
	f.set("a", 1)
	f.clock.Advance(flushEvery)
	f.set("a", 2)
	f.kv.failIn = 1
	f.clock.Advance(flushEvery)
	f.log.failIn = 1
	f.set("a", 3)
	rec := httptest.NewRecorder()
	r.Handler().ServeHTTP(rec, httptest.NewRequest("GET", "/metrics", nil))
	for _, want := range []string{
		"load_failures_total 1", "load_seconds_count 1", "checkpoint_writes_total 1",
		"checkpoint_failures_total 1", "append_failures_total 1", "partitions 0",
	} {
		name, value, _ := strings.Cut(want, " ")
		if line := "\nbarnabas_coordinator_" + name + `{topic="numbers"} ` + value + "\n"; !strings.Contains(rec.Body.String(), line) {
			t.Errorf("no line %q", line)
		}
	}
}
