package api

import (
	"slices"
	"strconv"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/cluster/metadata"
	"github.com/barnabas-mq/barnabas/protocol"
	"github.com/barnabas-mq/barnabas/server/config"
)

// Configs is the configuration that DescribeConfigs reports.
type Configs interface {
	Snapshot() *config.Snapshot
}

// describeConfigs serves DescribeConfigs v0-4: topics, brokers, their loggers,
// client metrics subscriptions (KIP-714) and groups (KIP-848).
func (h *Handlers) describeConfigs(c *Call, req *kmsg.DescribeConfigsRequest, resp *kmsg.DescribeConfigsResponse) {
	if !h.fillConfigs(req, resp, c.keep) {
		c.hangupTooLarge()
		return
	}
	c.Reply()
}

// fillConfigs is false when keep has not taken a part of the answer.
func (h *Handlers) fillConfigs(req *kmsg.DescribeConfigsRequest, resp *kmsg.DescribeConfigsResponse, keep func(any) bool) bool {
	img, snap := h.Image(), h.Configs.Snapshot()
	strange := slices.ContainsFunc(req.Resources, func(r kmsg.DescribeConfigsRequestResource) bool {
		return !slices.Contains(configResourceTypes, int8(r.ResourceType))
	})
	for i := range req.Resources {
		asked := &req.Resources[i]
		answer := kmsg.NewDescribeConfigsResponseResource()
		answer.ResourceType, answer.ResourceName = asked.ResourceType, asked.ResourceName
		answer.ErrorMessage = kmsg.StringPtr("")
		var entries []config.Entry
		err := error(nil)
		if strange { // as in Kafka, one unknown type spoils the request
			err = protocol.Errorf(kerr.InvalidRequest, "%s", kerr.InvalidRequest.Description)
		} else {
			entries, err = h.describeResource(img, snap, int8(asked.ResourceType), asked.ResourceName)
		}
		if err != nil {
			answer.ErrorCode = protocol.Code(err)
			if answer.ErrorCode != kerr.UnknownTopicOrPartition.Code {
				answer.ErrorMessage = protocol.Message(err)
			}
		}
		names := make(map[string]struct{}, len(asked.ConfigNames))
		for _, name := range asked.ConfigNames {
			names[name] = struct{}{}
		}
		for _, e := range entries {
			if _, ok := names[e.Name]; ok || len(names) == 0 {
				answer.Configs = append(answer.Configs, configEntry(e, req))
			}
		}
		if !keep(answer) {
			return false
		}
		resp.Resources = append(resp.Resources, answer)
	}
	return true
}

// configResourceTypes are the resources that can be configured.
var configResourceTypes = []int8{metadata.ResourceTopic, metadata.ResourceBroker, metadata.ResourceBrokerLogger, metadata.ResourceClientMetrics, metadata.ResourceGroup}

func (h *Handlers) describeResource(img *metadata.Image, snap *config.Snapshot, kind int8, name string) ([]config.Entry, error) {
	set := func() map[string]string { return img.Config(metadata.ConfigResource{Type: kind, Name: name}) }
	switch kind {
	case metadata.ResourceTopic:
		if err := protocol.CheckTopicName(name); err != nil {
			return nil, err
		}
		if _, ok := img.Topic(name); !ok {
			return nil, protocol.Errorf(kerr.UnknownTopicOrPartition, "topic %s does not exist", name)
		}
		return snap.DescribeTopic(set()), nil
	case metadata.ResourceBroker:
		if name == "" {
			return snap.DescribeAllBrokers(), nil
		}
		if err := h.checkBrokerName(name, "Broker", "Unexpected broker id, expected %d or empty string, but received %s"); err != nil {
			return nil, err
		}
		return snap.DescribeBroker(), nil
	case metadata.ResourceBrokerLogger:
		if name == "" {
			return nil, protocol.Errorf(kerr.InvalidRequest, "Broker id must not be empty")
		}
		if err := h.checkBrokerName(name, "Broker", "Unexpected broker id, expected %d but received %s"); err != nil {
			return nil, err
		}
		return h.describeLoggers(), nil
	case metadata.ResourceClientMetrics:
		if name == "" {
			return nil, protocol.Errorf(kerr.InvalidRequest, "Client metrics subscription name must not be empty")
		}
		return config.DescribeClientMetrics(set()), nil
	}
	if name == "" {
		return nil, protocol.Errorf(kerr.InvalidRequest, "Group name must not be empty")
	}
	return snap.DescribeGroup(set()), nil
}

// checkBrokerName allows a resource only if it is this broker's. Kafka's words differ
// from one request to the next: other has the broker's number, then the name.
func (h *Handlers) checkBrokerName(name, what, other string) error {
	id, err := config.BrokerNumber(name, what)
	if err == nil && id != h.NodeID {
		err = protocol.Errorf(kerr.InvalidRequest, other, h.NodeID, name)
	}
	return err
}

// configEntry is one key in the answer; v0 knows neither sources nor synonyms,
// only whether the value is the default.
func configEntry(e config.Entry, req *kmsg.DescribeConfigsRequest) kmsg.DescribeConfigsResponseResourceConfig {
	out := kmsg.NewDescribeConfigsResponseResourceConfig()
	out.Name, out.Value = e.Name, e.Value
	out.ReadOnly, out.IsSensitive = e.ReadOnly, e.Sensitive
	out.Source, out.IsDefault = kmsg.ConfigSource(e.Source), e.Source == config.SourceDefault
	out.ConfigType = kmsg.ConfigType(e.Type)
	if req.IncludeSynonyms {
		for _, s := range e.Synonyms {
			synonym := kmsg.NewDescribeConfigsResponseResourceConfigConfigSynonym()
			synonym.Name, synonym.Value, synonym.Source = s.Name, s.Value, kmsg.ConfigSource(s.Source)
			out.ConfigSynonyms = append(out.ConfigSynonyms, synonym)
		}
	}
	if req.IncludeDocumentation {
		out.Documentation = kmsg.StringPtr(e.Doc)
	}
	return out
}

// listConfigResources serves ListConfigResources v0-1 (KIP-1142); v0 lists only
// client metrics subscriptions.
func (h *Handlers) listConfigResources(c *Call, req *kmsg.ListConfigResourcesRequest, resp *kmsg.ListConfigResourcesResponse) {
	h.fillConfigResources(req, resp)
	c.Reply()
}

func (h *Handlers) fillConfigResources(req *kmsg.ListConfigResourcesRequest, resp *kmsg.ListConfigResourcesResponse) {
	types := req.ResourceTypes
	switch {
	case req.Version == 0:
		types = []int8{metadata.ResourceClientMetrics}
	case len(types) == 0:
		types = configResourceTypes
	}
	for _, kind := range types {
		if !slices.Contains(configResourceTypes, kind) {
			resp.ErrorCode = kerr.UnsupportedVersion.Code
			return
		}
	}
	img := h.Image()
	for _, kind := range configResourceTypes {
		if !slices.Contains(types, kind) {
			continue
		}
		for _, name := range resourceNames(img, kind) {
			r := kmsg.NewListConfigResourcesResponseConfigResource()
			r.Name, r.Type = name, kind
			resp.ConfigResources = append(resp.ConfigResources, r)
		}
	}
}

// resourceNames lists the resources of a kind: every topic and broker, and the
// subscriptions and groups on which something is set.
func resourceNames(img *metadata.Image, kind int8) []string {
	var names []string
	switch kind {
	case metadata.ResourceTopic:
		for t := range img.Topics() {
			names = append(names, t.Name)
		}
	case metadata.ResourceBroker, metadata.ResourceBrokerLogger:
		for _, b := range img.Brokers() {
			names = append(names, strconv.Itoa(int(b.ID)))
		}
	default:
		for _, r := range img.ConfigResources() {
			if r.Type == kind {
				names = append(names, r.Name)
			}
		}
	}
	return names
}
