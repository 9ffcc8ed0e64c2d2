package config

import (
	"slices"
	"strings"
	"sync"

	"github.com/barnabas-mq/barnabas/internal/invariant"
)

// Decl is one key's declaration: everything that flags, files, DescribeConfigs
// and docs/config.md need to know of it.
type Decl struct {
	Name string
	Type Type
	// Default is the parsed default, nil for null.
	Default    any
	Check      Check
	Importance Importance
	Scope      Scope
	// Topic is the topic's key that overrides this one, "" when there is none.
	Topic string
	// Broker is the broker's key behind a topic's or a group's, "" when there
	// is none.
	Broker string
	// Fallback are the keys that count when this one is not set.
	Fallback []Fallback
	Doc      string
	// Internal keys are reported only when they are set, as in Kafka.
	Internal bool
	// NoEffect keys are known and reported, and change nothing here.
	NoEffect bool

	family string
	// id is the key's place in a Snapshot.
	id int
}

// Fallback is a key in another unit that stands in for an unset one.
type Fallback struct {
	Name string
	// Times turns the other key's value into this one's unit.
	Times int64
}

// Sensitive says that the value is never shown.
func (d *Decl) Sensitive() bool { return d.Type == TypePassword }

// Kind is a Go type that a key's value can have.
type Kind interface {
	bool | string | int16 | int32 | int64 | float64 | []string
}

// Key is a declared key with a typed value.
type Key[T Kind] struct {
	Name    string
	Default T
	// Null makes null the default; Get answers the zero value then.
	Null bool
	// Type is needed only for CLASS and PASSWORD.
	Type       Type
	Check      Check
	Importance Importance
	Scope      Scope
	Topic      string
	// TopicCheck replaces Check for the topic's key where Kafka's differ.
	TopicCheck *Check
	Fallback   []Fallback
	Doc        string
	// NoEffect keys are known and reported, and change nothing here yet.
	NoEffect bool
	// Internal keys are reported only when they are set, as in Kafka.
	Internal bool

	decl, topic *Decl
}

// The registries: keys of brokers, of topics, of groups and of client metrics
// are separate name spaces, as in Kafka.
var (
	brokerKeys  = newRegistry()
	topicKeys   = newRegistry()
	groupKeys   = newRegistry()
	metricsKeys = newRegistry()
)

// registry is filled while the program starts and never changes after.
type registry struct {
	list   []*Decl
	byName map[string]*Decl
	sorted func() []*Decl
}

func newRegistry() *registry {
	r := &registry{byName: map[string]*Decl{}}
	r.sorted = sync.OnceValue(r.sort)
	return r
}

func (r *registry) add(d *Decl) *Decl {
	invariant.That(r.byName[d.Name] == nil, "config key %s is declared twice", d.Name)
	d.id = len(r.list)
	r.list = append(r.list, d)
	r.byName[d.Name] = d
	return d
}

// names lists the names in the order of declaration.
func (r *registry) names() []string {
	names := make([]string, len(r.list))
	for i, d := range r.list {
		names[i] = d.Name
	}
	return names
}

// sort lists the declarations by name.
func (r *registry) sort() []*Decl {
	list := slices.Clone(r.list)
	slices.SortFunc(list, func(a, b *Decl) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// define declares a broker's key and, where it has one, the topic's key that
// overrides it.
func define[T Kind](family string, k Key[T]) *Key[T] {
	d := declOf(k)
	d.family = family
	k.decl = brokerKeys.add(d)
	if k.Topic != "" {
		k.topic = d.forTopic(k.TopicCheck)
	}
	return &k
}

// forTopic declares the topic's key that overrides d.
func (d *Decl) forTopic(check *Check) *Decl {
	t := *d
	t.Name, t.Topic, t.Broker, t.Importance, t.Fallback = d.Topic, "", d.Name, Medium, nil
	if check != nil {
		t.Check = *check
	}
	return topicKeys.add(&t)
}

// defineTopic declares a topic's key that no broker's key stands behind.
func defineTopic[T Kind](k Key[T]) *Key[T] {
	d := declOf(k)
	d.family, d.Importance = familyBroker, Medium
	k.topic = topicKeys.add(d)
	return &k
}

func declOf[T Kind](k Key[T]) *Decl {
	d := &Decl{
		Name: k.Name, Type: k.Type, Default: any(k.Default), Check: k.Check, Importance: k.Importance, Scope: k.Scope,
		Topic: k.Topic, Fallback: k.Fallback, Doc: k.Doc, NoEffect: k.NoEffect, Internal: k.Internal,
	}
	if d.Type == 0 {
		d.Type = typeOf(d.Default)
	}
	if k.Null {
		d.Default = nil
	} else if list, ok := d.Default.([]string); ok && list == nil {
		d.Default = []string{}
	}
	return d
}

func typeOf(v any) Type {
	switch v.(type) {
	case bool:
		return TypeBoolean
	case int16:
		return TypeShort
	case int32:
		return TypeInt
	case int64:
		return TypeLong
	case float64:
		return TypeDouble
	case []string:
		return TypeList
	}
	return TypeString
}

// accept declares a key that is known and reported but changes nothing here.
// null is a null default; otherwise def is parsed.
func accept(family, name string, t Type, def string, check Check, importance Importance, scope Scope, doc string) *Decl {
	d := &Decl{
		Name: name, Type: t, Check: check, Importance: importance, Scope: scope, Doc: doc, NoEffect: true, family: family,
	}
	if def != null {
		v, problem := parseAs(t, def, def)
		invariant.That(problem == "", "default of config key %s: %s", name, problem)
		d.Default = v
	}
	return d
}

// null is the text of a null default in the tables.
const null = "\x00"

// hidden is accept for a key that is reported only when it is set.
func hidden(family, name string, t Type, def string, check Check, importance Importance, scope Scope, doc string) *Decl {
	d := accept(family, name, t, def, check, importance, scope, doc)
	d.Internal = true
	return d
}
