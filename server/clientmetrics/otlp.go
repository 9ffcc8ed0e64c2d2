package clientmetrics

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"
)

// point is one value of a metric.
type point struct {
	name string
	// counter says that the value only grows, delta that it is what came on top
	// since the point before.
	counter, delta bool
	value          float64
	// attributes are the point's own, resource those of who pushes it.
	attributes, resource []attribute
}

type attribute struct{ key, value string }

// The fields of OpenTelemetry's MetricsData and of the messages in it, as far as
// they are read (opentelemetry/proto/metrics/v1/metrics.proto).
const (
	dataResourceMetrics     = 1
	resourceMetricsResource = 1
	resourceMetricsScopes   = 2
	resourceAttributes      = 1
	scopeMetrics            = 2
	metricName              = 1
	metricGauge             = 5
	metricSum               = 7
	metricHistogram         = 9
	listPoints              = 1
	listTemporality         = 2
	sumMonotonic            = 3
	numberDouble            = 4
	numberInt               = 6
	numberAttributes        = 7
	numberFlags             = 8
	histogramCount          = 4
	histogramSum            = 5
	histogramAttributes     = 9
	histogramFlags          = 10
	pairKey                 = 1
	pairValue               = 2
	valueString             = 1
	valueBool               = 2
	valueInt                = 3
	valueDouble             = 4

	temporalityDelta = 1
	flagNoValue      = 1
)

// pointsMax bounds what one push may become: Java clients send some hundred points.
const pointsMax = 10_000

var errTooManyPoints = fmt.Errorf("more than %d points in a push", pointsMax)

// parseOTLP reads one MetricsData message. Histograms become their count and sum;
// points of other kinds are skipped and counted.
func parseOTLP(data []byte) (points []point, skipped int, err error) {
	p := otlp{}
	err = eachField(data, func(num protowire.Number, v field) error {
		if num == dataResourceMetrics {
			return p.resourceMetrics(v.bytes)
		}
		return nil
	})
	return p.points, p.skipped, err
}

type otlp struct {
	points  []point
	skipped int
}

// field is one field's value, of which the kind that the wire has is set.
type field struct {
	bytes  []byte
	number uint64
}

func (f field) float() float64 { return math.Float64frombits(f.number) }

// eachField walks over a message; every length is checked by protowire.
func eachField(msg []byte, visit func(protowire.Number, field) error) error {
	for len(msg) > 0 {
		num, kind, n := protowire.ConsumeTag(msg)
		if n < 0 {
			return protowire.ParseError(n)
		}
		msg = msg[n:]
		var f field
		switch kind {
		case protowire.BytesType:
			f.bytes, n = protowire.ConsumeBytes(msg)
		case protowire.VarintType:
			f.number, n = protowire.ConsumeVarint(msg)
		case protowire.Fixed64Type:
			f.number, n = protowire.ConsumeFixed64(msg)
		case protowire.Fixed32Type:
			var v uint32
			v, n = protowire.ConsumeFixed32(msg)
			f.number = uint64(v)
		default:
			return errors.New("protobuf groups are not used by OTLP")
		}
		if n < 0 {
			return protowire.ParseError(n)
		}
		msg = msg[n:]
		if err := visit(num, f); err != nil {
			return err
		}
	}
	return nil
}

func (p *otlp) resourceMetrics(msg []byte) error {
	var common []attribute
	var scopes [][]byte
	err := eachField(msg, func(num protowire.Number, v field) error {
		switch num {
		case resourceMetricsResource:
			return eachField(v.bytes, func(num protowire.Number, v field) (err error) {
				if num == resourceAttributes {
					common, err = appendAttribute(common, v.bytes)
				}
				return err
			})
		case resourceMetricsScopes:
			scopes = append(scopes, v.bytes)
		}
		return nil
	})
	for _, scope := range scopes {
		if err != nil {
			break
		}
		err = eachField(scope, func(num protowire.Number, v field) error {
			if num == scopeMetrics {
				return p.metric(v.bytes, common)
			}
			return nil
		})
	}
	return err
}

func (p *otlp) metric(msg []byte, common []attribute) error {
	var name string
	var kind protowire.Number
	var body []byte
	err := eachField(msg, func(num protowire.Number, v field) error {
		switch {
		case num == metricName:
			name = string(v.bytes)
		case num >= metricGauge && v.bytes != nil:
			kind, body = num, v.bytes
		}
		return nil
	})
	if err != nil {
		return err
	}
	list := pointList{name: name, resource: common}
	switch kind {
	case metricGauge:
		return list.read(body, p, p.number)
	case metricSum:
		return list.read(body, p, p.number)
	case metricHistogram:
		list.counter = true
		return list.read(body, p, p.histogram)
	}
	p.skipped++
	return nil
}

// pointList is what the points of a metric have in common.
type pointList struct {
	name           string
	counter, delta bool
	resource       []attribute
}

// read walks over a Gauge, Sum or Histogram, whose fields have the same numbers. The
// points are read last: what they mean may stand behind them.
func (l pointList) read(msg []byte, p *otlp, one func(pointList, []byte) error) error {
	var points [][]byte
	err := eachField(msg, func(num protowire.Number, v field) error {
		switch num {
		case listPoints:
			points = append(points, v.bytes)
		case listTemporality:
			l.delta = v.number == temporalityDelta
		case sumMonotonic:
			l.counter = l.counter || v.number != 0
		}
		return nil
	})
	for _, point := range points {
		if err != nil {
			break
		}
		if len(p.points) >= pointsMax {
			return errTooManyPoints
		}
		err = one(l, point)
	}
	return err
}

func (p *otlp) number(l pointList, msg []byte) error {
	out := point{name: l.name, counter: l.counter, delta: l.delta, resource: l.resource}
	has := false
	err := eachField(msg, func(num protowire.Number, v field) (err error) {
		switch num {
		case numberDouble:
			out.value, has = v.float(), true
		case numberInt:
			out.value, has = float64(int64(v.number)), true
		case numberAttributes:
			out.attributes, err = appendAttribute(out.attributes, v.bytes)
		case numberFlags:
			has = has && v.number&flagNoValue == 0
		}
		return err
	})
	p.keep(out, has)
	return err
}

func (p *otlp) histogram(l pointList, msg []byte) error {
	out := point{counter: true, delta: l.delta, resource: l.resource}
	var count, sum float64
	var hasCount, hasSum bool
	err := eachField(msg, func(num protowire.Number, v field) (err error) {
		switch num {
		case histogramCount:
			count, hasCount = float64(v.number), true
		case histogramSum:
			sum, hasSum = v.float(), true
		case histogramAttributes:
			out.attributes, err = appendAttribute(out.attributes, v.bytes)
		case histogramFlags:
			if v.number&flagNoValue != 0 {
				hasCount, hasSum = false, false
			}
		}
		return err
	})
	out.name, out.value = l.name+".count", count
	p.keep(out, hasCount)
	if hasSum {
		out.name, out.value = l.name+".sum", sum
		p.keep(out, true)
	}
	return err
}

func (p *otlp) keep(out point, has bool) {
	if !has || out.name == "" {
		p.skipped++
		return
	}
	p.points = append(p.points, out)
}

// appendAttribute reads a KeyValue, cut to what a label holds. Lists and maps as values
// are left out, and so are more than there are labels.
func appendAttribute(list []attribute, msg []byte) ([]attribute, error) {
	var a attribute
	var has bool
	err := eachField(msg, func(num protowire.Number, v field) error {
		switch num {
		case pairKey:
			a.key = string(v.bytes)
		case pairValue:
			return eachField(v.bytes, func(num protowire.Number, v field) error {
				has = true
				switch num {
				case valueString:
					a.value = string(v.bytes)
				case valueBool:
					a.value = strconv.FormatBool(v.number != 0)
				case valueInt:
					a.value = strconv.FormatInt(int64(v.number), 10)
				case valueDouble:
					a.value = strconv.FormatFloat(v.float(), 'g', -1, 64)
				default:
					has = false
				}
				return nil
			})
		}
		return nil
	})
	if err != nil || !has || a.key == "" || len(list) >= labelsMax {
		return list, err
	}
	return append(list, attribute{cut(a.key, labelMax), cut(a.value, labelMax)}), nil
}
