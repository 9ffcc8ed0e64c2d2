package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/compat-tests/harness"
)

// side is one broker as a case sees it: it asks, and keeps the names of what it was told, so that a topic id or a
// member id is shown under the same name on both sides.
type side struct {
	kind      harness.Kind
	addr      string
	wire      *harness.Wire
	versions  map[int16][2]int16
	topicIDs  map[[16]byte]string
	ids       map[string][16]byte
	without   map[int8]bool  // kinds of coordinators that did not come
	producers map[int64]bool // transactional ones, made since the map was
	version   int16          // of the API that is walked now
}

func newSide(addr string, opts harness.Options) (*side, error) {
	s := &side{kind: opts.Kind, addr: addr, topicIDs: map[[16]byte]string{}, ids: map[string][16]byte{}, without: map[int8]bool{}, producers: map[int64]bool{}}
	req := kmsg.NewPtrApiVersionsRequest()
	req.Version, req.ClientSoftwareName, req.ClientSoftwareVersion = 3, "differential", "1"
	resp, err := s.try(req)
	if err != nil {
		return nil, err
	}
	s.versions = map[int16][2]int16{}
	for _, k := range resp.(*kmsg.ApiVersionsResponse).ApiKeys {
		s.versions[k.ApiKey] = [2]int16{k.MinVersion, k.MaxVersion}
	}
	return s, nil
}

func (s *side) serves(key, version int16) bool {
	r, ok := s.versions[key]
	return ok && r[0] <= version && version <= r[1]
}

// closed is what a side answers when it ends the connection instead.
type closed struct{}

func (closed) Error() string { return "the connection was closed" }

// try asks on the side's own connection, and makes a new one when the broker had closed it.
func (s *side) try(req kmsg.Request) (kmsg.Response, error) {
	for attempt := 0; ; attempt++ {
		if s.wire == nil {
			w, err := harness.Dial(s.addr, 5*time.Second)
			if err != nil {
				return nil, err
			}
			s.wire = w
		}
		resp, err := s.wire.Ask(req, 40*time.Second)
		if err == nil {
			return resp, nil
		}
		s.wire.Close()
		s.wire = nil
		if attempt > 0 || !isClosed(err) {
			if isClosed(err) {
				return nil, closed{}
			}
			return nil, err
		}
	}
}

func isClosed(err error) bool {
	var op *net.OpError
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.EPIPE) ||
		errors.Is(err, syscall.ECONNRESET) || errors.As(err, &op) && !op.Timeout()
}

// must asks for what a case needs before its own request; a failure here is a fault of the case.
func must[R kmsg.Response](s *side, req kmsg.Request) R {
	resp, err := s.try(req)
	if err != nil {
		panic(caseFault{fmt.Errorf("%s %s v%d: %w", s.kind, kmsg.NameForKey(req.Key()), req.GetVersion(), err)})
	}
	return resp.(R)
}

// caseFault is a preparation that failed.
type caseFault struct{ err error }

// at sets the version that is walked.
func (s *side) at(req kmsg.Request) kmsg.Request {
	req.SetVersion(s.version)
	return req
}

// runID sets this run's names apart from those of an earlier one against the same brokers.
var runID = fmt.Sprintf("%x", time.Now().Unix()&0xffffff)

// name is a name that no other case and version uses.
func (s *side) name(c *Case, what string) string {
	return fmt.Sprintf("%s-%s-v%d-%s", what, c.slug(), s.version, runID)
}
