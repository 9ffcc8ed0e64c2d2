package controller

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/sha512"
	"hash"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/cluster/metadata"
	"github.com/barnabas-mq/barnabas/protocol"
)

// Kafka's limits of a credential's iterations.
const (
	scramIterationsMin = 4096
	scramIterationsMax = 16384
)

// scramHash is a mechanism's hash function, nil for a mechanism nobody knows.
func scramHash(mechanism int8) func() hash.Hash {
	switch mechanism {
	case metadata.ScramSHA256:
		return sha256.New
	case metadata.ScramSHA512:
		return sha512.New
	}
	return nil
}

// alterScram changes each user's credentials together: a user with one refused
// change keeps all credentials as they are. Users are answered in the order in
// which the request first names them.
func (m *Machine) alterScram(img *metadata.Image, req *kmsg.AlterUserSCRAMCredentialsRequest) Decision {
	resp := req.ResponseKind().(*kmsg.AlterUserSCRAMCredentialsResponse)
	users := scramUsers{at: map[string]int{}}
	for i := range req.Deletions {
		del := &req.Deletions[i]
		users.add(del.Name, &metadata.ScramCredentialRecord{User: del.Name, Mechanism: del.Mechanism}, checkDeletion(img, del))
	}
	for i := range req.Upsertions {
		up := &req.Upsertions[i]
		rec := &metadata.ScramCredentialRecord{User: up.Name, Mechanism: up.Mechanism}
		err := checkUpsertion(up)
		if err == nil {
			rec.Credential = scramCredential(up)
		}
		users.add(up.Name, rec, err)
	}
	d := Decision{Response: resp}
	for _, u := range users.list {
		out := kmsg.NewAlterUserSCRAMCredentialsResponseResult()
		out.User = u.name
		out.ErrorCode, out.ErrorMessage = codeAndText(u.err)
		resp.Results = append(resp.Results, out)
		if u.err == nil {
			d.Records = append(d.Records, u.record)
		}
	}
	return d
}

// scramUsers collects what becomes of each user that a request names.
type scramUsers struct {
	list []scramUser
	at   map[string]int
}

type scramUser struct {
	name   string
	record metadata.Record
	err    error
}

// add is a user's next change; a user has only one in a request, whatever the
// mechanism, and the first error stays.
func (s *scramUsers) add(name string, rec metadata.Record, err error) {
	at, again := s.at[name]
	if !again {
		s.at[name] = len(s.list)
		s.list = append(s.list, scramUser{name: name, record: rec, err: err})
		return
	}
	if u := &s.list[at]; u.err == nil {
		u.err = protocol.Errorf(kerr.DuplicateResource, "A user credential cannot be altered twice in the same request")
	}
}

func checkDeletion(img *metadata.Image, del *kmsg.AlterUserSCRAMCredentialsRequestDeletion) error {
	if err := checkScramName(del.Name, del.Mechanism); err != nil {
		return err
	}
	if _, ok := img.ScramCredential(del.Name, del.Mechanism); !ok {
		return protocol.Errorf(kerr.ResourceNotFound, "Attempt to delete a user credential that does not exist")
	}
	return nil
}

func checkScramName(name string, mechanism int8) error {
	switch {
	case name == "":
		return protocol.Errorf(kerr.UnacceptableCredential, "Username must not be empty")
	case scramHash(mechanism) == nil:
		return protocol.Errorf(kerr.UnsupportedSaslMechanism, "Unknown SCRAM mechanism")
	}
	return nil
}

func checkUpsertion(up *kmsg.AlterUserSCRAMCredentialsRequestUpsertion) error {
	if err := checkScramName(up.Name, up.Mechanism); err != nil {
		return err
	}
	switch {
	case up.Iterations < scramIterationsMin:
		return protocol.Errorf(kerr.UnacceptableCredential, "Too few iterations")
	case up.Iterations > scramIterationsMax:
		return protocol.Errorf(kerr.UnacceptableCredential, "Too many iterations")
	case len(up.SaltedPassword) == 0:
		return protocol.Errorf(kerr.UnacceptableCredential, "The salted password must not be empty")
	}
	return nil
}

// scramCredential keeps of the salted password what checking a login needs (RFC
// 5802, section 3).
func scramCredential(up *kmsg.AlterUserSCRAMCredentialsRequestUpsertion) *metadata.ScramCredential {
	newHash := scramHash(up.Mechanism)
	keyOf := func(text string) []byte {
		h := hmac.New(newHash, up.SaltedPassword)
		h.Write([]byte(text))
		return h.Sum(nil)
	}
	stored := newHash()
	stored.Write(keyOf("Client Key"))
	return &metadata.ScramCredential{
		Salt: append([]byte{}, up.Salt...), StoredKey: stored.Sum(nil), ServerKey: keyOf("Server Key"), Iterations: up.Iterations,
	}
}
