package api

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/cluster/controller"
	"github.com/barnabas-mq/barnabas/cluster/metadata"
	"github.com/barnabas-mq/barnabas/protocol"
)

// alterClientQuotas serves AlterClientQuotas v0-1 (KIP-546). The names of addresses
// are looked up here: the controller waits for no name server.
func (h *Handlers) alterClientQuotas(c *Call, req *kmsg.AlterClientQuotasRequest, resp *kmsg.AlterClientQuotasResponse) {
	forward, refused := h.checkIPs(req)
	h.decideAnyTime(c, forward, func(decided kmsg.Response, err error) {
		if err == nil {
			*resp = *decided.(*kmsg.AlterClientQuotasResponse)
			resp.Entries = append(resp.Entries, refused...)
			return
		}
		for i := range req.Entries {
			resp.Entries = append(resp.Entries, refusedQuota(&req.Entries[i], err))
		}
	})
}

// resolveTimeout bounds how long one request waits for the name server, however
// many names it has.
const resolveTimeout = 5 * time.Second

// checkIPs takes the entries out whose address nobody knows.
func (h *Handlers) checkIPs(req *kmsg.AlterClientQuotasRequest) (*kmsg.AlterClientQuotasRequest, []kmsg.AlterClientQuotasResponseEntry) {
	ctx, cancel := context.WithTimeout(context.Background(), resolveTimeout)
	defer cancel()
	forward := *req
	forward.Entries = make([]kmsg.AlterClientQuotasRequestEntry, 0, len(req.Entries))
	var refused []kmsg.AlterClientQuotasResponseEntry
	for i := range req.Entries {
		e := &req.Entries[i]
		alone := len(e.Entity) == 1 && e.Entity[0].Type == controller.QuotaIP
		if alone && e.Entity[0].Name != nil && *e.Entity[0].Name != "" && !h.Resolves(ctx, *e.Entity[0].Name) {
			refused = append(refused, refusedQuota(e,
				protocol.Errorf(kerr.InvalidRequest, "%s is not a valid IP or resolvable host.", *e.Entity[0].Name)))
			continue
		}
		forward.Entries = append(forward.Entries, *e)
	}
	return &forward, refused
}

func refusedQuota(e *kmsg.AlterClientQuotasRequestEntry, err error) kmsg.AlterClientQuotasResponseEntry {
	out := kmsg.NewAlterClientQuotasResponseEntry()
	out.ErrorCode, out.ErrorMessage = protocol.Code(err), ownText(err)
	for _, part := range e.Entity {
		p := kmsg.NewAlterClientQuotasResponseEntryEntity()
		p.Type, p.Name = part.Type, part.Name
		out.Entity = append(out.Entity, p)
	}
	return out
}

// describeClientQuotas serves DescribeClientQuotas v0-1.
func (h *Handlers) describeClientQuotas(c *Call, req *kmsg.DescribeClientQuotasRequest, resp *kmsg.DescribeClientQuotasResponse) {
	defer c.Reply()
	fillQuotas(h.Image(), req, resp)
}

func fillQuotas(img *metadata.Image, req *kmsg.DescribeClientQuotasRequest, resp *kmsg.DescribeClientQuotasResponse) {
	filters, err := quotaFilters(req)
	if err != nil {
		resp.ErrorCode, resp.ErrorMessage = protocol.Code(err), protocol.Message(err)
		return
	}
	resp.ErrorMessage, resp.Entries = kmsg.StringPtr(""), []kmsg.DescribeClientQuotasResponseEntry{} // as Kafka
	for _, q := range img.ClientQuotas() {
		parts := partsOf(q.Entity)
		if req.Strict && len(parts) != len(filters) || !matchesAll(filters, parts) {
			continue
		}
		out := kmsg.NewDescribeClientQuotasResponseEntry()
		for _, p := range parts {
			part := kmsg.NewDescribeClientQuotasResponseEntryEntity()
			part.Type, part.Name = p.kind, p.name
			out.Entity = append(out.Entity, part)
		}
		for _, key := range slices.Sorted(maps.Keys(q.Values)) {
			value := kmsg.NewDescribeClientQuotasResponseEntryValue()
			value.Key, value.Value = key, q.Values[key]
			out.Values = append(out.Values, value)
		}
		resp.Entries = append(resp.Entries, out)
	}
}

// entityPart is one part of an entity; without a name it is the default.
type entityPart struct {
	kind string
	name *string
}

// partsOf lists the parts of an entity in Kafka's order.
func partsOf(e metadata.QuotaEntity) (parts []entityPart) {
	for _, p := range []struct {
		kind string
		name metadata.QuotaName
	}{{controller.QuotaClientID, e.ClientID}, {controller.QuotaUser, e.User}, {controller.QuotaIP, e.IP}} {
		if !p.name.Given {
			continue
		}
		part := entityPart{kind: p.kind}
		if !p.name.Default {
			part.name = &p.name.Name
		}
		parts = append(parts, part)
	}
	return parts
}

// quotaFilters checks the components of a filter; each kind stands there once.
func quotaFilters(req *kmsg.DescribeClientQuotasRequest) (map[string]*kmsg.DescribeClientQuotasRequestComponent, error) {
	invalid := func(format string, args ...any) error { return protocol.Errorf(kerr.InvalidRequest, format, args...) }
	filters := map[string]*kmsg.DescribeClientQuotasRequestComponent{}
	for i := range req.Components {
		f := &req.Components[i]
		if f.EntityType == "" {
			return nil, invalid("Invalid empty entity type.")
		}
		if filters[f.EntityType] != nil {
			return nil, invalid("Entity type %s cannot appear more than once in the filter.", f.EntityType)
		}
		filters[f.EntityType] = f
		switch {
		case f.MatchType < kmsg.QuotasMatchTypeExact || f.MatchType > kmsg.QuotasMatchTypeAny:
			return nil, invalid("Unknown match type %d", int8(f.MatchType))
		case f.MatchType == kmsg.QuotasMatchTypeExact && f.Match == nil:
			return nil, invalid("Request specified MATCH_TYPE_EXACT, but set match string to null.")
		case f.MatchType == kmsg.QuotasMatchTypeDefault && f.Match != nil:
			return nil, invalid("Request specified MATCH_TYPE_DEFAULT, but also specified a match string.")
		case f.MatchType == kmsg.QuotasMatchTypeAny && f.Match != nil:
			return nil, invalid("Request specified MATCH_TYPE_SPECIFIED, but also specified a match string.")
		}
	}
	if filters[controller.QuotaIP] != nil && (filters[controller.QuotaUser] != nil || filters[controller.QuotaClientID] != nil) {
		return nil, invalid("Invalid entity filter component combination. IP filter component should not be used with user or clientId filter component.")
	}
	for i := range req.Components {
		switch kind := req.Components[i].EntityType; kind {
		case controller.QuotaUser, controller.QuotaClientID, controller.QuotaIP:
		default:
			return nil, protocol.Errorf(kerr.UnsupportedVersion, "Unsupported entity type %s", kind)
		}
	}
	return filters, nil
}

// matchesAll says that an entity has what each filter asks for.
func matchesAll(filters map[string]*kmsg.DescribeClientQuotasRequestComponent, parts []entityPart) bool {
	matched := 0
	for _, p := range parts {
		f := filters[p.kind]
		if f == nil {
			continue
		}
		switch f.MatchType {
		case kmsg.QuotasMatchTypeExact:
			if p.name == nil || *p.name != *f.Match {
				return false
			}
		case kmsg.QuotasMatchTypeDefault:
			if p.name != nil {
				return false
			}
		}
		matched++
	}
	return matched == len(filters)
}
