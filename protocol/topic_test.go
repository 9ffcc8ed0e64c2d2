package protocol

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
)

func TestCheckTopicName(t *testing.T) {
	for _, name := range []string{"a", "A.b_c-9", "...", "__consumer_offsets", strings.Repeat("x", 249)} {
		if err := CheckTopicName(name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{"", ".", "..", "a b", "a/b", "ä", "a\x00", "a,b", strings.Repeat("x", 250)} {
		if code := Code(CheckTopicName(name)); code != kerr.InvalidTopicException.Code {
			t.Errorf("%q: code %d", name, code)
		}
	}
}
