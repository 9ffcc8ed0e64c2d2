package api

import (
	"io"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/clock"
	"github.com/barnabas-mq/barnabas/server/clientmetrics"
)

// TestAConnectionSpeaksForOneInstance has one connection ask for many instances of
// itself, and end some of them: another connection's instance stays, and of those
// of the one the last.
func TestAConnectionSpeaksForOneInstance(t *testing.T) {
	var ids byte
	b := newTestBroker(t, nil)
	b.h.ClientMetrics = clientmetrics.New(clientmetrics.Options{
		Clock: clock.Real(), Log: slog.New(slog.DiscardHandler), Metrics: b.metrics, MaxBytes: 1 << 20,
		NewID: func() clientmetrics.ID { ids++; return clientmetrics.ID{15: 100 + ids} },
	})
	honest, greedy := b.dial("honest"), b.dial("greedy")
	askAs[*kmsg.GetTelemetrySubscriptionsResponse](honest, 0, kmsg.NewPtrGetTelemetrySubscriptionsRequest())
	for i := range 50 {
		r := askAs[*kmsg.GetTelemetrySubscriptionsResponse](greedy, 0, kmsg.NewPtrGetTelemetrySubscriptionsRequest())
		if i%2 == 0 {
			push := kmsg.NewPtrPushTelemetryRequest()
			push.ClientInstanceID, push.SubscriptionID, push.Terminating = r.ClientInstanceID, r.SubscriptionID, true
			if p := askAs[*kmsg.PushTelemetryResponse](greedy, 0, push); p.ErrorCode != 0 {
				t.Fatal(p.ErrorCode)
			}
		}
	}
	page := httptest.NewRecorder()
	b.metrics.Handler().ServeHTTP(page, httptest.NewRequest("GET", "/metrics", nil))
	text, err := io.ReadAll(page.Body)
	if err != nil {
		t.Fatal(err)
	}
	if want := "barnabas_client_metrics_instances 2\n"; !strings.Contains(string(text), want) {
		t.Errorf("no %s in\n%s", want, text)
	}
}
