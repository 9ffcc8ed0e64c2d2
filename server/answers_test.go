package server

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/vfs"
	"github.com/barnabas-mq/barnabas/protocol"
)

// oracleVar names an address of Apache Kafka. With it,
//
//	BARNABAS_ORACLE=127.0.0.1:9092 go test ./server -run TestAnswers/kafka -rewrite
//
// asks Kafka the questions of testdata/answers/kafka anew and writes its answers
// down; without it the answers must be this broker's. The topics of the scripts
// must not exist there.
const oracleVar = "BARNABAS_ORACLE"

// TestAnswers sends requests and compares what comes back, field by field: in kafka/
// with what Apache Kafka 4.4 answered, in own/ with what this broker shall answer
// although, or because, Kafka does otherwise.
func TestAnswers(t *testing.T) {
	for _, dir := range []string{"kafka", "own"} {
		t.Run(dir, func(t *testing.T) {
			datadriven.Walk(t, "testdata/answers/"+dir, func(t *testing.T, path string) {
				addr := os.Getenv(oracleVar)
				if addr == "" {
					addr = start(t, vfs.NewMem(), load(t, testDir)).Addrs()[0].String()
				}
				a := &asker{addr: addr}
				defer a.close()
				datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
					if d.Cmd != "ask" {
						t.Fatalf("%s: no such command as %s", d.Pos, d.Cmd)
					}
					var out strings.Builder
					for line := range strings.Lines(d.Input) {
						answer, err := a.ask(strings.TrimSpace(line))
						if err != nil {
							t.Fatalf("%s: %s: %v", d.Pos, line, err)
						}
						out.WriteString(answer + "\n")
					}
					return out.String()
				})
			})
		})
	}
}

// asker is a client with one connection at a time.
type asker struct {
	addr        string
	conn        net.Conn
	correlation int32
}

const answerTimeout = patience

func (a *asker) close() {
	if a.conn != nil {
		a.conn.Close()
		a.conn = nil
	}
}

// ask sends a request that is written as its name, version and fields, and shows the
// answer, or "closed" when the broker hangs up.
func (a *asker) ask(line string) (string, error) {
	name, rest, _ := strings.Cut(line, " ")
	versionText, fields, _ := strings.Cut(rest, " ")
	version, err := strconv.Atoi(strings.TrimPrefix(versionText, "v"))
	if err != nil {
		return "", err
	}
	req := requestNamed(name)
	if req == nil {
		return "", fmt.Errorf("no such API as %s", name)
	}
	setDefaults(reflect.ValueOf(req).Elem())
	if fields != "" {
		if err := fromJSON(fields, req); err != nil {
			return "", err
		}
	}
	req.SetVersion(int16(version))
	body, err := a.roundTrip(req)
	if err != nil || body == nil {
		a.close()
		return "closed", err
	}
	if protocol.ResponseIsFlexible(req.Key(), int16(version)) {
		body = body[1:]
	}
	resp := req.ResponseKind()
	resp.SetVersion(int16(version))
	if err := resp.ReadFrom(body); err != nil {
		return "", err
	}
	return toJSON(reflect.ValueOf(resp).Elem()), nil
}

// requestNamed is an empty request of an API by Kafka's or the codec's name.
func requestNamed(name string) kmsg.Request {
	for key := int16(0); key <= kmsg.MaxKey; key++ {
		if strings.EqualFold(kmsg.NameForKey(key), name) {
			return kmsg.RequestForKey(key)
		}
	}
	return nil
}

// roundTrip returns a response without its correlation id, nil when the connection
// was closed.
func (a *asker) roundTrip(req kmsg.Request) ([]byte, error) {
	if a.conn == nil {
		conn, err := net.DialTimeout("tcp", a.addr, answerTimeout)
		if err != nil {
			return nil, err
		}
		a.conn = conn
	}
	a.correlation++
	if err := a.conn.SetDeadline(time.Now().Add(answerTimeout)); err != nil {
		return nil, err
	}
	if _, err := a.conn.Write(kmsg.NewRequestFormatter(kmsg.FormatterClientID("test")).AppendRequest(nil, req, a.correlation)); err != nil {
		return nil, err
	}
	var size [4]byte
	if _, err := io.ReadFull(a.conn, size[:]); errors.Is(err, io.EOF) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	frame := make([]byte, binary.BigEndian.Uint32(size[:]))
	if _, err := io.ReadFull(a.conn, frame); err != nil {
		return nil, err
	}
	if got := int32(binary.BigEndian.Uint32(frame)); got != a.correlation {
		return nil, fmt.Errorf("correlation id %d, want %d", got, a.correlation)
	}
	return frame[4:], nil
}
