package controller

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/cluster/metadata"
)

// entry is one entity, written "user=a client-id=*", with ops "key=value", or
// "key" to remove it. "*" is the default, a name may be empty.
func entry(entity string, ops ...string) kmsg.AlterClientQuotasRequestEntry {
	e := kmsg.NewAlterClientQuotasRequestEntry()
	for _, text := range strings.Fields(entity) {
		part := kmsg.NewAlterClientQuotasRequestEntryEntity()
		kind, name, _ := strings.Cut(text, "=")
		if part.Type = kind; name != "*" {
			part.Name = &name
		}
		e.Entity = append(e.Entity, part)
	}
	for _, text := range ops {
		op := kmsg.NewAlterClientQuotasRequestEntryOp()
		key, value, set := strings.Cut(text, "=")
		op.Key, op.Remove = key, !set
		op.Value, _ = strconv.ParseFloat(value, 64)
		e.Ops = append(e.Ops, op)
	}
	return e
}

func quotas(entries ...kmsg.AlterClientQuotasRequestEntry) *kmsg.AlterClientQuotasRequest {
	req := kmsg.NewPtrAlterClientQuotasRequest()
	req.Entries = entries
	return req
}

func (b *bench) alterQuotas(req *kmsg.AlterClientQuotasRequest) (lines []string) {
	b.t.Helper()
	for _, out := range b.must(req).(*kmsg.AlterClientQuotasResponse).Entries {
		var parts []string
		for _, p := range out.Entity {
			name := "*"
			if p.Name != nil {
				name = *p.Name
			}
			parts = append(parts, p.Type+"="+name)
		}
		lines = append(lines, verdictText(strings.Join(parts, " "), out.ErrorCode, out.ErrorMessage))
	}
	return lines
}

func (b *bench) quotaTexts() (lines []string) {
	for _, q := range b.img.ClientQuotas() {
		text := ""
		for _, part := range []struct {
			kind string
			name metadata.QuotaName
		}{{QuotaUser, q.Entity.User}, {QuotaClientID, q.Entity.ClientID}, {QuotaIP, q.Entity.IP}} {
			switch {
			case part.name.Default:
				text += part.kind + "=* "
			case part.name.Given:
				text += part.kind + "=" + part.name.Name + " "
			}
		}
		for _, key := range sortedKeys(q.Values) {
			text += fmt.Sprintf("%s=%v ", key, q.Values[key])
		}
		lines = append(lines, strings.TrimSpace(text))
	}
	return lines
}

// TestAlterClientQuotas has Apache Kafka's own answers.
func TestAlterClientQuotas(t *testing.T) {
	b := newBench(t, testConfig())
	for _, c := range []struct{ entity, op, want string }{
		{"user=a", "producer_byte_rate=1000", "user=a: 0"},
		{"user=a client-id=c", "consumer_byte_rate=1000.5", "client-id=c user=a: 42 consumer_byte_rate cannot be a fractional value."},
		{"user=* client-id=c", "request_percentage=50", "client-id=c user=*: 0"},
		{"user=*", "controller_mutation_rate=5.5", "user=*: 0"},
		{"ip=1.2.3.4", "connection_creation_rate=5", "ip=1.2.3.4: 0"},
		{"ip=*", "connection_creation_rate=6", "ip=*: 0"},
		{"ip=1.2.3.4", "connection_creation_rate=5.5", "ip=1.2.3.4: 42 connection_creation_rate cannot be a fractional value."},
		{"ip=1.2.3.4", "connection_creation_rate=-1", "ip=1.2.3.4: 42 Quota connection_creation_rate must be greater than 0"},
		{"ip=1.2.3.4", "connection_creation_rate=0", "ip=1.2.3.4: 42 Quota connection_creation_rate must be greater than 0"},
		{"ip=1.2.3.4", "connection_creation_rate=3000000000", "ip=1.2.3.4: 42 Proposed value for connection_creation_rate is too large for an INT."},
		{"ip=1.2.3.4", "producer_byte_rate=5", "ip=1.2.3.4: 42 Invalid configuration key producer_byte_rate"},
		{"ip=1.2.3.4 user=a", "connection_creation_rate=5",
			"user=a ip=1.2.3.4: 42 Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId"},
		{"user=a", "connection_creation_rate=5", "user=a: 42 Invalid configuration key connection_creation_rate"},
		{"user=a", "nope=5", "user=a: 42 Invalid configuration key nope"},
		{"user=a", "nope", "user=a: 0"},
		{"user=a", "consumer_byte_rate", "user=a: 0"},
		{"user=a", "producer_byte_rate=0.00001", "user=a: 42 producer_byte_rate cannot be a fractional value."},
		{"user=a", "producer_byte_rate=1e19", "user=a: 42 Proposed value for producer_byte_rate is too large for a LONG."},
		{"user=big", "producer_byte_rate=9223372036854775807", "user=big: 0"},
		{"user=a", "producer_byte_rate=1000.0000001", "user=a: 0"},
		{"user=a", "request_percentage=0.01", "user=a: 0"},
		{"foo=a", "producer_byte_rate=5", "foo=a: 42 Unhandled client quota entity type: foo"},
		{"foo=a user=b", "producer_byte_rate=5", "user=b foo=a: 42 Unhandled client quota entity type: foo"},
		{"=a", "producer_byte_rate=5", "=a: 42 Unhandled client quota entity type: "},
		{"", "producer_byte_rate=5", ": 42 Invalid empty client quota entity"},
		{"user=", "producer_byte_rate=5", "user=: 42 Empty user not supported"},
		{"client-id=", "producer_byte_rate=5", "client-id=: 42 Empty client-id not supported"},
		{"ip=", "connection_creation_rate=5", "ip=: 42 Empty ip not supported"},
		{"user=x user=b", "producer_byte_rate=5", "user=b: 0"},
	} {
		same(t, c.entity+" "+c.op, b.alterQuotas(quotas(entry(c.entity, c.op))), c.want)
	}
	for _, value := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		same(t, "not a number", b.alterQuotas(quotas(entry("user=n", "request_percentage="+fmt.Sprint(value)))),
			"user=n: 42 Quota request_percentage must be a finite number")
	}
	same(t, "quotas", b.quotaTexts(),
		"ip=*"+" connection_creation_rate=6", "ip=1.2.3.4 connection_creation_rate=5",
		"user=* controller_mutation_rate=5.5", "user=* client-id=c request_percentage=50",
		"user=a producer_byte_rate=1000.0000001 request_percentage=0.01",
		"user=b producer_byte_rate=5", "user=big producer_byte_rate=9.223372036854776e+18")
	same(t, "remove", b.alterQuotas(quotas(entry("user=a", "producer_byte_rate", "request_percentage"), entry("user=big", "producer_byte_rate"))),
		"user=a: 0", "user=big: 0")
	if b.img.ClientQuota(metadata.QuotaEntity{User: metadata.QuotaName{Given: true, Name: "a"}}) != nil {
		t.Error("an entity without quotas stays")
	}
}

// Of an entity that comes twice the first changes are made and the answer is an
// error; an entity with a bad or a repeated key keeps what it has.
func TestQuotaDuplicates(t *testing.T) {
	b := newBench(t, testConfig())
	same(t, "answers", b.alterQuotas(quotas(
		entry("user=dup client-id=*", "producer_byte_rate=5"), entry("client-id=* user=dup", "producer_byte_rate=6", "consumer_byte_rate=7"),
		entry("user=two", "producer_byte_rate=5", "producer_byte_rate"),
		entry("user=three", "producer_byte_rate=5", "nope=6"),
		entry("user=four"),
	)),
		"client-id=* user=dup: 42 Ignoring duplicate entity ClientQuotaEntity(entries={client-id=null, user=dup})",
		"user=two: 42 Ignoring duplicate entity ClientQuotaEntity(entries={user=two})",
		"user=three: 42 Invalid configuration key nope",
		"user=four: 0",
	)
	same(t, "quotas", b.quotaTexts(), "user=dup client-id=* producer_byte_rate=5")
	req := quotas(entry("user=v", "producer_byte_rate=5"), entry("foo=v", "producer_byte_rate=5"))
	req.ValidateOnly = true
	same(t, "validate", b.alterQuotas(req), "user=v: 0", "foo=v: 42 Unhandled client quota entity type: foo")
	before := b.img.Offset
	same(t, "no change", b.alterQuotas(quotas(entry("client-id=* user=dup", "producer_byte_rate=5", "request_percentage"))), "client-id=* user=dup: 0")
	if b.img.Offset != before || len(b.quotaTexts()) != 1 {
		t.Error("what changes nothing makes records")
	}
}
