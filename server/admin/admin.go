package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	profiles "runtime/pprof"
	"strings"
	"time"

	"github.com/barnabas-mq/barnabas/internal/telemetry"
	"github.com/barnabas-mq/barnabas/server/network"
)

// Options make a Server.
type Options struct {
	// Addr is "host:port"; port 0 is a free one.
	Addr    string
	Metrics *telemetry.Registry
	// Ready lists why the broker cannot serve clients now; none when it can.
	Ready func() []string
	// Limits lists what it refuses though it is ready; it may be nil.
	Limits func() []string
	Log    *slog.Logger
}

// Server is the admin HTTP server.
type Server struct {
	http     *http.Server
	listener net.Listener
	log      *slog.Logger
	done     chan struct{}
}

// Bounds of the HTTP side: it shares the process with the broker.
const (
	headerTimeout  = 5 * time.Second
	readTimeout    = 10 * time.Second
	idleTimeout    = time.Minute
	headerBytesMax = 16 << 10
	connectionsMax = 64
	// writeTimeout leaves room for a CPU profile of the usual 30 seconds.
	writeTimeout = 2 * time.Minute
)

// Start listens and serves.
func Start(o Options) (*Server, error) {
	if o.Log == nil {
		o.Log = telemetry.Discard()
	}
	l, err := network.Listen(o.Addr)
	if err != nil {
		return nil, fmt.Errorf("admin listener: %w", err)
	}
	s := &Server{
		listener: &boundedListener{Listener: l, slots: make(chan struct{}, connectionsMax), closed: make(chan struct{})},
		log:      o.Log, done: make(chan struct{}),
		http: &http.Server{
			Handler: Handler(o), ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout,
			IdleTimeout: idleTimeout, MaxHeaderBytes: headerBytesMax,
			ErrorLog: slog.NewLogLogger(o.Log.Handler(), slog.LevelDebug),
		},
	}
	go func() {
		defer close(s.done)
		if err := s.http.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
			s.log.Error("the admin server has ended", "err", err)
		}
	}()
	return s, nil
}

// Addr is the address that it listens on.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Shutdown finishes the requests under way until ctx ends, then cuts them.
func (s *Server) Shutdown(ctx context.Context) error {
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = errors.Join(fmt.Errorf("shut down the admin server: %w", err), s.http.Close())
	}
	<-s.done
	return err
}

// index is what is served at /.
const index = `Barnabas

/metrics       Prometheus metrics
/healthz       200 while the process lives
/readyz        200 when clients can be served, else 503 and why; with 200, what is refused all the same
/debug/pprof/  profiles of the process
`

// serveProfiles serves one profile or a list of them: Go's own list has a link to
// the command line, which is not served.
func serveProfiles(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/debug/pprof/" {
		pprof.Index(w, r)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	var page strings.Builder
	page.WriteString("<title>profiles</title><ul>\n")
	link := func(target, text string) { fmt.Fprintf(&page, "<li><a href=\"%s\">%s</a></li>\n", target, text) }
	for _, p := range profiles.Profiles() {
		link(p.Name()+"?debug=1", fmt.Sprintf("%s (%d)", p.Name(), p.Count()))
	}
	link("profile?seconds=30", "profile: the processor for 30 seconds")
	link("trace?seconds=5", "trace: everything for 5 seconds")
	page.WriteString("</ul>\n")
	_, _ = io.WriteString(w, page.String()) // the client may have gone
}

// Handler is everything that the server serves.
func Handler(o Options) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { writeText(w, http.StatusOK, index) })
	mux.Handle("GET /metrics", o.Metrics.Handler())
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { writeText(w, http.StatusOK, "ok\n") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) { serveReady(w, r, o) })
	// Not the command line: flags may hold secrets.
	mux.HandleFunc("GET /debug/pprof/", serveProfiles)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	mux.HandleFunc("GET /debug/pprof/cmdline", http.NotFound)
	return mux
}

// readiness is the JSON form of /readyz.
type readiness struct {
	Ready   bool     `json:"ready"`
	Reasons []string `json:"reasons"`
}

// serveReady answers 200 or 503, as JSON to those who ask for it. A limit is no reason
// for 503: who restarts or leaves out what is not ready would take the readers' broker
// away as well.
func serveReady(w http.ResponseWriter, r *http.Request, o Options) {
	answer := readiness{Ready: true, Reasons: []string{}}
	if o.Ready != nil {
		answer.Reasons = append(answer.Reasons, o.Ready()...)
		answer.Ready = len(answer.Reasons) == 0
	}
	code, text := http.StatusServiceUnavailable, "not ready: "
	if answer.Ready {
		code, text = http.StatusOK, "ready"
		if o.Limits != nil {
			answer.Reasons = append(answer.Reasons, o.Limits()...)
		}
		if len(answer.Reasons) > 0 {
			text = "ready, but "
		}
	}
	if !strings.Contains(r.Header.Get("Accept"), "application/json") {
		writeText(w, code, text+strings.Join(answer.Reasons, "; ")+"\n")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	// The client has gone when this fails: there is nobody to tell.
	_ = json.NewEncoder(w).Encode(answer)
}

func writeText(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(code)
	_, _ = io.WriteString(w, text) // as above
}
