package clientmetrics

import (
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/barnabas-mq/barnabas/internal/telemetry"
)

// stats counts pushes and what is in them.
type stats struct{ gets, pushes, points, dropped *telemetry.Counter }

func newStats(r *telemetry.Registry) stats {
	return stats{
		gets:    r.Counter("barnabas_client_metrics_subscriptions_total", "Questions of clients which metrics to push, by outcome: NONE, or Kafka's name of the error.", "outcome"),
		pushes:  r.Counter("barnabas_client_metrics_pushes_total", "Pushes of clients' metrics, by outcome: NONE, or Kafka's name of the error.", "outcome"),
		points:  r.Counter("barnabas_client_metrics_points_total", "Values that clients have pushed."),
		dropped: r.Counter("barnabas_client_metrics_dropped_total", "Values that were pushed and not kept: of a kind that is not read, or too many."),
	}
}

func (s stats) asked(err *kerr.Error)  { s.gets.With(outcome(err)).Inc() }
func (s stats) pushed(err *kerr.Error) { s.pushes.With(outcome(err)).Inc() }

func outcome(err *kerr.Error) string {
	if err == nil {
		return "NONE"
	}
	return err.Message
}

func (s stats) took(points, dropped int) {
	s.points.Add(float64(points))
	s.dropped.Add(float64(dropped))
}
