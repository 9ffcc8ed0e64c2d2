package telemetry

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Counter only grows. A counter with labels is counted through With.
type Counter struct {
	vec *prometheus.CounterVec
	one prometheus.Counter
}

// Counter registers a counter; by convention its name ends in _total.
func (r *Registry) Counter(name, help string, labels ...string) *Counter {
	if r == nil {
		return nil
	}
	vec := register(r, Def{name, KindCounter, help, labels}, func() *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	})
	c := &Counter{vec: vec}
	if len(labels) == 0 {
		c.one = vec.WithLabelValues()
	}
	return c
}

// With is the counter of these label values. Hot paths keep the result.
func (c *Counter) With(values ...string) *Counter {
	if c == nil {
		return nil
	}
	return &Counter{vec: c.vec, one: c.vec.WithLabelValues(values...)}
}

// Inc adds one.
func (c *Counter) Inc() { c.Add(1) }

// Add adds n, which is not negative.
func (c *Counter) Add(n float64) {
	if c != nil && c.one != nil {
		c.one.Add(n)
	}
}

// Gauge goes up and down. A gauge with labels is set through With.
type Gauge struct {
	vec *prometheus.GaugeVec
	one prometheus.Gauge
}

// Gauge registers a gauge.
func (r *Registry) Gauge(name, help string, labels ...string) *Gauge {
	if r == nil {
		return nil
	}
	vec := register(r, Def{name, KindGauge, help, labels}, func() *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	})
	g := &Gauge{vec: vec}
	if len(labels) == 0 {
		g.one = vec.WithLabelValues()
	}
	return g
}

// With is the gauge of these label values. Hot paths keep the result.
func (g *Gauge) With(values ...string) *Gauge {
	if g == nil {
		return nil
	}
	return &Gauge{vec: g.vec, one: g.vec.WithLabelValues(values...)}
}

// Delete forgets the gauge of these label values, as when a topic goes away.
func (g *Gauge) Delete(values ...string) {
	if g != nil {
		g.vec.DeleteLabelValues(values...)
	}
}

// Set replaces the value.
func (g *Gauge) Set(v float64) {
	if g != nil && g.one != nil {
		g.one.Set(v)
	}
}

// Add changes the value by d.
func (g *Gauge) Add(d float64) {
	if g != nil && g.one != nil {
		g.one.Add(d)
	}
}

// funcMetric reads its value when it is scraped. The function is replaced when
// the same name is registered again, as by a component that was restarted.
type funcMetric struct {
	prometheus.Collector
	read *atomic.Pointer[func() float64]
}

// GaugeFunc registers a gauge that is read when it is scraped. A second
// registration of the name replaces the function.
func (r *Registry) GaugeFunc(name, help string, read func() float64) {
	r.registerFunc(Def{Name: name, Kind: KindGauge, Help: help}, read)
}

// CounterFunc registers a counter that is read when it is scraped, for counts
// kept by somebody else. A second registration replaces the function.
func (r *Registry) CounterFunc(name, help string, read func() float64) {
	r.registerFunc(Def{Name: name, Kind: KindCounter, Help: help}, read)
}

func (r *Registry) registerFunc(d Def, read func() float64) {
	if r == nil {
		return
	}
	m := register(r, d, func() funcMetric {
		current := &atomic.Pointer[func() float64]{}
		current.Store(&read)
		call := func() float64 { return (*current.Load())() }
		if d.Kind == KindCounter {
			return funcMetric{prometheus.NewCounterFunc(prometheus.CounterOpts{Name: d.Name, Help: d.Help}, call), current}
		}
		return funcMetric{prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: d.Name, Help: d.Help}, call), current}
	})
	m.read.Store(&read)
}

// Histogram counts observations in buckets. With labels it is used through With.
type Histogram struct {
	vec *prometheus.HistogramVec
	one prometheus.Observer
}

// secondsBuckets go from a request served on a loop (tens of microseconds) to a
// client's request time-out.
var secondsBuckets = []float64{
	.00005, .0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30,
}

// Histogram registers a histogram of seconds.
func (r *Registry) Histogram(name, help string, labels ...string) *Histogram {
	return r.HistogramBuckets(name, help, secondsBuckets, labels...)
}

// HistogramBuckets registers a histogram with these upper bounds.
func (r *Registry) HistogramBuckets(name, help string, buckets []float64, labels ...string) *Histogram {
	if r == nil {
		return nil
	}
	vec := register(r, Def{name, KindHistogram, help, labels}, func() *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	})
	h := &Histogram{vec: vec}
	if len(labels) == 0 {
		h.one = vec.WithLabelValues()
	}
	return h
}

// With is the histogram of these label values. Hot paths keep the result.
func (h *Histogram) With(values ...string) *Histogram {
	if h == nil {
		return nil
	}
	return &Histogram{vec: h.vec, one: h.vec.WithLabelValues(values...)}
}

// Observe counts v.
func (h *Histogram) Observe(v float64) {
	if h != nil && h.one != nil {
		h.one.Observe(v)
	}
}

// ObserveDuration counts d in seconds.
func (h *Histogram) ObserveDuration(d time.Duration) { h.Observe(d.Seconds()) }
