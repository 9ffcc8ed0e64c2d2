package telemetry

import (
	"cmp"
	"net/http"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/barnabas-mq/barnabas/internal/invariant"
)

// Kinds of metrics, as docs/metrics.md names them.
const (
	KindCounter   = "counter"
	KindGauge     = "gauge"
	KindHistogram = "histogram"
)

// Def describes one metric of a registry.
type Def struct {
	Name, Kind, Help string
	Labels           []string
}

// Registry holds the metrics of one broker. It is safe for concurrent use; the
// nil registry hands out nil metrics, which count nothing.
type Registry struct {
	prom *prometheus.Registry

	mu      sync.Mutex
	defs    map[string]Def
	metrics map[string]any
}

// NewRegistry has the collectors of the process and of the Go runtime. They are not
// part of Defs: their names belong to the Prometheus client.
func NewRegistry() *Registry {
	r := &Registry{prom: prometheus.NewRegistry(), defs: map[string]Def{}, metrics: map[string]any{}}
	r.prom.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r
}

// Handler serves the metrics in Prometheus' text format, or OpenMetrics when the
// scraper asks for it.
func (r *Registry) Handler() http.Handler {
	if r == nil {
		return http.NotFoundHandler()
	}
	return promhttp.HandlerFor(r.prom, promhttp.HandlerOpts{EnableOpenMetrics: true, MaxRequestsInFlight: scrapesInFlightMax})
}

// scrapesInFlightMax bounds the memory that scrapers can tie up; a scrape takes
// milliseconds, so more than a few at once are a mistake.
const scrapesInFlightMax = 4

// Defs lists the registered metrics by name; docs/metrics.md is made from it.
func (r *Registry) Defs() []Def {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	defs := make([]Def, 0, len(r.defs))
	for _, d := range r.defs {
		defs = append(defs, d)
	}
	slices.SortFunc(defs, func(a, b Def) int { return cmp.Compare(a.Name, b.Name) })
	return defs
}

// register makes the metric on first use. Asking again for the same definition
// returns the first metric, so two logs or connections can share one; a different
// definition under the same name is a mistake of the program.
func register[M prometheus.Collector](r *Registry, d Def, build func() M) M {
	r.mu.Lock()
	defer r.mu.Unlock()
	if old, ok := r.defs[d.Name]; ok {
		m, same := r.metrics[d.Name].(M)
		invariant.That(same && old.Kind == d.Kind && old.Help == d.Help && slices.Equal(old.Labels, d.Labels),
			"metric %s is registered twice with different definitions", d.Name)
		return m
	}
	m := build()
	r.prom.MustRegister(m)
	d.Labels = slices.Clone(d.Labels)
	r.defs[d.Name], r.metrics[d.Name] = d, m
	return m
}
