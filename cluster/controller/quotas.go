package controller

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/cluster/metadata"
	"github.com/barnabas-mq/barnabas/protocol"
)

// Kafka's names of the parts of a quota entity, in the order in which answers
// list them.
const (
	QuotaClientID = "client-id"
	QuotaUser     = "user"
	QuotaIP       = "ip"
)

var quotaTypes = []string{QuotaClientID, QuotaUser, QuotaIP}

// quotaKeys are the keys that a user or client id takes, and an address, with the
// largest value and Kafka's word for its type; fractions are for those without.
var (
	clientQuotaKeys = map[string]quotaRange{
		"producer_byte_rate": wholeLong, "consumer_byte_rate": wholeLong, "request_percentage": {}, "controller_mutation_rate": {},
	}
	ipQuotaKeys = map[string]quotaRange{"connection_creation_rate": {max: math.MaxInt32, kind: "an INT"}}
	wholeLong   = quotaRange{max: math.MaxInt64, kind: "a LONG"}
)

type quotaRange struct {
	max  float64
	kind string
}

// fractionMax is how far from a whole number a whole number may be.
const fractionMax = 1e-6

// quotaPart is one part of an entity as a request names it; nil is the default.
type quotaPart struct {
	kind string
	name *string
}

// alterClientQuotas answers once for each entity, whatever comes first in its
// place: of an entity that comes twice, the first changes are made all the same.
func (m *Machine) alterClientQuotas(img *metadata.Image, req *kmsg.AlterClientQuotasRequest) Decision {
	resp := req.ResponseKind().(*kmsg.AlterClientQuotasResponse)
	d := Decision{Response: resp}
	answers := map[string]int{}
	for i := range req.Entries {
		e := &req.Entries[i]
		parts := quotaParts(e)
		key := entityText(parts, strconv.Quote)
		at, again := answers[key]
		var records []metadata.Record
		var err error
		if again {
			err = duplicateEntity(parts)
		} else {
			records, err = alterQuotas(img, parts, e.Ops)
			at = len(resp.Entries)
			answers[key] = at
			resp.Entries = append(resp.Entries, quotaAnswer(parts))
		}
		resp.Entries[at].ErrorCode, resp.Entries[at].ErrorMessage = codeAndText(err)
		d.Records = append(d.Records, records...)
	}
	if req.ValidateOnly {
		d.Records = nil
	}
	return d
}

func duplicateEntity(parts []quotaPart) error {
	plain := func(name string) string { return name }
	return protocol.Errorf(kerr.InvalidRequest, "Ignoring duplicate entity ClientQuotaEntity(entries={%s})", entityText(parts, plain))
}

// quotaParts are the parts in the order of answers; of a part that comes twice the
// last counts.
func quotaParts(e *kmsg.AlterClientQuotasRequestEntry) []quotaPart {
	byKind := map[string]*string{}
	for _, part := range e.Entity {
		byKind[part.Type] = part.Name
	}
	parts := make([]quotaPart, 0, len(byKind))
	for kind, name := range byKind {
		parts = append(parts, quotaPart{kind, name})
	}
	rank := func(kind string) int {
		if i := slices.Index(quotaTypes, kind); i >= 0 {
			return i
		}
		return len(quotaTypes)
	}
	slices.SortFunc(parts, func(a, b quotaPart) int {
		return cmp.Or(cmp.Compare(rank(a.kind), rank(b.kind)), cmp.Compare(a.kind, b.kind))
	})
	return parts
}

// entityText names an entity as Kafka's messages do; write writes each name.
func entityText(parts []quotaPart, write func(string) string) string {
	texts := make([]string, len(parts))
	for i, p := range parts {
		name := "null"
		if p.name != nil {
			name = write(*p.name)
		}
		texts[i] = p.kind + "=" + name
	}
	return strings.Join(texts, ", ")
}

func quotaAnswer(parts []quotaPart) kmsg.AlterClientQuotasResponseEntry {
	out := kmsg.NewAlterClientQuotasResponseEntry()
	for _, p := range parts {
		part := kmsg.NewAlterClientQuotasResponseEntryEntity()
		part.Type, part.Name = p.kind, p.name
		out.Entity = append(out.Entity, part)
	}
	return out
}

func alterQuotas(img *metadata.Image, parts []quotaPart, ops []kmsg.AlterClientQuotasRequestEntryOp) ([]metadata.Record, error) {
	if len(duplicates(ops, func(o *kmsg.AlterClientQuotasRequestEntryOp) string { return o.Key })) > 0 {
		return nil, duplicateEntity(parts)
	}
	entity, err := quotaEntity(parts)
	if err != nil {
		return nil, err
	}
	keys := clientQuotaKeys
	if entity.IP.Given {
		keys = ipQuotaKeys
	}
	current := img.ClientQuota(entity)
	var records []metadata.Record
	for _, op := range ops {
		had, set := current[op.Key]
		rec := &metadata.ClientQuotaRecord{Entity: entity, Key: op.Key}
		if !op.Remove {
			if err := checkQuota(keys, op.Key, op.Value); err != nil {
				return nil, err
			}
			rec.Value = new(op.Value)
		}
		if set == op.Remove || set && had != op.Value {
			records = append(records, rec)
		}
	}
	return records, nil
}

func quotaEntity(parts []quotaPart) (e metadata.QuotaEntity, err error) {
	if len(parts) == 0 {
		return e, protocol.Errorf(kerr.InvalidRequest, "Invalid empty client quota entity")
	}
	for _, p := range parts {
		name := metadata.QuotaName{Given: true, Default: p.name == nil}
		if p.name != nil {
			name.Name = *p.name
		}
		switch p.kind {
		case QuotaUser:
			e.User = name
		case QuotaClientID:
			e.ClientID = name
		case QuotaIP:
			e.IP = name
		default:
			return e, protocol.Errorf(kerr.InvalidRequest, "Unhandled client quota entity type: %s", p.kind)
		}
		if p.name != nil && *p.name == "" {
			return e, protocol.Errorf(kerr.InvalidRequest, "Empty %s not supported", p.kind)
		}
	}
	if e.IP.Given && len(parts) > 1 {
		return e, protocol.Errorf(kerr.InvalidRequest,
			"Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId")
	}
	return e, nil
}

func checkQuota(keys map[string]quotaRange, key string, value float64) error {
	limit, known := keys[key]
	switch {
	case !known:
		return protocol.Errorf(kerr.InvalidRequest, "Invalid configuration key %s", key)
	case math.IsNaN(value) || math.IsInf(value, 0):
		return protocol.Errorf(kerr.InvalidRequest, "Quota %s must be a finite number", key)
	case value <= 0:
		return protocol.Errorf(kerr.InvalidRequest, "Quota %s must be greater than 0", key)
	case limit.kind == "":
		return nil
	case value > limit.max:
		return protocol.Errorf(kerr.InvalidRequest, "Proposed value for %s is too large for %s.", key, limit.kind)
	case math.Abs(value-math.Round(value)) > fractionMax:
		return protocol.Errorf(kerr.InvalidRequest, "%s cannot be a fractional value.", key)
	}
	return nil
}
