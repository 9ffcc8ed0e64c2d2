package api

import (
	"io"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/cluster/metadata"
	"github.com/barnabas-mq/barnabas/internal/clock"
	"github.com/barnabas-mq/barnabas/server/clientmetrics"
)

// TestTelemetryIsListedWhereItIsWanted asks for ApiVersions before, while and after
// there is a subscription: only then are the telemetry APIs listed. They are served
// at any time.
func TestTelemetryIsListedWhereItIsWanted(t *testing.T) {
	b := newTestBroker(t, nil)
	m := clientmetrics.New(clientmetrics.Options{
		Clock: clock.Real(), Log: slog.New(slog.DiscardHandler), Metrics: b.metrics, MaxBytes: 1 << 20,
		NewID: func() clientmetrics.ID { return clientmetrics.ID{15: 100} },
	})
	b.h.ClientMetrics = m
	c := b.dial("client")
	listed := func() []int16 {
		var keys []int16
		for _, k := range askAs[*kmsg.ApiVersionsResponse](c, 0, kmsg.NewPtrApiVersionsRequest()).ApiKeys {
			if isTelemetry(k.ApiKey) {
				keys = append(keys, k.ApiKey)
			}
		}
		return keys
	}
	if keys := listed(); keys != nil {
		t.Errorf("without a subscription %v are listed", keys)
	}
	if r := askAs[*kmsg.GetTelemetrySubscriptionsResponse](c, 0, kmsg.NewPtrGetTelemetrySubscriptionsRequest()); r.ErrorCode != 0 || len(r.RequestedMetrics) != 0 {
		t.Errorf("without a subscription the answer is %+v", r)
	}
	interval, r := "60000", metadata.ConfigResource{Type: metadata.ResourceClientMetrics, Name: "all"}
	img := b.image.Load()
	for _, value := range []*string{&interval, nil} {
		next, delta, err := img.Next(img.Offset+1, []metadata.Record{&metadata.ConfigRecord{Resource: r, Name: "interval.ms", Value: value}})
		if err != nil {
			t.Fatal(err)
		}
		img = next
		m.OnMetadata(delta, img)
		if keys := listed(); (len(keys) == 2) != (value != nil) {
			t.Errorf("with the subscription's interval %v, %v are listed", value, keys)
		}
	}
}

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
