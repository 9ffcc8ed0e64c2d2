package metadata

import (
	"cmp"
	"slices"
)

// Kafka's numbers of the SCRAM mechanisms.
const (
	ScramSHA256 int8 = 1
	ScramSHA512 int8 = 2
)

// ScramCredential is what a broker keeps of a password: with it one can check who
// knows the password, not log in (RFC 5802).
type ScramCredential struct {
	Salt       []byte
	StoredKey  []byte
	ServerKey  []byte
	Iterations int32
}

// ScramKey names a credential.
type ScramKey struct {
	User      string
	Mechanism int8
}

// ScramCredential finds a user's credential of one mechanism.
func (img *Image) ScramCredential(user string, mechanism int8) (*ScramCredential, bool) {
	return img.scram.get(ScramKey{User: user, Mechanism: mechanism})
}

// ScramCredentials lists whose credentials there are, sorted by user and
// mechanism; the caller owns the slice.
func (img *Image) ScramCredentials() []ScramKey {
	out := make([]ScramKey, 0, img.scram.size)
	for key := range img.scram.all {
		out = append(out, key)
	}
	slices.SortFunc(out, func(a, b ScramKey) int {
		return cmp.Or(cmp.Compare(a.User, b.User), cmp.Compare(a.Mechanism, b.Mechanism))
	})
	return out
}

func (e *edit) setScram(rec *ScramCredentialRecord) {
	key := ScramKey{User: rec.User, Mechanism: rec.Mechanism}
	if rec.Credential == nil {
		e.scram.remove(key)
	} else {
		e.scram.set(key, rec.Credential)
	}
}
