package main

import (
	"math"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func quotaCases(b *book) {
	altered := func(change func(*Case, *side, *kmsg.AlterClientQuotasRequest)) answer {
		return func(c *Case, s *side) (kmsg.Response, error) {
			req := kmsg.NewPtrAlterClientQuotasRequest()
			req.Entries = []kmsg.AlterClientQuotasRequestEntry{{
				Entity: []kmsg.AlterClientQuotasRequestEntryEntity{{Type: "user", Name: str(s.name(c, "u"))}, {Type: "client-id", Name: nil}},
				Ops:    []kmsg.AlterClientQuotasRequestEntryOp{{Key: "producer_byte_rate", Value: 1000}},
			}}
			change(c, s, req)
			return s.try(s.at(req))
		}
	}
	type request = *kmsg.AlterClientQuotasRequest
	b.good(kmsg.AlterClientQuotas, "a user and the default client", altered(func(*Case, *side, request) {}))
	b.good(kmsg.AlterClientQuotas, "validate only", altered(func(_ *Case, _ *side, r request) { r.ValidateOnly = true }))
	b.good(kmsg.AlterClientQuotas, "remove", altered(func(_ *Case, _ *side, r request) { r.Entries[0].Ops[0].Remove = true }))
	b.bad(kmsg.AlterClientQuotas, "an unknown key", altered(func(_ *Case, _ *side, r request) { r.Entries[0].Ops[0].Key = "tea_rate" }))
	b.bad(kmsg.AlterClientQuotas, "an unknown entity", altered(func(_ *Case, _ *side, r request) { r.Entries[0].Entity[0].Type = "team" }))
	b.bad(kmsg.AlterClientQuotas, "a negative rate", altered(func(_ *Case, _ *side, r request) { r.Entries[0].Ops[0].Value = -5 }))
	b.bad(kmsg.AlterClientQuotas, "no number", altered(func(_ *Case, _ *side, r request) { r.Entries[0].Ops[0].Value = math.NaN() })).from(1)
	b.bad(kmsg.AlterClientQuotas, "an infinite percentage", altered(func(_ *Case, _ *side, r request) {
		r.Entries[0].Ops[0] = kmsg.AlterClientQuotasRequestEntryOp{Key: "request_percentage", Value: math.Inf(1)}
	})).from(1)
	b.good(kmsg.AlterClientQuotas, "an entity type twice", altered(func(c *Case, s *side, r request) {
		r.Entries[0].Entity[1] = kmsg.AlterClientQuotasRequestEntryEntity{Type: "user", Name: str(s.name(c, "v"))}
	}))
	b.bad(kmsg.AlterClientQuotas, "a key twice", altered(func(_ *Case, _ *side, r request) { r.Entries[0].Ops = append(r.Entries[0].Ops, r.Entries[0].Ops[0]) }))
	b.bad(kmsg.AlterClientQuotas, "no entity", altered(func(_ *Case, _ *side, r request) { r.Entries[0].Entity = nil }))
	b.bad(kmsg.AlterClientQuotas, "half a byte", altered(func(_ *Case, _ *side, r request) { r.Entries[0].Ops[0].Value = 1.5 }))
	b.bad(kmsg.AlterClientQuotas, "an empty name", altered(func(_ *Case, _ *side, r request) { r.Entries[0].Entity[0].Name = str("") }))

	described := func(components func(name string) []kmsg.DescribeClientQuotasRequestComponent, strict bool) answer {
		return func(c *Case, s *side) (kmsg.Response, error) {
			name := s.name(c, "u")
			alter := kmsg.NewPtrAlterClientQuotasRequest()
			alter.Version = 1
			alter.Entries = []kmsg.AlterClientQuotasRequestEntry{{
				Entity: []kmsg.AlterClientQuotasRequestEntryEntity{{Type: "user", Name: &name}},
				Ops: []kmsg.AlterClientQuotasRequestEntryOp{
					{Key: "producer_byte_rate", Value: 1000}, {Key: "consumer_byte_rate", Value: 2000}, {Key: "request_percentage", Value: 12.5},
				},
			}}
			must[*kmsg.AlterClientQuotasResponse](s, alter)
			s.whenLimited(name)
			req := kmsg.NewPtrDescribeClientQuotasRequest()
			req.Components, req.Strict = components(name), strict
			return s.try(s.at(req))
		}
	}
	type parts = []kmsg.DescribeClientQuotasRequestComponent
	describe := func(good bool, name string, ask answer) {
		b.add(kmsg.DescribeClientQuotas, name, good, ask).unordered("Entries", "Entries.Values", "Entries.Entity")
	}
	describe(true, "a user", described(func(name string) parts { return parts{{EntityType: "user", Match: &name}} }, false))
	describe(true, "a user, strictly", described(func(name string) parts { return parts{{EntityType: "user", Match: &name}} }, true))
	describe(true, "the default of ip", described(func(string) parts { return parts{{EntityType: "ip", MatchType: 1}} }, false))
	describe(false, "an unknown entity", described(func(string) parts { return parts{{EntityType: "team", MatchType: 2}} }, false))
	describe(false, "an unknown match", described(func(name string) parts { return parts{{EntityType: "user", MatchType: 9, Match: &name}} }, false))
	describe(false, "an entity twice", described(func(name string) parts {
		return parts{{EntityType: "user", Match: &name}, {EntityType: "user", Match: &name}}
	}, false))
}

func securityCases(b *book) {
	scramCases(b)
	b.bad(kmsg.DescribeACLs, "without an authorizer", func(c *Case, s *side) (kmsg.Response, error) {
		req := kmsg.NewPtrDescribeACLsRequest()
		req.ResourceType, req.ResourcePatternType, req.Operation, req.PermissionType = 1, 1, 1, 1
		return s.try(s.at(req))
	})
	b.bad(kmsg.CreateACLs, "without an authorizer", func(c *Case, s *side) (kmsg.Response, error) {
		req := kmsg.NewPtrCreateACLsRequest()
		a := kmsg.NewCreateACLsRequestCreation()
		a.ResourceType, a.ResourceName, a.ResourcePatternType, a.Principal, a.Host = 2, "t", 3, "User:x", "*"
		a.Operation, a.PermissionType = 3, 3
		req.Creations = append(req.Creations, a)
		return s.try(s.at(req))
	})
	b.bad(kmsg.DeleteACLs, "without an authorizer", func(c *Case, s *side) (kmsg.Response, error) {
		req := kmsg.NewPtrDeleteACLsRequest()
		f := kmsg.NewDeleteACLsRequestFilter()
		f.ResourceType, f.ResourcePatternType, f.Operation, f.PermissionType = 1, 1, 1, 1
		req.Filters = append(req.Filters, f)
		return s.try(s.at(req))
	})
	b.bad(kmsg.CreateDelegationToken, "on a plain listener", func(c *Case, s *side) (kmsg.Response, error) {
		req := kmsg.NewPtrCreateDelegationTokenRequest()
		req.MaxLifetimeMillis = -1
		return s.try(s.at(req))
	})
	b.bad(kmsg.RenewDelegationToken, "on a plain listener", func(c *Case, s *side) (kmsg.Response, error) {
		req := kmsg.NewPtrRenewDelegationTokenRequest()
		req.HMAC = []byte("x")
		return s.try(s.at(req))
	})
	b.bad(kmsg.ExpireDelegationToken, "on a plain listener", func(c *Case, s *side) (kmsg.Response, error) {
		req := kmsg.NewPtrExpireDelegationTokenRequest()
		req.HMAC = []byte("x")
		return s.try(s.at(req))
	})
	b.bad(kmsg.DescribeDelegationToken, "on a plain listener", func(c *Case, s *side) (kmsg.Response, error) {
		return s.try(s.at(kmsg.NewPtrDescribeDelegationTokenRequest()))
	})
	b.bad(kmsg.SASLHandshake, "on a plain listener", func(c *Case, s *side) (kmsg.Response, error) {
		req := kmsg.NewPtrSASLHandshakeRequest()
		req.Mechanism = "PLAIN"
		return s.try(s.at(req))
	})
	b.bad(kmsg.SASLAuthenticate, "on a plain listener", func(c *Case, s *side) (kmsg.Response, error) {
		req := kmsg.NewPtrSASLAuthenticateRequest()
		req.SASLAuthBytes = []byte("\x00a\x00b")
		return s.try(s.at(req))
	})
}

func scramCases(b *book) {
	upsert := func(name string, mechanism int8, iterations int32) *kmsg.AlterUserSCRAMCredentialsRequest {
		req := kmsg.NewPtrAlterUserSCRAMCredentialsRequest()
		req.Upsertions = []kmsg.AlterUserSCRAMCredentialsRequestUpsertion{{
			Name: name, Mechanism: mechanism, Iterations: iterations, Salt: []byte("some salt"), SaltedPassword: make([]byte, 32),
		}}
		return req
	}
	altered := func(good bool, name string, ask func(c *Case, s *side) *kmsg.AlterUserSCRAMCredentialsRequest) {
		b.add(kmsg.AlterUserSCRAMCredentials, name, good, func(c *Case, s *side) (kmsg.Response, error) {
			return s.try(s.at(ask(c, s)))
		})
	}
	altered(true, "a new user", func(c *Case, s *side) *kmsg.AlterUserSCRAMCredentialsRequest { return upsert(s.name(c, "u"), 1, 4096) })
	altered(true, "a salt of a megabyte", func(c *Case, s *side) *kmsg.AlterUserSCRAMCredentialsRequest {
		req := upsert(s.name(c, "u"), 1, 4096)
		req.Upsertions[0].Salt = make([]byte, 1<<20)
		return req
	})
	altered(false, "an unknown mechanism", func(c *Case, s *side) *kmsg.AlterUserSCRAMCredentialsRequest {
		return upsert(s.name(c, "u"), 9, 4096)
	})
	altered(false, "too few iterations", func(c *Case, s *side) *kmsg.AlterUserSCRAMCredentialsRequest {
		return upsert(s.name(c, "u"), 1, 10)
	})
	altered(false, "too many iterations", func(c *Case, s *side) *kmsg.AlterUserSCRAMCredentialsRequest {
		return upsert(s.name(c, "u"), 1, 100000)
	})
	altered(false, "no name", func(c *Case, s *side) *kmsg.AlterUserSCRAMCredentialsRequest { return upsert("", 1, 4096) })
	altered(false, "the same twice", func(c *Case, s *side) *kmsg.AlterUserSCRAMCredentialsRequest {
		req := upsert(s.name(c, "u"), 1, 4096)
		req.Upsertions = append(req.Upsertions, req.Upsertions[0])
		return req
	})
	altered(false, "delete what is not there", func(c *Case, s *side) *kmsg.AlterUserSCRAMCredentialsRequest {
		req := kmsg.NewPtrAlterUserSCRAMCredentialsRequest()
		req.Deletions = []kmsg.AlterUserSCRAMCredentialsRequestDeletion{{Name: s.name(c, "u"), Mechanism: 1}}
		return req
	})

	described := func(good bool, name string, users func(c *Case, s *side) []string) {
		b.add(kmsg.DescribeUserSCRAMCredentials, name, good, func(c *Case, s *side) (kmsg.Response, error) {
			made := upsert(s.name(c, "u"), 2, 8192)
			made.Upsertions[0].SaltedPassword = make([]byte, 64)
			must[*kmsg.AlterUserSCRAMCredentialsResponse](s, made)
			s.whenKnown(made.Upsertions[0].Name)
			req := kmsg.NewPtrDescribeUserSCRAMCredentialsRequest()
			for _, u := range users(c, s) {
				req.Users = append(req.Users, kmsg.DescribeUserSCRAMCredentialsRequestUser{Name: u})
			}
			return s.try(s.at(req))
		})
	}
	described(true, "a user", func(c *Case, s *side) []string { return []string{s.name(c, "u")} })
	described(false, "an unknown user", func(c *Case, s *side) []string { return []string{"nobody"} })
	described(false, "a user twice", func(c *Case, s *side) []string { return []string{s.name(c, "u"), s.name(c, "u")} })
}

// whenKnown waits until a user's credential is described; Kafka's broker hears of it a moment after the controller.
func (s *side) whenKnown(user string) {
	req := kmsg.NewPtrDescribeUserSCRAMCredentialsRequest()
	req.Users = []kmsg.DescribeUserSCRAMCredentialsRequestUser{{Name: user}}
	for range 500 {
		if must[*kmsg.DescribeUserSCRAMCredentialsResponse](s, req).Results[0].ErrorCode == 0 {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// whenLimited waits likewise until a user's quotas are described.
func (s *side) whenLimited(user string) {
	req := kmsg.NewPtrDescribeClientQuotasRequest()
	req.Version, req.Components = 1, []kmsg.DescribeClientQuotasRequestComponent{{EntityType: "user", Match: &user}}
	for range 500 {
		if len(must[*kmsg.DescribeClientQuotasResponse](s, req).Entries) > 0 {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}
