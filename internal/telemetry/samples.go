package telemetry

import "github.com/prometheus/client_golang/prometheus"

// Sample is one value of somebody else's metric, such as a client's.
type Sample struct {
	Name, Kind, Help string
	Labels, Values   []string
	Value            float64
}

// Samples adds what read returns to each scrape. Names that begin with a prefix of
// their own collide with nothing; samples of one name have one kind and one help
// text. They are no part of Defs.
func (r *Registry) Samples(read func() []Sample) {
	if r != nil {
		r.prom.MustRegister(sampler(read))
	}
}

// sampler is a collector that nobody can describe beforehand.
type sampler func() []Sample

// Describe says nothing, which leaves the check to each scrape.
func (sampler) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (s sampler) Collect(out chan<- prometheus.Metric) {
	for _, v := range s() {
		kind := prometheus.GaugeValue
		if v.Kind == KindCounter {
			kind = prometheus.CounterValue
		}
		m, err := prometheus.NewConstMetric(prometheus.NewDesc(v.Name, v.Help, v.Labels, nil), kind, v.Value, v.Values...)
		if err != nil {
			m = prometheus.NewInvalidMetric(prometheus.NewDesc(v.Name, v.Help, nil, nil), err)
		}
		out <- m
	}
}
