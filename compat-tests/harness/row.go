package harness

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Shared is the broker of a test program, started by Main.
var Shared *Broker

// SharedPort is where Main starts it, for tests that expect a certain one; 0 takes a free one.
var SharedPort int

// Main is TestMain of a client's row: it starts one broker for all its tests, runs them, stops the broker and fails
// when that is not clean. Where the machine allows it, all of that has a network of its own. BROKER_ADDR runs the tests
// against a broker that is already there.
func Main(m *testing.M, props map[string]string) {
	Isolate()
	os.Exit(Code(m, props))
}

// Code is Main in the network that is there, and returns the exit code instead of ending the program.
func Code(m *testing.M, props map[string]string) int {
	if addr := os.Getenv("BROKER_ADDR"); addr != "" {
		Shared = &Broker{}
		if _, err := fmt.Sscanf(addr, "127.0.0.1:%d", &Shared.Port); err != nil {
			fmt.Fprintln(os.Stderr, "BROKER_ADDR must be 127.0.0.1:port:", err)
			return 2
		}
		return m.Run()
	}
	dir, err := os.MkdirTemp(os.Getenv("COMPAT_TMP"), "compat-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	Shared, err = Start(ctx, Options{Dir: dir, Port: SharedPort, Properties: props})
	if err != nil {
		fmt.Fprintln(os.Stderr, "broker:", err)
		return 2
	}
	code := m.Run()
	stop, cancelStop := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancelStop()
	if err := Shared.Stop(stop); err != nil {
		fmt.Fprintln(os.Stderr, "broker:", err)
		code = max(code, 1)
	}
	if Shared.Kind == Barnabas {
		if p := Shared.Panics(); p != "" {
			fmt.Fprintln(os.Stderr, "the broker's log has:\n"+p)
			code = max(code, 1)
		}
	}
	if code != 0 {
		fmt.Fprintln(os.Stderr, "the broker's log is in", filepath.Join(dir, "broker.log"))
		return code
	}
	_ = os.RemoveAll(dir)
	return code
}

// Skip says why a test was not run. Under CI that is a failure: there everything can be installed.
func Skip(t testing.TB, format string, args ...any) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatalf("not run: "+format, args...)
	}
	t.Skipf("not run: "+format, args...)
}

// Name makes a topic, group or id that no other test uses, of characters that a topic's name may have.
func Name(t testing.TB, what string) string {
	legal := strings.Map(func(r rune) rune {
		if r == '=' || r == '/' || r == ' ' {
			return '-'
		}
		return r
	}, filepath.Base(t.Name()))
	return fmt.Sprintf("%s-%s-%d", what, legal, time.Now().UnixNano()%1e9)
}

// busyFactor is how much longer than it should a test may take before it has failed: on a machine that does other
// things too, slowness is no fault.
const busyFactor = 3

// Context ends busyFactor times after what a test may take on a machine of its own.
func Context(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), busyFactor*d)
	t.Cleanup(cancel)
	return ctx
}
