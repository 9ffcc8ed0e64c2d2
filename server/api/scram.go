package api

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/cluster/metadata"
	"github.com/barnabas-mq/barnabas/protocol"
)

// alterUserScram serves AlterUserScramCredentials v0 (KIP-554).
func (h *Handlers) alterUserScram(c *Call, req *kmsg.AlterUserSCRAMCredentialsRequest, resp *kmsg.AlterUserSCRAMCredentialsResponse) {
	h.decideAnyTime(c, req, func(decided kmsg.Response, err error) {
		if err == nil {
			*resp = *decided.(*kmsg.AlterUserSCRAMCredentialsResponse)
			return
		}
		seen := map[string]bool{}
		refuse := func(user string) {
			if seen[user] {
				return
			}
			seen[user] = true
			row := kmsg.NewAlterUserSCRAMCredentialsResponseResult()
			row.User, row.ErrorCode, row.ErrorMessage = user, protocol.Code(err), ownText(err)
			resp.Results = append(resp.Results, row)
		}
		for _, d := range req.Deletions {
			refuse(d.Name)
		}
		for _, u := range req.Upsertions {
			refuse(u.Name)
		}
	})
}

// describeUserScram serves DescribeUserScramCredentials v0: of all users when none
// is named. Nothing of a credential is shown but its iterations.
func (h *Handlers) describeUserScram(c *Call, req *kmsg.DescribeUserSCRAMCredentialsRequest, resp *kmsg.DescribeUserSCRAMCredentialsResponse) {
	defer c.Reply()
	fillScram(h.Image(), req, resp)
}

func fillScram(img *metadata.Image, req *kmsg.DescribeUserSCRAMCredentialsRequest, resp *kmsg.DescribeUserSCRAMCredentialsResponse) {
	resp.ErrorMessage = kmsg.StringPtr("") // as Kafka
	byUser := map[string][]metadata.ScramKey{}
	var users []string
	for _, key := range img.ScramCredentials() {
		if byUser[key.User] == nil {
			users = append(users, key.User)
		}
		byUser[key.User] = append(byUser[key.User], key)
	}
	asked := map[string]int{}
	if len(req.Users) > 0 {
		users = users[:0]
		for _, u := range req.Users {
			if asked[u.Name]++; asked[u.Name] == 1 {
				users = append(users, u.Name)
			}
		}
	}
	for _, user := range users {
		row := kmsg.NewDescribeUserSCRAMCredentialsResponseResult()
		row.User, row.ErrorMessage = user, kmsg.StringPtr("")
		switch {
		case asked[user] > 1:
			err := protocol.Errorf(kerr.DuplicateResource, "Cannot describe SCRAM credentials for the same user twice in a single request: %s", user)
			row.ErrorCode, row.ErrorMessage = protocol.Code(err), protocol.Message(err)
		case byUser[user] == nil:
			err := protocol.Errorf(kerr.ResourceNotFound, "Attempt to describe a user credential that does not exist: %s", user)
			row.ErrorCode, row.ErrorMessage = protocol.Code(err), protocol.Message(err)
		default:
			for _, key := range byUser[user] {
				credential, _ := img.ScramCredential(user, key.Mechanism)
				info := kmsg.NewDescribeUserSCRAMCredentialsResponseResultCredentialInfo()
				info.Mechanism, info.Iterations = key.Mechanism, credential.Iterations
				row.CredentialInfos = append(row.CredentialInfos, info)
			}
		}
		resp.Results = append(resp.Results, row)
	}
}
