package api

import (
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/cluster/metadata"
	"github.com/barnabas-mq/barnabas/protocol"
)

// BrokerConfigChecker says whether a key of this broker (or of all, with "" as
// broker) may be set while it runs.
type BrokerConfigChecker interface {
	CheckBroker(broker, name, value string) error
	IsList(resourceType int8, name string) bool
}

// resourceKey is a resource's identity in a request.
type resourceKey struct {
	kind int8
	name string
}

// incrementalAlterConfigs serves IncrementalAlterConfigs v0-1 (KIP-339).
func (h *Handlers) incrementalAlterConfigs(c *Call, req *kmsg.IncrementalAlterConfigsRequest, resp *kmsg.IncrementalAlterConfigsResponse) {
	h.alterIncrementally(req, resp, c.Reply)
}

func (h *Handlers) alterIncrementally(req *kmsg.IncrementalAlterConfigsRequest, resp *kmsg.IncrementalAlterConfigsResponse, reply func()) {
	a := alteration{reply: reply}
	for _, r := range req.Resources {
		a.keys = append(a.keys, resourceKey{int8(r.ResourceType), r.ResourceName})
	}
	a.precheck = func(i int) (bool, error) { return h.precheckIncremental(&req.Resources[i], req.ValidateOnly) }
	a.forward = func(keep []int) kmsg.Request {
		forward := *req
		forward.Resources = make([]kmsg.IncrementalAlterConfigsRequestResource, 0, len(keep))
		for _, i := range keep {
			forward.Resources = append(forward.Resources, req.Resources[i])
		}
		return &forward
	}
	a.decided = func(decided kmsg.Response) map[resourceKey]*alterResult {
		byKey := map[resourceKey]*alterResult{}
		if d, ok := decided.(*kmsg.IncrementalAlterConfigsResponse); ok {
			for _, r := range d.Resources {
				byKey[resourceKey{int8(r.ResourceType), r.ResourceName}] = &alterResult{code: r.ErrorCode, message: r.ErrorMessage}
			}
		}
		return byKey
	}
	a.answer = func(i int, code int16, message *string) {
		out := kmsg.NewIncrementalAlterConfigsResponseResource()
		out.ResourceType, out.ResourceName = req.Resources[i].ResourceType, req.Resources[i].ResourceName
		out.ErrorCode, out.ErrorMessage = code, message
		resp.Resources = append(resp.Resources, out)
	}
	h.alter(a)
}

// alterConfigs serves AlterConfigs v0-2, which sets a resource's whole
// configuration: what is not named goes.
func (h *Handlers) alterConfigs(c *Call, req *kmsg.AlterConfigsRequest, resp *kmsg.AlterConfigsResponse) {
	h.alterWhole(req, resp, c.Reply)
}

func (h *Handlers) alterWhole(req *kmsg.AlterConfigsRequest, resp *kmsg.AlterConfigsResponse, reply func()) {
	a := alteration{reply: reply}
	for _, r := range req.Resources {
		a.keys = append(a.keys, resourceKey{int8(r.ResourceType), r.ResourceName})
	}
	a.precheck = func(i int) (bool, error) { return false, h.precheckLegacy(&req.Resources[i]) }
	a.forward = func(keep []int) kmsg.Request {
		forward := *req
		forward.Resources = make([]kmsg.AlterConfigsRequestResource, 0, len(keep))
		for _, i := range keep {
			forward.Resources = append(forward.Resources, req.Resources[i])
		}
		return &forward
	}
	a.decided = func(decided kmsg.Response) map[resourceKey]*alterResult {
		byKey := map[resourceKey]*alterResult{}
		if d, ok := decided.(*kmsg.AlterConfigsResponse); ok {
			for _, r := range d.Resources {
				byKey[resourceKey{int8(r.ResourceType), r.ResourceName}] = &alterResult{code: r.ErrorCode, message: r.ErrorMessage}
			}
		}
		return byKey
	}
	a.answer = func(i int, code int16, message *string) {
		out := kmsg.NewAlterConfigsResponseResource()
		out.ResourceType, out.ResourceName = req.Resources[i].ResourceType, req.Resources[i].ResourceName
		out.ErrorCode, out.ErrorMessage = code, message
		resp.Resources = append(resp.Resources, out)
	}
	h.alter(a)
}

// alteration is what the two requests have in common, in terms of the places of
// their resources.
type alteration struct {
	keys []resourceKey
	// precheck settles what this broker can tell by itself.
	precheck func(i int) (done bool, err error)
	forward  func(keep []int) kmsg.Request
	decided  func(kmsg.Response) map[resourceKey]*alterResult
	answer   func(i int, code int16, message *string)
	reply    func()
}

// alter answers what this broker can tell by itself and leaves the rest to the
// controller.
func (h *Handlers) alter(a alteration) {
	settled := repeatedResources(a.keys)
	var keep []int
	for i, key := range a.keys {
		if settled[key] != nil {
			continue
		}
		if done, err := a.precheck(i); done || err != nil {
			settled[key] = &alterResult{err: err}
		} else {
			keep = append(keep, i)
		}
	}
	finish := func(decided map[resourceKey]*alterResult, failed error) {
		for i, key := range a.keys {
			code, message := resultOf(key, settled, decided, failed)
			a.answer(i, code, message)
		}
		a.reply()
	}
	if len(keep) == 0 {
		finish(nil, nil)
		return
	}
	h.Controller.Handle(a.forward(keep), func(resp kmsg.Response, err error) { finish(a.decided(resp), err) })
}

// alterResult is one resource's answer: ours as an error, or the controller's.
type alterResult struct {
	err     error
	code    int16
	message *string
}

func resultOf(key resourceKey, settled, decided map[resourceKey]*alterResult, failed error) (int16, *string) {
	if r := settled[key]; r != nil {
		return protocol.Code(r.err), protocol.Message(r.err)
	}
	if failed != nil {
		return protocol.Code(failed), protocol.Message(failed)
	}
	if r := decided[key]; r != nil {
		return r.code, r.message
	}
	return kerr.UnknownServerError.Code, kmsg.StringPtr("the controller left this resource out")
}

// repeatedResources settles the resources that stand in a request twice.
func repeatedResources(keys []resourceKey) map[resourceKey]*alterResult {
	seen, settled := map[resourceKey]bool{}, map[resourceKey]*alterResult{}
	for _, key := range keys {
		if seen[key] {
			settled[key] = &alterResult{err: protocol.Errorf(kerr.InvalidRequest, "Each resource must appear at most once.")}
		}
		seen[key] = true
	}
	return settled
}

// precheckIncremental looks at what the controller need not see; done says that
// the resource is settled.
func (h *Handlers) precheckIncremental(r *kmsg.IncrementalAlterConfigsRequestResource, validateOnly bool) (done bool, err error) {
	names, nulls := make([]string, len(r.Configs)), []string(nil)
	for i, op := range r.Configs {
		names[i] = op.Name
		if op.Value == nil && op.Op != kmsg.IncrementalAlterConfigOpDelete {
			nulls = append(nulls, op.Name)
		}
	}
	if err := precheckKeys(names, nulls); err != nil {
		return false, err
	}
	switch int8(r.ResourceType) {
	case metadata.ResourceBrokerLogger:
		return true, h.alterLoggers(r, validateOnly)
	case metadata.ResourceBroker:
		return false, h.precheckBroker(r)
	case metadata.ResourceTopic, metadata.ResourceClientMetrics, metadata.ResourceGroup:
		return false, nil
	}
	return false, unknownResourceType(int8(r.ResourceType))
}

func (h *Handlers) precheckLegacy(r *kmsg.AlterConfigsRequestResource) error {
	names, nulls := make([]string, len(r.Configs)), []string(nil)
	for i, set := range r.Configs {
		names[i] = set.Name
		if set.Value == nil {
			nulls = append(nulls, set.Name)
		}
	}
	if err := precheckKeys(names, nulls); err != nil {
		return err
	}
	switch int8(r.ResourceType) {
	case metadata.ResourceBroker:
		if err := h.checkAlteredBroker(r.ResourceName); err != nil {
			return err
		}
		for _, set := range r.Configs {
			if err := h.ConfigChecker.CheckBroker(r.ResourceName, set.Name, *set.Value); err != nil {
				return err
			}
		}
		return nil
	case metadata.ResourceTopic, metadata.ResourceClientMetrics, metadata.ResourceGroup:
		return nil
	}
	return unknownResourceType(int8(r.ResourceType))
}

func unknownResourceType(kind int8) error {
	return protocol.Errorf(kerr.InvalidRequest, "Unknown resource type %d", kind)
}

func precheckKeys(names, nulls []string) error {
	slices.Sort(names)
	if len(slices.Compact(names)) < len(names) {
		return protocol.Errorf(kerr.InvalidRequest, "Error due to duplicate config keys")
	}
	if len(nulls) > 0 {
		return protocol.Errorf(kerr.InvalidRequest, "Null value not supported for : %s", strings.Join(nulls, ", "))
	}
	return nil
}

func (h *Handlers) checkAlteredBroker(name string) error {
	if name == "" {
		return nil // all brokers
	}
	return h.checkBrokerName(name, "Node", "Unexpected broker id, expected %d, but received %s")
}

// precheckBroker checks what would be set on this broker, or on all.
func (h *Handlers) precheckBroker(r *kmsg.IncrementalAlterConfigsRequestResource) error {
	if err := h.checkAlteredBroker(r.ResourceName); err != nil {
		return err
	}
	set := h.Image().Config(metadata.ConfigResource{Type: metadata.ResourceBroker, Name: r.ResourceName})
	for i := range r.Configs {
		op := &r.Configs[i]
		switch op.Op {
		case kmsg.IncrementalAlterConfigOpSet:
			if err := h.ConfigChecker.CheckBroker(r.ResourceName, op.Name, *op.Value); err != nil {
				return err
			}
		case kmsg.IncrementalAlterConfigOpDelete:
		case kmsg.IncrementalAlterConfigOpAppend, kmsg.IncrementalAlterConfigOpSubtract:
			if !h.ConfigChecker.IsList(metadata.ResourceBroker, op.Name) {
				return protocol.Errorf(kerr.InvalidConfig, "Config value %s is not allowed for config key: %s",
					strings.ToLower(op.Op.String()), op.Name)
			}
			if err := h.ConfigChecker.CheckBroker(r.ResourceName, op.Name, listAfter(set[op.Name], *op.Value, op.Op)); err != nil {
				return err
			}
		default:
			return protocol.Errorf(kerr.InvalidRequest, "Unknown operations type %d", op.Op)
		}
	}
	return nil
}

// listAfter is a list's value once change was appended to it or taken from it.
func listAfter(value, change string, op kmsg.IncrementalAlterConfigOp) string {
	var list []string
	if value != "" {
		list = strings.Split(value, ",")
	}
	for _, element := range strings.Split(change, ",") {
		at := slices.Index(list, element)
		switch {
		case op == kmsg.IncrementalAlterConfigOpAppend && at < 0:
			list = append(list, element)
		case op == kmsg.IncrementalAlterConfigOpSubtract && at >= 0:
			list = slices.Delete(list, at, at+1)
		}
	}
	return strings.Join(list, ",")
}
