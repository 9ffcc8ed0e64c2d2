package importer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/barnabas-mq/barnabas/cluster/metadata"
	"github.com/barnabas-mq/barnabas/coordinator/group"
	"github.com/barnabas-mq/barnabas/protocol"
	"github.com/barnabas-mq/barnabas/storage"
)

// Target is where topics go, as far as a plan needs to know it.
type Target interface {
	Image() *metadata.Image
	// CheckTopicConfig checks one setting of a topic, CheckTopicConfigs all of
	// them.
	CheckTopicConfig(name, value string) error
	CheckTopicConfigs(all map[string]string) error
	// LogConfig is what settings mean there.
	LogConfig(configs map[string]string) storage.LogConfig
	NowMs() int64
}

// Options is what a person chooses.
type Options struct {
	// Topics are names and patterns of them, with * and ?; none are all.
	Topics []string
	// WithoutGroups leaves committed offsets out.
	WithoutGroups bool
}

// Plan is what an import would take over.
type Plan struct {
	Topics []*TopicPlan
	// Present are topics that are at the target already, by an earlier import.
	Present []string
	// Groups are all groups with offsets of the topics.
	Groups []string

	source *Source
}

// TopicPlan is one topic.
type TopicPlan struct {
	Name string
	ID   storage.TopicID
	// Configs are the settings that the topic will have.
	Configs    map[string]string
	Partitions []*PartitionPlan
	// Offsets are what groups have committed for it.
	Offsets []group.Exported
	// SizeBytes is what its partitions take.
	SizeBytes int64
	// Notes are what a person should know of it.
	Notes []string
	// Taken says that it is at the target now or, after a Check, that it can be.
	Taken bool
}

// TopicID is the topic's id as Kafka writes it.
func (t *TopicPlan) TopicID() string { return storage.FormatID(t.ID) }

// Records is how many records were found in it, markers of transactions among
// them.
func (t *TopicPlan) Records() (n int64) {
	for _, p := range t.Partitions {
		if p.Contents != nil {
			n += p.Contents.Records
		}
	}
	return n
}

// PartitionPlan is one partition.
type PartitionPlan struct {
	Index     int32
	SizeBytes int64
	// Contents is what was found when it was read, nil before.
	Contents *Contents

	copy        *copyOf
	files       *partitionFiles
	leaderEpoch int32
}

// problems is everything that stands against an import, told at once.
type problems []string

func (p *problems) add(format string, args ...any) { *p = append(*p, fmt.Sprintf(format, args...)) }

func (p problems) err() error {
	if len(p) == 0 {
		return nil
	}
	return errors.New(strings.Join(p, "\n"))
}

// Plan looks at everything that is to be taken over, without reading the
// partitions. What cannot be taken over is refused by name, all at once.
func (s *Source) Plan(ctx context.Context, target Target, o Options) (*Plan, error) {
	p := &Plan{source: s}
	var bad problems
	topics, err := s.choose(o.Topics)
	if err != nil {
		return nil, err
	}
	for _, t := range topics {
		switch present, err := conflict(target.Image(), t); {
		case err != nil:
			bad.add("%v", err)
			continue
		case present:
			p.Present = append(p.Present, t.name)
			continue
		}
		plan, err := s.planTopic(target, t)
		if err != nil {
			bad.add("topic %s: %v", t.name, err)
			continue
		}
		p.Topics = append(p.Topics, plan)
	}
	s.noteBrokerConfigs()
	p.noteFollowers(target)
	if err := bad.err(); err != nil {
		return nil, err
	}
	if !o.WithoutGroups {
		if err := p.addGroups(ctx); err != nil {
			return nil, fmt.Errorf("committed offsets: %w (--without-groups takes the topics alone)", err)
		}
	}
	return p, nil
}

// choose finds the topics that are asked for, in order.
func (s *Source) choose(patterns []string) ([]*catalogTopic, error) {
	byName := map[string]*catalogTopic{}
	for _, t := range s.catalog.topics {
		byName[t.name] = t
	}
	names := slices.Sorted(maps.Keys(byName))
	var bad problems
	chosen := map[string]bool{}
	for _, pattern := range patterns {
		n := 0
		for _, name := range names {
			if ok, err := path.Match(pattern, name); err != nil {
				return nil, fmt.Errorf("%q is no pattern: %w", pattern, err)
			} else if ok && (!isInternal(name) || pattern == name) {
				chosen[name] = true
				n++
			}
		}
		if n == 0 {
			bad.add("%q is none of the topics: there are %s", pattern, someOf(names))
		}
	}
	var list []*catalogTopic
	for _, name := range names {
		why := internalTopics[name]
		switch {
		case chosen[name] && why != "":
			bad.add("topic %s is Kafka's own: %s", name, why)
		case chosen[name], len(patterns) == 0 && why == "":
			list = append(list, byName[name])
		}
	}
	return list, bad.err()
}

// someOf lists names, and how many more there are.
func someOf(names []string) string {
	const most = 10
	names = slices.DeleteFunc(slices.Clone(names), isInternal)
	switch {
	case len(names) == 0:
		return "none"
	case len(names) <= most:
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// conflict tells whether a topic is at the target by an earlier import, or why it
// can not go there.
func conflict(img *metadata.Image, t *catalogTopic) (present bool, err error) {
	if have, ok := img.Topic(t.name); ok {
		if have.ID == t.id {
			return true, nil
		}
		return false, fmt.Errorf("topic %s: the target has another topic of that name: delete that one, or choose other topics with --topic", t.name)
	}
	if have, ok := img.TopicByID(t.id); ok {
		return false, fmt.Errorf("topic %s: the target has it under the name %s", t.name, have.Name)
	}
	if err := protocol.CheckTopicName(t.name); err != nil {
		return false, err
	}
	if others := img.Collisions(t.name); len(others) > 0 {
		return false, fmt.Errorf("topic %s: its name collides with the target's topic %s", t.name, others[0])
	}
	return false, nil
}

func (s *Source) planTopic(target Target, t *catalogTopic) (*TopicPlan, error) {
	plan := &TopicPlan{Name: t.name, ID: t.id, Configs: map[string]string{}}
	configs := s.catalog.configs[catalogResource{kind: resourceTopic, name: t.name}]
	if configs["remote.storage.enable"] == "true" {
		return nil, errors.New("remote.storage.enable=true: a part of it is not in the folders")
	}
	for _, name := range sortedKeys(configs) {
		if err := target.CheckTopicConfig(name, configs[name]); err != nil {
			plan.note("its setting %s=%s is left out: %v", name, configs[name], err)
			continue
		}
		plan.Configs[name] = configs[name]
	}
	if err := target.CheckTopicConfigs(plan.Configs); err != nil {
		return nil, err
	}
	if len(t.partitions) == 0 {
		return nil, errors.New("it has no partitions")
	}
	var bad problems
	for index := range int32(len(t.partitions)) {
		if t.partitions[index] == nil {
			bad.add("partition %d is missing", index)
			continue
		}
		p, err := s.planPartition(t, index)
		if err != nil {
			bad.add("%v", err)
			continue
		}
		plan.Partitions = append(plan.Partitions, p)
		plan.SizeBytes += p.SizeBytes
	}
	return plan, bad.err()
}

func (t *TopicPlan) note(format string, args ...any) {
	t.Notes = append(t.Notes, fmt.Sprintf(format, args...))
}

func (s *Source) planPartition(t *catalogTopic, index int32) (*PartitionPlan, error) {
	c, err := s.pick(t, index)
	if err != nil {
		return nil, err
	}
	files, err := s.list(c)
	if err != nil {
		return nil, fmt.Errorf("partition %d: %w", index, err)
	}
	return &PartitionPlan{
		Index: index, SizeBytes: files.sizeBytes, copy: c, files: files, leaderEpoch: t.partitions[index].leaderEpoch,
	}, nil
}

// noteBrokerConfigs names settings of Kafka's brokers that concern topics: topics
// without a setting of their own follow the target's.
func (s *Source) noteBrokerConfigs() {
	var names []string
	for resource, configs := range s.catalog.configs {
		if resource.kind != resourceBroker {
			continue
		}
		for _, name := range sortedKeys(configs) {
			if strings.HasPrefix(name, "log.") && !slices.Contains(names, name+"="+configs[name]) {
				names = append(names, name+"="+configs[name])
			}
		}
	}
	slices.Sort(names)
	if len(names) > 0 {
		s.note("Kafka's brokers have the settings %s, which topics without their own followed; they are not taken over: `barnabas config set` or the flags of the broker set them", strings.Join(names, ", "))
	}
}

// addGroups gives each topic what groups have committed for it.
func (p *Plan) addGroups(ctx context.Context) error {
	all, err := p.source.committed(ctx)
	if err != nil {
		return err
	}
	byName := map[string]*TopicPlan{}
	for _, t := range p.Topics {
		byName[t.Name] = t
	}
	for _, g := range all {
		parts := map[string][]group.Record{}
		for _, r := range g.Offsets {
			t := byName[r.Topic]
			switch {
			case t == nil, int(r.Partition) >= len(t.Partitions):
			case r.Offset.TopicID != (storage.TopicID{}) && r.Offset.TopicID != t.ID: // of an earlier topic of that name
			default:
				parts[r.Topic] = append(parts[r.Topic], r)
			}
		}
		for _, name := range sortedKeys(parts) {
			of := g
			of.Offsets = parts[name]
			byName[name].Offsets = append(byName[name].Offsets, of)
		}
		if len(parts) > 0 {
			p.Groups = append(p.Groups, g.Group)
		}
	}
	slices.Sort(p.Groups)
	return nil
}

// SizeBytes is what all partitions take.
func (p *Plan) SizeBytes() (n int64) {
	for _, t := range p.Topics {
		n += t.SizeBytes
	}
	return n
}

func sortedKeys[K interface{ ~string | ~int32 }, V any](m map[K]V) []K {
	return slices.Sorted(maps.Keys(m))
}
