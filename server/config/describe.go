package config

import (
	"maps"
	"slices"
	"strings"
)

// Entry is one key of a resource as DescribeConfigs reports it.
type Entry struct {
	Name string
	// Value is nil for null and for what is never shown.
	Value     *string
	Source    Source
	Type      Type
	ReadOnly  bool
	Sensitive bool
	// Synonyms are the values that count, the first of them now, and those that
	// would count if it were not set.
	Synonyms []Synonym
	Doc      string
}

// Synonym is one value behind an Entry.
type Synonym struct {
	Name   string
	Value  *string
	Source Source
}

// DescribeTopic reports a topic on which overrides are set, sorted by name.
func (s *Snapshot) DescribeTopic(overrides map[string]string) []Entry {
	var list []Entry
	for _, d := range topicKeys.sorted() {
		text, set := overrides[d.Name]
		if d.Internal && !set {
			continue
		}
		e := d.entry(s.behind(d))
		if d.Broker != "" {
			e.Synonyms = s.synonyms(brokerKeys.byName[d.Broker])
		}
		if v, err := d.Parse(text); set && err == nil {
			e.Value = d.show(v)
			e.Synonyms = slices.Insert(e.Synonyms, 0, Synonym{Name: d.Name, Value: e.Value, Source: SourceTopic})
		}
		list = append(list, e.withSource())
	}
	return list
}

// behind is the value of the broker's key behind a topic's or a group's, its own
// default where there is none.
func (s *Snapshot) behind(d *Decl) any {
	if d.Broker == "" {
		return d.Default
	}
	v := s.resolved[brokerKeys.byName[d.Broker].id]
	if list, ok := v.([]string); ok && d.Type == TypeString && len(list) > 0 {
		return list[0] // the first of the group's assignors is the default one
	}
	return v
}

// DescribeBroker reports this broker, sorted by name: every key but internal ones
// that are not set, and what was set without being known.
func (s *Snapshot) DescribeBroker() []Entry {
	var list []Entry
	for _, d := range brokerKeys.sorted() {
		synonyms := s.synonyms(d)
		if d.Internal && (len(synonyms) == 0 || synonyms[0].Source == SourceDefault) {
			continue
		}
		e := d.entry(s.raw[d.id])
		e.ReadOnly, e.Synonyms = d.Scope == ReadOnly, synonyms
		list = append(list, e.withSource())
	}
	given := maps.Clone(s.cluster)
	if given == nil {
		given = map[string]string{}
	}
	maps.Copy(given, s.broker)
	for name, set := range s.static.set {
		given[name] = set.Value
	}
	for name := range given {
		if brokerKeys.byName[name] == nil {
			list = append(list, s.unknownEntry(name))
		}
	}
	slices.SortFunc(list, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// unknownEntry reports a key that nobody knows; as in Kafka its value could be a
// secret and is not shown.
func (s *Snapshot) unknownEntry(name string) Entry {
	e := Entry{Name: name, ReadOnly: true, Sensitive: true}
	if _, ok := s.broker[name]; ok {
		e.Synonyms = append(e.Synonyms, Synonym{Name: name, Source: SourceBroker})
	}
	if _, ok := s.cluster[name]; ok {
		e.Synonyms = append(e.Synonyms, Synonym{Name: name, Source: SourceDefaultBroker})
	}
	if _, ok := s.static.set[name]; ok {
		e.Synonyms = append(e.Synonyms, Synonym{Name: name, Source: SourceStatic})
	}
	return e.withSource()
}

// DescribeAllBrokers reports what is set on all brokers, sorted by name.
func (s *Snapshot) DescribeAllBrokers() []Entry {
	var list []Entry
	for _, name := range slices.Sorted(maps.Keys(s.cluster)) {
		d := brokerKeys.byName[name]
		if d == nil {
			e := Entry{Name: name, ReadOnly: true, Sensitive: true}
			e.Synonyms = []Synonym{{Name: name, Source: SourceDefaultBroker}}
			list = append(list, e.withSource())
			continue
		}
		v, err := d.Parse(s.cluster[name])
		if err != nil {
			continue
		}
		e := d.entry(v)
		e.ReadOnly = d.Scope == ReadOnly
		for _, synonym := range s.synonyms(d) {
			if synonym.Source == SourceDefaultBroker {
				e.Synonyms = append(e.Synonyms, synonym)
			}
		}
		list = append(list, e.withSource())
	}
	return list
}

// DescribeGroup reports a group on which overrides are set, sorted by name.
func (s *Snapshot) DescribeGroup(overrides map[string]string) []Entry {
	var list []Entry
	for _, d := range groupKeys.sorted() {
		text, set := overrides[d.Name]
		if d.Internal && !set {
			continue
		}
		e := d.entry(s.behind(d))
		if d.Broker != "" {
			e.Synonyms = s.synonyms(brokerKeys.byName[d.Broker])
		} else if e.Value != nil {
			e.Synonyms = []Synonym{{Name: d.Name, Value: e.Value, Source: SourceDefault}}
		}
		if v, err := d.Parse(text); set && err == nil {
			e.Value = d.show(v)
			e.Synonyms = slices.Insert(e.Synonyms, 0, Synonym{Name: d.Name, Value: e.Value, Source: SourceGroup})
		}
		list = append(list, e.withSource())
	}
	return list
}

// DescribeClientMetrics reports a client metrics subscription, sorted by name.
func DescribeClientMetrics(set map[string]string) []Entry {
	var list []Entry
	for _, d := range metricsKeys.sorted() {
		e := d.entry(d.Default)
		if text, ok := set[d.Name]; ok {
			if v, err := d.Parse(text); err == nil {
				e.Value = d.show(v)
				e.Synonyms = []Synonym{{Name: d.Name, Value: e.Value, Source: SourceClientMetrics}}
			}
		}
		list = append(list, e.withSource())
	}
	return list
}

func (d *Decl) entry(v any) Entry {
	return Entry{Name: d.Name, Value: d.show(v), Type: d.Type, Sensitive: d.Sensitive(), Doc: d.Doc}
}

// show is a value as clients see it; nil for null and secrets.
func (d *Decl) show(v any) *string {
	text, ok := Format(v)
	if !ok || d.Sensitive() {
		return nil
	}
	return &text
}

// withSource takes the source from the first synonym.
func (e Entry) withSource() Entry {
	e.Source = SourceDefault
	if len(e.Synonyms) > 0 {
		e.Source = e.Synonyms[0].Source
	}
	return e
}

// synonymGroups are the keys that set one thing in several units, in the order
// in which they count.
var synonymGroups = [][]string{
	{"log.retention.ms", "log.retention.minutes", "log.retention.hours"},
	{"log.roll.ms", "log.roll.hours"},
	{"log.roll.jitter.ms", "log.roll.jitter.hours"},
}

// synonyms lists the values behind a broker's key in the order in which they
// count: this broker's, all brokers', those of the start, the defaults. As in
// Kafka the list begins with the key itself.
func (s *Snapshot) synonyms(d *Decl) []Synonym {
	names := []string{d.Name}
	if d == LogFlushIntervalMs.decl {
		names = append(names, LogFlushSchedulerIntervalMs.Name)
	}
	for _, group := range synonymGroups {
		if slices.Contains(group, d.Name) {
			names = group
		}
	}
	var list []Synonym
	for _, source := range []Source{SourceBroker, SourceDefaultBroker, SourceStatic, SourceDefault} {
		for _, name := range names {
			if text, ok := s.at(source, name); ok {
				synonym := Synonym{Name: name, Source: source}
				if !d.Sensitive() {
					synonym.Value = &text
				}
				list = append(list, synonym)
			}
		}
	}
	if from := slices.IndexFunc(list, func(o Synonym) bool { return o.Name == d.Name }); from >= 0 {
		return list[from:]
	}
	return nil
}

// at is the text of a key at one source.
func (s *Snapshot) at(source Source, name string) (string, bool) {
	switch source {
	case SourceBroker:
		text, ok := s.broker[name]
		return text, ok
	case SourceDefaultBroker:
		text, ok := s.cluster[name]
		return text, ok
	case SourceStatic:
		set, ok := s.static.set[name]
		return set.Value, ok
	}
	return Format(brokerKeys.byName[name].Default)
}
