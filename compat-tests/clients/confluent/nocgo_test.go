//go:build !cgo

package confluent

import (
	"testing"

	"github.com/barnabas-mq/barnabas/compat-tests/harness"
)

func TestMain(m *testing.M) {
	harness.Describe("confluentinc/confluent-kafka-go", "not built")
	harness.Main(m, nil)
}

func TestConfluent(t *testing.T) {
	harness.Skip(t, "confluent-kafka-go needs cgo and a C compiler (apt-get install gcc)")
}
