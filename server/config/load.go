package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Input is everything that a start is configured with.
type Input struct {
	// Flags are the settings of the command line; later ones win.
	Flags []Setting
	// Environ is the environment as NAME=value.
	Environ []string
	// File is the properties file's name, "" when there is none, and FileText
	// what it holds: this package touches no disk.
	File     string
	FileText []byte
}

// Load merges flags over environment over file and checks the whole. Warnings
// are sentences for the log. The error is a *Refusal.
func Load(in Input) (*Static, []string, error) {
	l := loadAll(in, nil)
	if len(l.problems) > 0 {
		slices.SortStableFunc(l.problems, func(a, b Problem) int { return cmp.Compare(a.Key, b.Key) })
		return nil, l.warnings, &Refusal{Problems: l.problems}
	}
	return l.static, l.warnings, nil
}

// Sound is what a start would use if every setting that Load refuses were left
// out, for those who look at the rest as well; nil when that does not work.
func Sound(in Input) *Static {
	without := map[string]bool{}
	for {
		l := loadAll(in, without)
		if len(l.problems) == 0 {
			return l.static
		}
		before := len(without)
		for _, p := range l.problems {
			without[p.Key] = true
		}
		if len(without) == before {
			return nil
		}
	}
}

// AnyEnv says whether the environment sets anything.
func AnyEnv(environ []string) bool { return len(fromEnv(environ)) > 0 }

func loadAll(in Input, without map[string]bool) *loader {
	l := &loader{static: Defaults()}
	if !without["config"] { // the name of the file itself
		l.file(in.File, in.FileText)
	}
	env := fromEnv(in.Environ)
	l.setAll(env)
	l.setAll(in.Flags)
	l.topicKeys()
	maps.DeleteFunc(l.static.set, func(key string, _ Setting) bool { return without[key] })
	l.deriveListeners(env)
	l.parse()
	l.static.listeners = l.checkAll()
	return l
}

// loader collects what Load finds.
type loader struct {
	static   *Static
	problems []Problem
	warnings []string
}

func (l *loader) warn(format string, args ...any) {
	l.warnings = append(l.warnings, fmt.Sprintf(format, args...))
}

func (l *loader) refuse(s Setting, format string, args ...any) {
	l.problems = append(l.problems, Problem{Setting: s, Why: fmt.Sprintf(format, args...)})
}

// refuseKey refuses the value that a key was given.
func (l *loader) refuseKey(key, format string, args ...any) {
	l.refuse(l.static.setting(key), format, args...)
}

func (l *loader) file(name string, text []byte) {
	if name == "" {
		return
	}
	list, err := ParseProperties(text)
	if err != nil {
		l.refuse(Setting{Key: "config", Value: name}, "%v", err)
		return
	}
	for _, p := range list {
		s := Setting{Key: p.Key, Value: p.Value, Where: fmt.Sprintf("%s:%d", name, p.Line)}
		if before, twice := l.static.set[p.Key]; twice {
			l.warn("%s is set twice: %s takes the place of %s", p.Key, s.Where, before.Where)
		}
		l.static.set[p.Key] = s
	}
}

func (l *loader) setAll(list []Setting) {
	for _, s := range list {
		l.static.set[s.Key] = s
	}
}

// topicKeys takes a topic's key as the broker's key behind it: flush.messages=1
// for the broker can only mean all topics. The broker's own key wins.
func (l *loader) topicKeys() {
	for _, key := range slices.Sorted(maps.Keys(l.static.set)) {
		topic := Topic(key)
		if topic == nil || topic.Broker == "" || Broker(key) != nil {
			continue
		}
		s := l.static.set[key]
		delete(l.static.set, key)
		if own, both := l.static.set[topic.Broker]; both {
			l.warn("%s is a topic's key and has no effect here, because %s is given", s.name(), own.name())
			continue
		}
		l.warn("%s is a topic's key; it is taken as %s, for all topics", s.name(), topic.Broker)
		l.static.set[topic.Broker] = Setting{Key: topic.Broker, Value: s.Value, Where: s.Where + ", as " + key}
	}
}

// deriveListeners does what the apache/kafka image does when only the advertised
// addresses are in the environment: it listens on their ports.
func (l *loader) deriveListeners(env []Setting) {
	if _, given := l.static.set[Listeners.Name]; given {
		return
	}
	at := slices.IndexFunc(env, func(s Setting) bool { return s.Key == AdvertisedListeners.Name })
	if at < 0 || l.static.set[AdvertisedListeners.Name] != env[at] {
		return
	}
	var derived []string
	for _, text := range strings.Split(env[at].Value, ",") {
		e, err := parseEndpoint(text)
		if err != nil {
			return // checkAll refuses it by name
		}
		derived = append(derived, fmt.Sprintf("%s://:%d", e.name, e.port))
	}
	l.static.set[Listeners.Name] = Setting{
		Key: Listeners.Name, Value: strings.Join(derived, ","), Where: "from " + env[at].Where,
	}
}

// parse reads every value and names the unknown keys.
func (l *loader) parse() {
	for _, key := range slices.Sorted(maps.Keys(l.static.set)) {
		s := l.static.set[key]
		d := Broker(key)
		if d == nil {
			l.unknown(s)
			continue
		}
		if d == Listeners.decl || d == AdvertisedListeners.decl {
			s.Value = l.fullEndpoints(s.Value, d == Listeners.decl)
			l.static.set[key] = s
		}
		v, err := d.Parse(s.Value)
		var bad *ValueError
		if errors.As(err, &bad) {
			l.refuse(s, "want %s", bad.Allowed)
			continue
		}
		l.static.values[key] = v
	}
}

// unknown warns about a key that nobody knows, with the one that is meant.
func (l *loader) unknown(s Setting) {
	if quietPrefix(s.Key) {
		return
	}
	switch topic := Topic(s.Key); {
	case topic != nil:
		l.warn("%s is a topic's key and has no effect here; set it on a topic", s.name())
	case removedKey(s.Key):
		l.warn("%s was a key of Kafka before 4.0 and has no effect", s.name())
	default:
		if near := Nearest(s.Key, brokerKeys.names()); near != "" {
			l.warn("%s is not a known key and has no effect; did you mean %s?", s.name(), near)
			return
		}
		l.warn("%s is not a known key and has no effect", s.name())
	}
}

// quietPrefix names keys with a prefix that hands them on to a plug-in, and known
// keys for one listener (listener.name.external.ssl.keystore.location).
func quietPrefix(key string) bool {
	for _, prefix := range []string{"rsm.config.", "rlmm.config.", "config.providers.", "confluent."} {
		if strings.HasPrefix(key, prefix) {
			return true
		}
	}
	rest, ok := strings.CutPrefix(key, "listener.name.")
	if !ok {
		return false
	}
	for {
		_, after, more := strings.Cut(rest, ".")
		if !more {
			return false
		}
		if Broker(after) != nil {
			return true
		}
		rest = after
	}
}

// removedKey names what Kafka knew before 4.0.
func removedKey(key string) bool {
	for _, prefix := range []string{"zookeeper.", "password.encoder.", "quota.producer.", "quota.consumer."} {
		if strings.HasPrefix(key, prefix) {
			return true
		}
	}
	return slices.Contains([]string{
		"inter.broker.protocol.version", "log.message.format.version", "log.message.timestamp.difference.max.ms",
		"log.message.downconversion.enable", "broker.id.generation.enable", "reserved.broker.max.id",
		"control.plane.listener.name", "offsets.commit.required.acks", "delegation.token.master.key",
		"advertised.host.name", "advertised.port", "host.name", "port", "max.connections.per.user",
	}, key)
}
