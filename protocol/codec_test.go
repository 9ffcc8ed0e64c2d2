package protocol

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// eachRequest calls fn with a fresh request of every API and version.
func eachRequest(fn func(req kmsg.Request)) {
	for key := int16(0); key <= kmsg.MaxKey; key++ {
		probe := kmsg.RequestForKey(key)
		if probe == nil {
			continue
		}
		for v := int16(0); v <= probe.MaxVersion(); v++ {
			req := kmsg.RequestForKey(key)
			req.SetVersion(v)
			fn(req)
		}
	}
}

// frameOf encodes a request as a client does, without the size.
func frameOf(req kmsg.Request, correlation int32, clientID string) []byte {
	f := kmsg.NewRequestFormatter(kmsg.FormatterClientID(clientID))
	return f.AppendRequest(nil, req, correlation)[4:]
}

func TestHeaderOfEveryVersion(t *testing.T) {
	eachRequest(func(req kmsg.Request) {
		frame := frameOf(req, 77, "me")
		if req.Key() == 7 && req.GetVersion() == 0 {
			return // ControlledShutdown v0 alone has no client id
		}
		h, body, err := ParseHeader(frame)
		want := Header{Key: req.Key(), Version: req.GetVersion(), CorrelationID: 77, ClientID: "me"}
		if err != nil || h != want {
			t.Fatalf("key %d v%d: header %+v, %v", req.Key(), req.GetVersion(), h, err)
		}
		if !bytes.Equal(body, req.AppendTo(nil)) {
			t.Errorf("key %d v%d: the body is %x, want %x", req.Key(), req.GetVersion(), body, req.AppendTo(nil))
		}
		if _, err := DecodeRequest(h, append(bytes.Clone(body), 1, 2, 3)); err != nil {
			t.Errorf("key %d v%d with bytes behind it: %v", req.Key(), req.GetVersion(), err)
		}
	})
}

func TestHeaderFaults(t *testing.T) {
	good := frameOf(kmsg.NewPtrMetadataRequest(), 1, "client")
	flexible := func(tags ...byte) []byte {
		b := []byte{0, 3, 0, 12, 0, 0, 0, 1, 0xff, 0xff}
		return append(b, tags...)
	}
	for _, tc := range []struct {
		name  string
		frame []byte
		ok    bool
	}{
		{"whole", good, true},
		{"empty", nil, false},
		{"no client id", good[:8], false},
		{"client id cut", good[:12], false},
		{"null client id", flexible(0), true},
		{"one tag", flexible(1, 5, 2, 9, 9), true},
		{"tag count cut", flexible(), false},
		{"tag count lies", flexible(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1), false},
		{"tag size lies", flexible(1, 5, 3, 9, 9), false},
		{"tag size overflows", flexible(1, 5, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1), false},
		{"key beyond all", []byte{0x7f, 0xff, 0, 0, 0, 0, 0, 1, 0, 0}, true},
		{"negative key", []byte{0xff, 0xff, 0, 0, 0, 0, 0, 1, 0, 0}, true},
	} {
		if _, _, err := ParseHeader(tc.frame); (err == nil) != tc.ok {
			t.Errorf("%s: error %v", tc.name, err)
		}
	}
}

func TestClientIDIsReused(t *testing.T) {
	frame := frameOf(kmsg.NewPtrMetadataRequest(), 1, "client")
	id := "client"
	allocs := testing.AllocsPerRun(100, func() {
		h, _, err := ParseHeaderReusing(frame, id)
		if err != nil || h.ClientID != id {
			t.Fatalf("header %+v, %v", h, err)
		}
	})
	if allocs != 0 && !raceEnabled {
		t.Errorf("%v allocations", allocs)
	}
	if h, _, _ := ParseHeaderReusing(frame, "other"); h.ClientID != "client" {
		t.Errorf("client id %q", h.ClientID)
	}
}

func TestResponseFrames(t *testing.T) {
	eachRequest(func(req kmsg.Request) {
		h := Header{Key: req.Key(), Version: req.GetVersion(), CorrelationID: 0x01020304}
		frame := AppendResponse([]byte{9}, h, req.ResponseKind())[1:]
		if size := int(binary.BigEndian.Uint32(frame)); size != len(frame)-4 {
			t.Fatalf("key %d v%d: size %d of %d bytes", h.Key, h.Version, size, len(frame))
		}
		body := frame[8:]
		if req.IsFlexible() && h.Key != ApiVersionsKey {
			if body[0] != 0 {
				t.Fatalf("key %d v%d: no tags in the header", h.Key, h.Version)
			}
			body = body[1:]
		}
		resp := req.ResponseKind()
		if err := resp.ReadFrom(body); err != nil {
			t.Fatalf("key %d v%d: %v", h.Key, h.Version, err)
		}
	})
}

func TestDecodeRefusesUnknownKeysAndVersions(t *testing.T) {
	for _, h := range []Header{{Key: -1}, {Key: kmsg.MaxKey + 1}, {Key: 3, Version: -1}, {Key: 3, Version: 99}} {
		if _, err := DecodeRequest(h, make([]byte, 100)); err == nil {
			t.Errorf("%+v was decoded", h)
		}
	}
}

// fill puts n elements into every slice of structs, strings and numbers that v
// reaches, and tags many fields into every struct at the given depth.
func fill(v reflect.Value, depth, n, tags int) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return
		}
		fill(v.Elem(), depth, n, tags)
	case reflect.Struct:
		if d, ok := v.Addr().Interface().(interface{ Default() }); ok {
			d.Default()
		}
		for i := range v.NumField() {
			if t, ok := v.Field(i).Addr().Interface().(*kmsg.Tags); ok {
				for k := range tags {
					t.Set(uint32(1000+k), nil)
				}
				continue
			}
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i), depth, n, tags)
			}
		}
	case reflect.Slice:
		count := n
		if depth == 0 || v.Type().Elem().Kind() == reflect.Uint8 {
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), count, count))
		if v.Type().Elem().Kind() == reflect.Struct {
			for i := range count {
				fill(v.Index(i), depth-1, n, tags)
			}
		}
	}
}

// decodeCost is what decoding allocates: the least of up to three measurements
// until it is within the bound, since the runtime allocates too.
func decodeCost(t *testing.T, h Header, body []byte, bound int) int {
	least := math.MaxInt
	for range 3 {
		if least <= bound {
			break
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := DecodeRequest(h, body)
		runtime.ReadMemStats(&after)
		if err != nil {
			t.Fatalf("key %d v%d: %v", h.Key, h.Version, err)
		}
		least = min(least, int(after.TotalAlloc-before.TotalAlloc))
	}
	return least
}

func TestDecodedSizeIsAnUpperBound(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector changes what is allocated")
	}
	eachRequest(func(req kmsg.Request) {
		for _, shape := range []struct{ depth, n, tags int }{{1, 4000, 0}, {2, 60, 0}, {3, 15, 0}, {0, 0, 4000}, {1, 100, 20}, {1, 600, 1}} {
			full := kmsg.RequestForKey(req.Key())
			full.SetVersion(req.GetVersion())
			fill(reflect.ValueOf(full), shape.depth, shape.n, shape.tags)
			body := full.AppendTo(nil)
			if len(body) < 512 {
				continue
			}
			h := Header{Key: req.Key(), Version: req.GetVersion()}
			estimate := DecodedSize(h, body).Bytes
			used := decodeCost(t, h, body, estimate)
			if used > estimate {
				t.Errorf("%s v%d %+v: %d bytes became %d, estimate %d", Name(h.Key), h.Version, shape, len(body), used, estimate)
			}
			// Known tagged fields that are filled look dearer than they are.
			if estimate > 4*used+4096 && req.Key() != 63 {
				t.Errorf("%s v%d %+v: %d bytes became %d, estimate %d is far off", Name(h.Key), h.Version, shape, len(body), used, estimate)
			}
		}
	})
}

func TestEveryLayoutIsLearned(t *testing.T) {
	eachRequest(func(req kmsg.Request) {
		l := layoutOf(req.Key(), req.GetVersion())
		if l == nil {
			t.Errorf("%s v%d: no layout", Name(req.Key()), req.GetVersion())
			return
		}
		for n := range 3 {
			fill(reflect.ValueOf(req), 4, n, n)
			s := sizer{reader: reader{b: req.AppendTo(nil), flexible: l.flexible}}
			s.structure(l.root)
			if s.bad || len(s.b) > 0 {
				t.Errorf("%s v%d with %d elements: %d bytes left, bad %v", Name(req.Key()), req.GetVersion(), n, len(s.b), s.bad)
			}
		}
	})
}

func TestRecordsAreNotCharged(t *testing.T) {
	req := kmsg.NewPtrProduceRequest()
	for v := int16(3); v <= req.MaxVersion(); v++ {
		req.SetVersion(v)
		req.Topics = nil
		topic := kmsg.NewProduceRequestTopic()
		topic.Topic = "some topic"
		p := kmsg.NewProduceRequestTopicPartition()
		p.Records = make([]byte, 100_000)
		topic.Partitions = append(topic.Partitions, p)
		req.Topics = append(req.Topics, topic)
		if n := DecodedSize(Header{Version: v}, req.AppendTo(nil)).Bytes; n > 1000 {
			t.Errorf("v%d: %d bytes", v, n)
		}
	}
}

func TestEstimatesOfHonestRequests(t *testing.T) {
	fetch := kmsg.NewPtrFetchRequest()
	fetch.SetVersion(17)
	topic := kmsg.NewFetchRequestTopic()
	topic.Partitions = append(topic.Partitions, kmsg.NewFetchRequestTopicPartition())
	fetch.Topics = append(fetch.Topics, topic)
	if size := DecodedSize(Header{Key: 1, Version: 17}, fetch.AppendTo(nil)); size.Bytes > 1024 || size.Elements != 2 {
		t.Errorf("a fetch of one partition is %+v", size)
	}
}

func BenchmarkDecodedSize(b *testing.B) {
	fetch := kmsg.NewPtrFetchRequest()
	fetch.SetVersion(17)
	topic := kmsg.NewFetchRequestTopic()
	topic.Partitions = append(topic.Partitions, kmsg.NewFetchRequestTopicPartition())
	fetch.Topics = append(fetch.Topics, topic)
	body := fetch.AppendTo(nil)
	b.ReportAllocs()
	for range b.N {
		DecodedSize(Header{Key: 1, Version: 17}, body)
	}
}

// recordedFrames are requests of real clients, by <key>-<version>-<client>:
// Kafka's Java clients and tools, librdkafka, franz-go.
func recordedFrames(t testing.TB) map[string][]byte {
	names, err := filepath.Glob("testdata/frames/*.frame")
	if err != nil || len(names) == 0 {
		t.Fatalf("no frames: %v", err)
	}
	out := map[string][]byte{}
	for _, name := range names {
		if out[filepath.Base(name)], err = os.ReadFile(name); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func TestRecordedFrames(t *testing.T) {
	for name, frame := range recordedFrames(t) {
		h, body, err := ParseHeader(frame)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if prefix := fmt.Sprintf("%02d-v%02d-", h.Key, h.Version); !strings.HasPrefix(name, prefix) || h.ClientIDNull {
			t.Errorf("%s: header %+v", name, h)
		}
		req, err := DecodeRequest(h, body)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if again := req.AppendTo(nil); !bytes.Equal(again, body) {
			t.Errorf("%s: %x became %x", name, body, again)
		}
		if n := DecodedSize(h, body).Bytes; n > 8192 {
			t.Errorf("%s: %d bytes are charged %d", name, len(body), n)
		}
		for cut := range frame {
			if h, body, err := ParseHeader(frame[:cut]); err == nil {
				if _, err := DecodeRequest(h, body); err == nil {
					t.Errorf("%s: %d of %d bytes are a whole request", name, cut, len(frame))
				}
			}
		}
	}
}

func FuzzDecodeRequest(f *testing.F) {
	for _, frame := range recordedFrames(f) {
		f.Add(frame)
	}
	eachRequest(func(req kmsg.Request) {
		f.Add(frameOf(req, 5, "fuzz"))
		fill(reflect.ValueOf(req), 3, 2, 1)
		f.Add(frameOf(req, 5, "fuzz"))
	})
	f.Fuzz(func(t *testing.T, frame []byte) {
		h, body, err := ParseHeader(frame)
		if err != nil {
			return
		}
		if size := DecodedSize(h, body); size.Bytes < 0 || size.Elements < 0 {
			t.Fatal("a negative estimate")
		}
		req, err := DecodeRequest(h, body)
		if err != nil {
			return
		}
		// What was decoded can be encoded, and means the same again.
		again, err := DecodeRequest(h, req.AppendTo(nil))
		if err != nil {
			t.Fatalf("key %d v%d: %v", h.Key, h.Version, err)
		}
		if a, b := req.AppendTo(nil), again.AppendTo(nil); !bytes.Equal(a, b) {
			t.Fatalf("key %d v%d: %x, then %x", h.Key, h.Version, a, b)
		}
	})
}
