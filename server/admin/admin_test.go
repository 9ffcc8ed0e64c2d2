package admin_test

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/barnabas-mq/barnabas/internal/leak"
	"github.com/barnabas-mq/barnabas/internal/telemetry"
	"github.com/barnabas-mq/barnabas/server/admin"
)

func TestMain(m *testing.M) { os.Exit(leak.Run(m, time.Minute)) }

func startAdmin(t *testing.T, o admin.Options) (*admin.Server, func(path, accept string) (int, string)) {
	t.Helper()
	o.Addr = "127.0.0.1:0"
	s, err := admin.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Minute}
	t.Cleanup(func() {
		if err := s.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s, func(path, accept string) (int, string) {
		t.Helper()
		req, err := http.NewRequest("GET", "http://"+s.Addr().String()+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Accept", accept)
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(body)
	}
}

func TestEndpoints(t *testing.T) {
	r := telemetry.NewRegistry()
	r.Counter("some_total", "Some.").Add(3)
	_, get := startAdmin(t, admin.Options{Metrics: r})
	for _, tc := range []struct {
		path string
		code int
		body string
	}{
		{"/metrics", 200, "some_total 3\n"}, {"/healthz", 200, "ok\n"}, {"/readyz", 200, "ready\n"},
		{"/", 200, "/readyz"}, {"/debug/pprof/", 200, `href="goroutine?debug=1"`}, {"/debug/pprof/goroutine?debug=1", 200, "goroutine profile"},
		{"/debug/pprof/cmdline", 404, ""}, {"/nothing", 404, ""},
	} {
		if code, body := get(tc.path, ""); code != tc.code || !strings.Contains(body, tc.body) {
			t.Errorf("%s: %d %s", tc.path, code, body)
		}
	}
	if _, body := get("/debug/pprof/", ""); strings.Contains(body, "cmdline") {
		t.Error("the list of profiles has a link to the command line, which is not served")
	}
}

func TestReadinessGivesReasons(t *testing.T) {
	var down, full atomic.Bool
	_, get := startAdmin(t, admin.Options{Ready: func() []string {
		if down.Load() {
			return []string{"recovering logs: 3 of 9", "no controller"}
		}
		return nil
	}, Limits: func() []string {
		if full.Load() {
			return []string{"the disk is full"}
		}
		return nil
	}})
	check := func(accept string, wantCode int, want string) {
		t.Helper()
		if code, body := get("/readyz", accept); code != wantCode || body != want {
			t.Errorf("%d %q, want %d %q", code, body, wantCode, want)
		}
	}
	check("", 200, "ready\n")
	check("application/json", 200, "{\"ready\":true,\"reasons\":[]}\n")
	full.Store(true)
	check("", 200, "ready, but the disk is full\n")
	check("application/json", 200, "{\"ready\":true,\"reasons\":[\"the disk is full\"]}\n")
	down.Store(true)
	check("*/*", 503, "not ready: recovering logs: 3 of 9; no controller\n")
	_, body := get("/readyz", "application/json")
	var got struct {
		Ready   bool
		Reasons []string
	}
	if err := json.Unmarshal([]byte(body), &got); err != nil || got.Ready || len(got.Reasons) != 2 {
		t.Errorf("%s: %v", body, err)
	}
}

func TestOnlyReadsAreAllowed(t *testing.T) {
	s, _ := startAdmin(t, admin.Options{})
	resp, err := http.Post("http://"+s.Addr().String()+"/readyz", "text/plain", strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	if resp.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("status %d", resp.StatusCode)
	}
}

// TestConnectionsAreBounded opens more connections than are served at
// once; when they close, the rest get their turn.
func TestConnectionsAreBounded(t *testing.T) {
	s, get := startAdmin(t, admin.Options{})
	var open []net.Conn
	for range 64 {
		c, err := net.Dial("tcp", s.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, c)
	}
	late, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer late.Close()
	if _, err := io.WriteString(late, "GET /healthz HTTP/1.0\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if err := late.SetReadDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if n, err := late.Read(make([]byte, 1)); err == nil {
		t.Errorf("connection 65 was served: %d bytes", n)
	}
	for _, c := range open {
		c.Close()
	}
	if err := late.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if body, err := io.ReadAll(late); err != nil || !strings.HasSuffix(string(body), "ok\n") {
		t.Errorf("afterwards: %q, %v", body, err)
	}
	if code, _ := get("/healthz", ""); code != 200 {
		t.Errorf("status %d", code)
	}
}

func TestStartFailsOnATakenAddress(t *testing.T) {
	s, _ := startAdmin(t, admin.Options{})
	if _, err := admin.Start(admin.Options{Addr: s.Addr().String()}); err == nil || !strings.Contains(err.Error(), "admin listener") {
		t.Errorf("start: %v", err)
	}
}
