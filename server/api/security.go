package api

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/protocol"
)

// Every connection is anonymous: what needs to know who a client is answers as
// Kafka does on a PLAINTEXT listener without an authorizer.
const (
	principalType = "User"
	principalName = "ANONYMOUS"
)

// saslHandshake serves SaslHandshake v0-1: this listener has no mechanism.
func (h *Handlers) saslHandshake(c *Call, _ *kmsg.SASLHandshakeRequest, resp *kmsg.SASLHandshakeResponse) {
	resp.ErrorCode = kerr.IllegalSaslState.Code
	c.Reply()
}

// saslAuthenticate serves SaslAuthenticate v0-2.
func (h *Handlers) saslAuthenticate(c *Call, _ *kmsg.SASLAuthenticateRequest, resp *kmsg.SASLAuthenticateResponse) {
	resp.ErrorCode = kerr.IllegalSaslState.Code
	resp.ErrorMessage = kmsg.StringPtr("SaslAuthenticate request received after successful authentication")
	resp.SASLAuthBytes = []byte{}
	c.Reply()
}

// describeACLs serves DescribeAcls v0-3.
func (h *Handlers) describeACLs(c *Call, _ *kmsg.DescribeACLsRequest, resp *kmsg.DescribeACLsResponse) {
	err := protocol.Errorf(kerr.SecurityDisabled, "No Authorizer is configured on the broker")
	resp.ErrorCode, resp.ErrorMessage = protocol.Code(err), protocol.Message(err)
	c.Reply()
}

var errNoAuthorizer = protocol.Errorf(kerr.SecurityDisabled, "No Authorizer is configured.")

// createACLs serves CreateAcls v0-3.
func (h *Handlers) createACLs(c *Call, req *kmsg.CreateACLsRequest, resp *kmsg.CreateACLsResponse) {
	for range req.Creations {
		row := kmsg.NewCreateACLsResponseResult()
		row.ErrorCode, row.ErrorMessage = protocol.Code(errNoAuthorizer), protocol.Message(errNoAuthorizer)
		resp.Results = append(resp.Results, row)
	}
	c.Reply()
}

// deleteACLs serves DeleteAcls v0-3.
func (h *Handlers) deleteACLs(c *Call, req *kmsg.DeleteACLsRequest, resp *kmsg.DeleteACLsResponse) {
	for range req.Filters {
		row := kmsg.NewDeleteACLsResponseResult()
		row.ErrorCode, row.ErrorMessage = protocol.Code(errNoAuthorizer), protocol.Message(errNoAuthorizer)
		resp.Results = append(resp.Results, row)
	}
	c.Reply()
}

// createDelegationToken serves CreateDelegationToken v0-3 (KIP-48). Tokens are for
// clients that have shown who they are.
func (h *Handlers) createDelegationToken(c *Call, req *kmsg.CreateDelegationTokenRequest, resp *kmsg.CreateDelegationTokenResponse) {
	resp.ErrorCode = kerr.DelegationTokenRequestNotAllowed.Code
	resp.PrincipalType, resp.PrincipalName = principalType, principalName
	if req.OwnerPrincipalName != nil && *req.OwnerPrincipalName != "" {
		resp.PrincipalName = *req.OwnerPrincipalName
		if req.OwnerPrincipalType != nil {
			resp.PrincipalType = *req.OwnerPrincipalType
		}
	}
	resp.TokenRequesterPrincipalType, resp.TokenRequesterPrincipalName = principalType, principalName
	resp.IssueTimestamp, resp.ExpiryTimestamp, resp.MaxTimestamp = -1, -1, -1
	resp.HMAC = []byte{}
	c.Reply()
}

// renewDelegationToken serves RenewDelegationToken v0-2.
func (h *Handlers) renewDelegationToken(c *Call, _ *kmsg.RenewDelegationTokenRequest, resp *kmsg.RenewDelegationTokenResponse) {
	resp.ErrorCode, resp.ExpiryTimestamp = kerr.DelegationTokenRequestNotAllowed.Code, -1
	c.Reply()
}

// expireDelegationToken serves ExpireDelegationToken v0-2.
func (h *Handlers) expireDelegationToken(c *Call, _ *kmsg.ExpireDelegationTokenRequest, resp *kmsg.ExpireDelegationTokenResponse) {
	resp.ErrorCode, resp.ExpiryTimestamp = kerr.DelegationTokenRequestNotAllowed.Code, -1
	c.Reply()
}

// describeDelegationToken serves DescribeDelegationToken v0-3.
func (h *Handlers) describeDelegationToken(c *Call, _ *kmsg.DescribeDelegationTokenRequest, resp *kmsg.DescribeDelegationTokenResponse) {
	resp.ErrorCode = kerr.DelegationTokenRequestNotAllowed.Code
	c.Reply()
}
