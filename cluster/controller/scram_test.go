package controller

import (
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/cluster/metadata"
)

// scram is a request of steps "set NAME MECHANISM ITERATIONS PASSWORD" and "delete
// NAME MECHANISM"; the name "-" is the empty one.
func scram(steps ...string) *kmsg.AlterUserSCRAMCredentialsRequest {
	req := kmsg.NewPtrAlterUserSCRAMCredentialsRequest()
	for _, step := range steps {
		var verb, name, password string
		var mechanism int8
		var iterations int32
		fmt.Sscan(step, &verb, &name, &mechanism, &iterations, &password)
		name = strings.TrimPrefix(name, "-")
		if verb == "delete" {
			req.Deletions = append(req.Deletions, kmsg.AlterUserSCRAMCredentialsRequestDeletion{Name: name, Mechanism: mechanism})
			continue
		}
		req.Upsertions = append(req.Upsertions, kmsg.AlterUserSCRAMCredentialsRequestUpsertion{
			Name: name, Mechanism: mechanism, Iterations: iterations, Salt: []byte("salt"), SaltedPassword: []byte(password),
		})
	}
	return req
}

func (b *bench) alterScram(steps ...string) (lines []string) {
	b.t.Helper()
	for _, out := range b.must(scram(steps...)).(*kmsg.AlterUserSCRAMCredentialsResponse).Results {
		lines = append(lines, verdictText(out.User, out.ErrorCode, out.ErrorMessage))
	}
	return lines
}

// TestAlterScram has Apache Kafka's own answers, but for an empty password, at
// which Kafka fails.
func TestAlterScram(t *testing.T) {
	b := newBench(t, testConfig())
	const twice = "92 A user credential cannot be altered twice in the same request"
	for _, c := range []struct {
		steps []string
		want  []string
	}{
		{[]string{"set al 1 4096 pw"}, []string{"al: 0"}},
		{[]string{"set al 2 16384 pw", "set bo 2 8192 pw"}, []string{"al: 0", "bo: 0"}},
		{[]string{"set e 1 4095 pw"}, []string{"e: 93 Too few iterations"}},
		{[]string{"set e 1 16385 pw"}, []string{"e: 93 Too many iterations"}},
		{[]string{"set e 1 -1 pw"}, []string{"e: 93 Too few iterations"}},
		{[]string{"set e 0 4096 pw"}, []string{"e: 33 Unknown SCRAM mechanism"}},
		{[]string{"set e 9 4096 pw"}, []string{"e: 33 Unknown SCRAM mechanism"}},
		{[]string{"set - 1 4096 pw"}, []string{": 93 Username must not be empty"}},
		{[]string{"set e 1 4096"}, []string{"e: 93 The salted password must not be empty"}},
		{[]string{"set e 1 4096 pw", "set e 1 4096 pw"}, []string{"e: " + twice}},
		{[]string{"delete al 1", "set al 1 4096 pw"}, []string{"al: " + twice}},
		{[]string{"delete al 1", "set al 2 4097 pw", "set zz 2 4097 pw", "set yy 2 1 pw"},
			[]string{"al: " + twice, "zz: 0", "yy: 93 Too few iterations"}},
		{[]string{"delete al 1"}, []string{"al: 0"}},
		{[]string{"delete nobody 1"}, []string{"nobody: 91 Attempt to delete a user credential that does not exist"}},
		{[]string{"delete nobody 0"}, []string{"nobody: 33 Unknown SCRAM mechanism"}},
		{[]string{"delete - 1"}, []string{": 93 Username must not be empty"}},
		{[]string{"delete zz 1", "delete zz 2"}, []string{"zz: 91 Attempt to delete a user credential that does not exist"}},
		{[]string{"delete al 2", "delete al 2"}, []string{"al: " + twice}},
		{[]string{"set m1 1 4096 pw", "set m2 1 1 pw", "set m1 2 4096 pw"}, []string{"m1: " + twice, "m2: 93 Too few iterations"}},
		{[]string{"delete nobody 1", "set m3 1 1 pw", "set m3 2 4096 pw", "set m4 2 4096 pw"},
			[]string{"nobody: 91 Attempt to delete a user credential that does not exist", "m3: 93 Too few iterations", "m4: 0"}},
		{nil, nil},
	} {
		same(t, strings.Join(c.steps, ", "), b.alterScram(c.steps...), c.want...)
	}
	if got := fmt.Sprint(b.img.ScramCredentials()); got != "[{al 2} {bo 2} {m4 2} {zz 2}]" {
		t.Errorf("credentials %s", got)
	}
}

// TestScramKeys makes the keys of the password "pencil" as RFC 7677 salts it; the
// server key is the one whose signature the RFC prints.
func TestScramKeys(t *testing.T) {
	b := newBench(t, testConfig())
	salted, err := hex.DecodeString("c4a49510323ab4f952cac1fa99441939e78ea74d6be81ddf7096e87513dc615d")
	if err != nil {
		t.Fatal(err)
	}
	req := scram("set user 1 4096 x")
	req.Upsertions[0].SaltedPassword = salted
	b.must(req)
	c, ok := b.img.ScramCredential("user", metadata.ScramSHA256)
	if !ok || string(c.Salt) != "salt" || c.Iterations != 4096 {
		t.Fatalf("%+v", c)
	}
	if got, want := hex.EncodeToString(c.StoredKey), "586e5df283e6dceb5c3e791d8b8528ec191e664045ce971792e2e6b5bb13e2a6"; got != want {
		t.Errorf("stored key %s, want %s", got, want)
	}
	if got, want := hex.EncodeToString(c.ServerKey), "c1f3cbc1c13a9d35a14c0990eed97629ea225863e566a4314ab99f3f00e5d9d5"; got != want {
		t.Errorf("server key %s, want %s", got, want)
	}
}
