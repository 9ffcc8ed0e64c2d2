package api

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/cluster/metadata"
)

// The name of an address is looked up; nothing else is.
func TestQuotaAddressesAreLookedUp(t *testing.T) {
	var asked []string
	deadlines := map[time.Time]bool{} // one for the whole request
	var forwarded int
	c := newTestBroker(t, func(h *Handlers) {
		h.Resolves = func(ctx context.Context, host string) bool {
			deadline, _ := ctx.Deadline()
			deadlines[deadline] = true
			asked = append(asked, host)
			return host == "known"
		}
		h.Controller = controllerFunc(func(req kmsg.Request, done func(kmsg.Response, error)) {
			r := req.(*kmsg.AlterClientQuotasRequest)
			forwarded = len(r.Entries)
			done(r.ResponseKind(), nil)
		})
	}).dial("client")
	entity := func(kind, name string) kmsg.AlterClientQuotasRequestEntry {
		e := kmsg.AlterClientQuotasRequestEntry{Entity: []kmsg.AlterClientQuotasRequestEntryEntity{{Type: kind, Name: &name}}}
		if name == "*" {
			e.Entity[0].Name = nil
		}
		return e
	}
	req := kmsg.NewPtrAlterClientQuotasRequest()
	req.Entries = []kmsg.AlterClientQuotasRequestEntry{
		entity("ip", "known"), entity("ip", "nobody"), entity("ip", ""), entity("ip", "*"), entity("user", "nobody"),
	}
	resp := askAs[*kmsg.AlterClientQuotasResponse](c, 1, req)
	if len(asked) != 2 || len(deadlines) != 1 || deadlines[time.Time{}] || forwarded != 4 || len(resp.Entries) != 1 {
		t.Fatalf("asked for %q, forwarded %d, answered %+v", asked, forwarded, resp.Entries)
	}
	got := resp.Entries[0]
	if got.ErrorCode != kerr.InvalidRequest.Code || *got.ErrorMessage != "nobody is not a valid IP or resolvable host." || *got.Entity[0].Name != "nobody" {
		t.Errorf("%+v", got)
	}
}

// What the controller refuses as a whole is refused in every row.
func TestAdministrationWithoutController(t *testing.T) {
	c := newTestBroker(t, func(h *Handlers) {
		h.Resolves = func(context.Context, string) bool { return true }
		h.Controller = controllerFunc(func(_ kmsg.Request, done func(kmsg.Response, error)) { done(nil, kerr.NotController) })
	}).dial("client")
	name := "a"
	quotas := kmsg.NewPtrAlterClientQuotasRequest()
	quotas.Entries = []kmsg.AlterClientQuotasRequestEntry{{Entity: []kmsg.AlterClientQuotasRequestEntryEntity{{Type: "user", Name: &name}}}}
	scram := kmsg.NewPtrAlterUserSCRAMCredentialsRequest()
	scram.Deletions = []kmsg.AlterUserSCRAMCredentialsRequestDeletion{{Name: "a", Mechanism: 1}, {Name: "b", Mechanism: 1}}
	scram.Upsertions = []kmsg.AlterUserSCRAMCredentialsRequestUpsertion{{Name: "a", Mechanism: 2}}
	elect := kmsg.NewPtrElectLeadersRequest()
	elect.Topics = []kmsg.ElectLeadersRequestTopic{{Topic: "t", Partitions: []int32{0, 1}}}
	assign := kmsg.NewPtrAlterPartitionAssignmentsRequest()
	assign.Topics = []kmsg.AlterPartitionAssignmentsRequestTopic{{
		Topic: "t", Partitions: []kmsg.AlterPartitionAssignmentsRequestTopicPartition{{Partition: 0}, {Partition: 1}},
	}}
	for _, tc := range []struct {
		req  kmsg.Request
		want int
	}{
		{quotas, 1}, {scram, 2}, {elect, 3}, {assign, 3},
		{kmsg.NewPtrListPartitionReassignmentsRequest(), 1}, {kmsg.NewPtrUpdateFeaturesRequest(), 1}, {kmsg.NewPtrUnregisterBrokerRequest(), 1},
	} {
		resp := askAs[kmsg.Response](c, tc.req.MaxVersion(), tc.req)
		if got := countedErrors(resp); got[kerr.NotController.Code] != tc.want || len(got) != 1 {
			t.Errorf("%s: errors %v, want NOT_CONTROLLER %d times", kmsg.NameForKey(tc.req.Key()), got, tc.want)
		}
	}
}

// Filters see only what they ask for.
func TestDescribeClientQuotasOfOneEntity(t *testing.T) {
	b := newTestBroker(t, nil)
	b.apply(&metadata.ClientQuotaRecord{
		Entity: metadata.QuotaEntity{User: metadata.QuotaName{Given: true, Name: "u"}, ClientID: metadata.QuotaName{Given: true, Default: true}},
		Key:    "producer_byte_rate", Value: new(1.0),
	})
	user := "u"
	for _, tc := range []struct {
		kind   string
		match  kmsg.QuotasMatchType
		name   *string
		strict bool
		want   int
	}{
		{"user", kmsg.QuotasMatchTypeExact, &user, false, 1},
		{"user", kmsg.QuotasMatchTypeExact, &user, true, 0},
		{"client-id", kmsg.QuotasMatchTypeDefault, nil, false, 1},
		{"user", kmsg.QuotasMatchTypeDefault, nil, false, 0},
		{"client-id", kmsg.QuotasMatchTypeAny, nil, false, 1},
		{"ip", kmsg.QuotasMatchTypeAny, nil, false, 0},
	} {
		req := kmsg.NewPtrDescribeClientQuotasRequest()
		req.Components = []kmsg.DescribeClientQuotasRequestComponent{{EntityType: tc.kind, MatchType: tc.match, Match: tc.name}}
		req.Strict = tc.strict
		resp := askAs[*kmsg.DescribeClientQuotasResponse](b.dial("client"), 1, req)
		if len(resp.Entries) != tc.want || resp.ErrorCode != 0 {
			t.Errorf("%+v: %+v", tc, resp)
		}
	}
}
