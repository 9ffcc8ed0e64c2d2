package config

import (
	"testing"

	"github.com/barnabas-mq/barnabas/protocol"
)

// checkRefusal wants no error for an empty text, else the code and the text that
// a client gets.
func checkRefusal(t *testing.T, what string, err error, code int16, text string) {
	t.Helper()
	if text == "" {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
		return
	}
	if got := protocol.Message(err); err == nil || *got != text || protocol.Code(err) != code {
		t.Errorf("%s: got %v (code %d), want %q (code %d)", what, err, protocol.Code(err), text, code)
	}
}

// load is Load where it must succeed.
func load(t *testing.T, in Input) (*Static, []string) {
	t.Helper()
	static, warnings, err := Load(in)
	if err != nil {
		t.Fatalf("refused:\n%v", err)
	}
	return static, warnings
}

func given(key, value string) Setting { return Setting{Key: key, Value: value, Where: "flag --set"} }
