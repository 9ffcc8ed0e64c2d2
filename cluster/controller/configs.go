package controller

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/cluster/metadata"
	"github.com/barnabas-mq/barnabas/protocol"
)

// incrementalAlterConfigs is KIP-339: each resource is changed as a whole or not
// at all, whatever becomes of the others.
func (m *Machine) incrementalAlterConfigs(img *metadata.Image, req *kmsg.IncrementalAlterConfigsRequest) Decision {
	resp := req.ResponseKind().(*kmsg.IncrementalAlterConfigsResponse)
	d := Decision{Response: resp}
	twice := duplicates(req.Resources, func(r *kmsg.IncrementalAlterConfigsRequestResource) metadata.ConfigResource {
		return metadata.ConfigResource{Type: int8(r.ResourceType), Name: r.ResourceName}
	})
	metrics := subscriptionCount{img: img}
	for i := range req.Resources {
		r := &req.Resources[i]
		resource := metadata.ConfigResource{Type: int8(r.ResourceType), Name: r.ResourceName}
		records, err := m.alterIncrementally(img, resource, r.Configs, twice[resource])
		if err == nil {
			records, err = metrics.admit(resource, records)
		}
		out := kmsg.NewIncrementalAlterConfigsResponseResource()
		out.ResourceType, out.ResourceName = r.ResourceType, r.ResourceName
		out.ErrorCode, out.ErrorMessage = codeAndText(err)
		resp.Resources = append(resp.Resources, out)
		d.Records = append(d.Records, records...)
	}
	if req.ValidateOnly {
		d.Records = nil
	}
	return d
}

func (m *Machine) alterIncrementally(
	img *metadata.Image, resource metadata.ConfigResource, ops []kmsg.IncrementalAlterConfigsRequestResourceConfig, twice bool,
) ([]metadata.Record, error) {
	var null []string
	for _, op := range ops {
		if op.Op != kmsg.IncrementalAlterConfigOpDelete && op.Value == nil {
			null = append(null, op.Name)
		}
	}
	sameKey := duplicates(ops, func(o *kmsg.IncrementalAlterConfigsRequestResourceConfig) string { return o.Name })
	if err := checkShape(twice, len(sameKey) > 0, null); err != nil {
		return nil, err
	}
	changes := make(map[string]*string, len(ops))
	for _, op := range ops {
		value, err := m.newValue(img, resource, op)
		if err != nil {
			return nil, err
		}
		changes[op.Name] = value
	}
	return m.alter(img, resource, changes)
}

// newValue is a key's value after op; nil when it is no longer set.
func (m *Machine) newValue(img *metadata.Image, resource metadata.ConfigResource, op kmsg.IncrementalAlterConfigsRequestResourceConfig) (*string, error) {
	switch op.Op {
	case kmsg.IncrementalAlterConfigOpSet:
		return op.Value, nil
	case kmsg.IncrementalAlterConfigOpDelete:
		return nil, nil
	case kmsg.IncrementalAlterConfigOpAppend, kmsg.IncrementalAlterConfigOpSubtract:
	default:
		return nil, protocol.Errorf(kerr.InvalidRequest, "Unknown operation type %d", int8(op.Op))
	}
	adds := op.Op == kmsg.IncrementalAlterConfigOpAppend
	if !m.cfg.Checker.IsList(resource.Type, op.Name) {
		return nil, notAList(resource.Type, op.Name, adds)
	}
	if err := checkValueSize(*op.Value); err != nil {
		return nil, err
	}
	current, set := img.Config(resource)[op.Name]
	if !set {
		current = m.cfg.Checker.Default(resource.Type, op.Name)
	}
	if adds {
		return new(appended(current, *op.Value)), nil
	}
	return new(subtracted(current, *op.Value)), nil
}

// appended is a list with the parts of more that it does not have. Empty parts of
// what is set are left out.
func appended(list, more string) string {
	var out []string
	has := map[string]bool{}
	for part := range strings.SplitSeq(list, ",") {
		if part != "" {
			out = append(out, part)
			has[part] = true
		}
	}
	for _, part := range javaParts(more) {
		if !has[part] {
			out = append(out, part)
			has[part] = true
		}
	}
	return strings.Join(out, ",")
}

// subtracted is a list without the parts of less: of a part that it has several
// times as many go as less has, the first ones.
func subtracted(list, less string) string {
	var out []string
	gone := map[string]int{}
	for _, part := range javaParts(less) {
		gone[part]++
	}
	for part := range strings.SplitSeq(list, ",") {
		switch {
		case part == "":
		case gone[part] > 0:
			gone[part]--
		default:
			out = append(out, part)
		}
	}
	return strings.Join(out, ",")
}

// javaParts are the parts of a list without the empty ones at its end, but for that
// of an empty text.
func javaParts(list string) []string {
	if list == "" {
		return []string{""}
	}
	parts := strings.Split(strings.TrimRight(list, ","), ",")
	if parts[0] == "" && len(parts) == 1 {
		return nil
	}
	return parts
}

// maxValueBytes is Kafka's bound of a value: what a string of its protocol can
// have.
const maxValueBytes = math.MaxInt16

func checkValueSize(value string) error {
	if len(value) > maxValueBytes {
		return protocol.Errorf(kerr.InvalidConfig, "The configuration value cannot be added because it exceeds the maximum value size of %d bytes.", maxValueBytes)
	}
	return nil
}

func notAList(resourceType int8, name string, adds bool) error {
	word, verb := "append", "APPEND"
	if !adds {
		word, verb = "subtract", "SUBTRACT"
	}
	if resourceType == metadata.ResourceBroker {
		return protocol.Errorf(kerr.InvalidConfig, "Config value %s is not allowed for config key: %s", word, name)
	}
	return protocol.Errorf(kerr.InvalidConfig, "Can't %s to key %s because its type is not LIST.", verb, name)
}

// alterConfigs replaces all that is set on each resource.
func (m *Machine) alterConfigs(img *metadata.Image, req *kmsg.AlterConfigsRequest) Decision {
	resp := req.ResponseKind().(*kmsg.AlterConfigsResponse)
	d := Decision{Response: resp}
	twice := duplicates(req.Resources, func(r *kmsg.AlterConfigsRequestResource) metadata.ConfigResource {
		return metadata.ConfigResource{Type: int8(r.ResourceType), Name: r.ResourceName}
	})
	metrics := subscriptionCount{img: img}
	for i := range req.Resources {
		r := &req.Resources[i]
		resource := metadata.ConfigResource{Type: int8(r.ResourceType), Name: r.ResourceName}
		records, err := m.replaceConfigs(img, resource, r.Configs, twice[resource])
		if err == nil {
			records, err = metrics.admit(resource, records)
		}
		out := kmsg.NewAlterConfigsResponseResource()
		out.ResourceType, out.ResourceName = r.ResourceType, r.ResourceName
		out.ErrorCode, out.ErrorMessage = codeAndText(err)
		resp.Resources = append(resp.Resources, out)
		d.Records = append(d.Records, records...)
	}
	if req.ValidateOnly {
		d.Records = nil
	}
	return d
}

func (m *Machine) replaceConfigs(
	img *metadata.Image, resource metadata.ConfigResource, configs []kmsg.AlterConfigsRequestResourceConfig, twice bool,
) ([]metadata.Record, error) {
	changes := map[string]*string{}
	for name := range img.Config(resource) {
		changes[name] = nil
	}
	var null []string
	for _, c := range configs {
		if c.Value == nil {
			null = append(null, c.Name)
		}
		changes[c.Name] = c.Value
	}
	sameKey := duplicates(configs, func(c *kmsg.AlterConfigsRequestResourceConfig) string { return c.Name })
	if err := checkShape(twice, len(sameKey) > 0, null); err != nil {
		return nil, err
	}
	return m.alter(img, resource, changes)
}

// checkShape refuses what no resource takes.
func checkShape(resourceTwice, keyTwice bool, null []string) error {
	switch {
	case resourceTwice:
		return protocol.Errorf(kerr.InvalidRequest, "Each resource must appear at most once.")
	case keyTwice:
		return protocol.Errorf(kerr.InvalidRequest, "Error due to duplicate config keys")
	case len(null) > 0:
		return protocol.Errorf(kerr.InvalidRequest, "Null value not supported for : %s", strings.Join(null, ", "))
	}
	return nil
}

// alter checks what a resource would have after changes and makes the records. A
// change that changes nothing makes none.
func (m *Machine) alter(img *metadata.Image, resource metadata.ConfigResource, changes map[string]*string) ([]metadata.Record, error) {
	all := map[string]string{}
	maps.Copy(all, img.Config(resource))
	var records []metadata.Record
	for _, name := range sortedKeys(changes) {
		value := changes[name]
		current, set := all[name]
		if value == nil {
			delete(all, name)
		} else {
			all[name] = *value
		}
		if set != (value != nil) || (set && current != *value) {
			if value != nil {
				if err := checkValueSize(*value); err != nil {
					return nil, err
				}
			}
			records = append(records, &metadata.ConfigRecord{Resource: resource, Name: name, Value: value})
		}
	}
	if err := m.checkResource(img, resource, all, changes); err != nil {
		return nil, err
	}
	return records, nil
}

func (m *Machine) checkResource(img *metadata.Image, resource metadata.ConfigResource, all map[string]string, changes map[string]*string) error {
	switch resource.Type {
	case metadata.ResourceTopic:
		return m.checkTopicResource(img, resource.Name, all)
	case metadata.ResourceBroker:
		return m.checkBrokerResource(img, resource.Name, changes)
	case metadata.ResourceGroup:
		if resource.Name == "" {
			return protocol.Errorf(kerr.InvalidRequest, "Default group resources are not allowed.")
		}
		return m.cfg.Checker.CheckGroup(all)
	case metadata.ResourceClientMetrics:
		if resource.Name == "" {
			return protocol.Errorf(kerr.InvalidRequest, "Subscription name can't be empty")
		}
		return checkEach(all, m.cfg.Checker.CheckClientMetrics)
	}
	return protocol.Errorf(kerr.InvalidRequest, "Unknown resource type %d", resource.Type)
}

func (m *Machine) checkTopicResource(img *metadata.Image, name string, all map[string]string) error {
	if name == "" {
		return protocol.Errorf(kerr.InvalidRequest, "Default topic resources are not allowed.")
	}
	if err := protocol.CheckTopicName(name); err != nil {
		return err
	}
	if err := m.cfg.Checker.CheckTopicConfigs(all); err != nil {
		return invalidConfig(err)
	}
	if _, ok := img.Topic(name); !ok {
		return protocol.Errorf(kerr.UnknownTopicOrPartition, "The topic '%s' does not exist.", name)
	}
	return nil
}

// checkBrokerResource checks only what is changed: what was set under an older
// version may no longer be known, and must stay removable.
func (m *Machine) checkBrokerResource(img *metadata.Image, name string, changes map[string]*string) error {
	if name != "" {
		id, err := strconv.ParseInt(name, 10, 32)
		if err != nil {
			return protocol.Errorf(kerr.InvalidRequest, "Node id must be an integer, but it is: %s", name)
		}
		if _, ok := img.Broker(int32(id)); !ok {
			return protocol.Errorf(kerr.BrokerIDNotRegistered, "No node with id %d found.", id)
		}
	}
	for _, key := range sortedKeys(changes) {
		value := changes[key]
		if value == nil {
			continue
		}
		if err := m.cfg.Checker.CheckBroker(name, key, *value); err != nil {
			return invalidConfig(err)
		}
	}
	return nil
}

func checkEach(all map[string]string, check func(name, value string) error) error {
	for _, name := range sortedKeys(all) {
		if err := check(name, all[name]); err != nil {
			return invalidConfig(err)
		}
	}
	return nil
}

// subscriptionsMax bounds the subscriptions to client metrics. A client that asks for
// the first time is held against each of them, on an event loop: some 4 us with two
// patterns. Kafka has no bound; people have a few.
const subscriptionsMax = 500

// subscriptionCount counts them as one request makes new ones.
type subscriptionCount struct {
	img     *metadata.Image
	counted bool
	n       int
}

// admit refuses the records of one subscription too many.
func (c *subscriptionCount) admit(r metadata.ConfigResource, records []metadata.Record) ([]metadata.Record, error) {
	if r.Type != metadata.ResourceClientMetrics || len(records) == 0 || len(c.img.Config(r)) > 0 {
		return records, nil
	}
	if !c.counted {
		c.counted = true
		for _, other := range c.img.ConfigResources() {
			if other.Type == metadata.ResourceClientMetrics {
				c.n++
			}
		}
	}
	if c.n >= subscriptionsMax {
		return nil, protocol.Errorf(kerr.PolicyViolation, "There are %d client metrics subscriptions, and no more are taken.", c.n)
	}
	c.n++
	return records, nil
}

// invalidConfig gives an error that has no code of its own INVALID_CONFIG.
func invalidConfig(err error) error {
	if err == nil || protocol.Code(err) != kerr.UnknownServerError.Code {
		return err
	}
	return protocol.Errorf(kerr.InvalidConfig, "%w", err)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
