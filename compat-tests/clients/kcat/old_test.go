package kcat

import (
	"fmt"
	"testing"

	"github.com/barnabas-mq/barnabas/compat-tests/harness"
)

// testOldBrokers has librdkafka speak as it does to a broker of an age that it cannot ask for its versions: messages of
// format v0 up to 0.9, of v1 up to 0.10.
func (k *kcat) testOldBrokers(t *testing.T) {
	for _, age := range []string{"0.8.2.2", "0.9.0.1", "0.10.0.1", "0.10.2.2"} {
		old := []string{"-X", "api.version.request=false", "-X", "broker.version.fallback=" + age}
		for _, codec := range []string{"none", "gzip", "snappy", "lz4"} {
			t.Run(fmt.Sprintf("%s/%s", age, codec), func(t *testing.T) {
				topic := harness.Name(t, "kcat-old")
				sent := lines(2000, "message %d of many that are alike")
				k.run(t, sent, append(old, "-P", "-t", topic, "-z", codec, "-X", "batch.num.messages=300")...)
				for reader, args := range map[string][]string{"old": old, "new": nil} {
					got := k.run(t, "", append(args, "-C", "-t", topic, "-e", "-q", "-X", "check.crcs=true")...)
					if got != sent {
						t.Errorf("sent %d bytes, the %s reader has %d", len(sent), reader, len(got))
					}
					if got := k.run(t, "", append(args, "-C", "-t", topic, "-e", "-q", "-o", "1234")...); got != sent[len(lines(1234, "message %d of many that are alike")):] {
						t.Errorf("from offset 1234 the %s reader has %d bytes", reader, len(got))
					}
				}
			})
		}
	}
}
