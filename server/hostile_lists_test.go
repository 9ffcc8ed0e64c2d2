package server

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"net"
	"reflect"
	"runtime"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/vfs"
	"github.com/barnabas-mq/barnabas/protocol"
	"github.com/barnabas-mq/barnabas/server/api"
)

// TestLongListsTakeWhatTheyAreCharged sends every API long lists, one array of the
// request after the other, and holds all that is allocated until the answer has come
// against what is charged to queued.max.request.bytes.
func TestLongListsTakeWhatTheyAreCharged(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector changes what is allocated")
	}
	n := start(t, vfs.NewMem(), load(t, testDir, "auto.create.topics.enable=false"))
	conn, err := net.Dial("tcp", n.Addrs()[0].String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	const elements = 5000
	for _, row := range api.Table {
		for _, version := range slices.Compact([]int16{row.Min, row.Max}) {
			for _, path := range arraysOf(reflect.TypeOf(kmsg.RequestForKey(row.Key)).Elem(), nil) {
				frame := longList(row.Key, version, path, elements)
				if frame == nil {
					continue // this version has no such array
				}
				used, charged := allocatedFor(t, conn, frame, elements*row.ElementBytes)
				if used > charged {
					t.Errorf("%s v%d with %d elements: %d bytes for each, charged %d", row.Name, version, elements, used/elements, charged/elements)
				}
			}
		}
	}
}

// TestAnswersThatAreTooLargeAreRefused asks many times for the same thing, which is
// large: for this broker's configuration, and for a group with a large subscription.
func TestAnswersThatAreTooLargeAreRefused(t *testing.T) {
	n := start(t, vfs.NewMem(), load(t, testDir))
	a := &asker{addr: n.Addrs()[0].String()}
	defer a.close()
	joinAlone(t, client(t, n), "g", make([]byte, 500<<10))
	configs, groups := kmsg.NewPtrDescribeConfigsRequest(), kmsg.NewPtrDescribeGroupsRequest()
	for range 20_000 {
		configs.Resources = append(configs.Resources, kmsg.DescribeConfigsRequestResource{ResourceType: kmsg.ConfigResourceTypeBroker, ResourceName: "1"})
	}
	for range 2000 {
		groups.Groups = append(groups.Groups, "g")
	}
	for _, req := range []kmsg.Request{configs, groups} {
		if body, err := a.roundTrip(req); err != nil || body != nil {
			t.Errorf("%s: answered %d bytes, %v", protocol.Name(req.Key()), len(body), err)
		}
		a.close()
	}
	configs.Resources, groups.Groups = configs.Resources[:100], groups.Groups[:100]
	for _, req := range []kmsg.Request{configs, groups} {
		if body, err := a.roundTrip(req); err != nil || len(body) < 1<<20 {
			t.Errorf("%s: answered %d bytes, %v", protocol.Name(req.Key()), len(body), err)
		}
	}
}

// joinAlone makes a stable group of one member.
func joinAlone(t *testing.T, cl *kgo.Client, group string, subscription []byte) {
	t.Helper()
	join, sync := kmsg.NewPtrJoinGroupRequest(), kmsg.NewPtrSyncGroupRequest()
	join.Group, join.ProtocolType, join.SessionTimeoutMillis, join.RebalanceTimeoutMillis = group, "any", 1_800_000, 30_000 // as long as Kafka allows
	join.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "p", Metadata: subscription}}
	for join.MemberID == "" || sync.Generation == 0 {
		r, err := join.RequestWith(within(t), cl)
		if err != nil {
			t.Fatal(err)
		}
		join.MemberID, sync.Generation = r.MemberID, max(r.Generation, 0)
	}
	sync.Group, sync.MemberID = group, join.MemberID
	sync.ProtocolType, sync.Protocol = &join.ProtocolType, &join.Protocols[0].Name
	if r, err := sync.RequestWith(within(t), cl); err != nil || r.ErrorCode != 0 {
		t.Fatal(r, err)
	}
}

// allocatedFor is what is allocated while a request is answered, the least of up to
// three measurements, and what it is charged; handlingBytes is the part of that
// beside the decoded form.
func allocatedFor(t *testing.T, conn net.Conn, frame []byte, handlingBytes int) (used, charged int) {
	t.Helper()
	h, body, err := protocol.ParseHeader(frame[4:])
	if err != nil {
		t.Fatal(err)
	}
	decoded := protocol.DecodedSize(h, body).Bytes
	const connectionBytes = 64 << 10
	used, charged = math.MaxInt, decoded+handlingBytes+3*len(frame)+connectionBytes
	for range 3 {
		if used <= charged {
			break
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		var size [4]byte
		if _, err := conn.Write(frame); err != nil {
			t.Fatal(err)
		}
		if _, err = io.ReadFull(conn, size[:]); err == nil {
			_, err = io.CopyN(io.Discard, conn, int64(binary.BigEndian.Uint32(size[:])))
		}
		if err != nil {
			t.Fatalf("%s v%d: %v", protocol.Name(h.Key), h.Version, err)
		}
		runtime.ReadMemStats(&after)
		used = min(used, int(after.TotalAlloc-before.TotalAlloc))
	}
	return used, charged
}

// arraysOf are the paths, by field numbers, to the arrays of a request, those inside
// of others too.
func arraysOf(t reflect.Type, at []int) (paths [][]int) {
	for i := range t.NumField() {
		f := t.Field(i).Type
		if f == reflect.TypeFor[kmsg.Tags]() || f.Kind() != reflect.Slice || f.Elem().Kind() == reflect.Uint8 {
			continue
		}
		path := append(slices.Clone(at), i)
		paths = append(paths, path)
		if f.Elem().Kind() == reflect.Struct {
			paths = append(paths, arraysOf(f.Elem(), path)...)
		}
	}
	return paths
}

// longList is a frame of a request with one element in each array and n in one of
// them; nil when the version does not have that array.
func longList(key, version int16, path []int, n int) []byte {
	req := kmsg.RequestForKey(key)
	req.SetVersion(version)
	v := reflect.ValueOf(req).Elem()
	fillRequest(v, "t")
	if produce, ok := req.(*kmsg.ProduceRequest); ok {
		produce.Acks = 1 // the others have no answer, or wait
	}
	req.SetVersion(version)
	short := len(req.AppendTo(nil))
	lengthen(v, path, n, key)
	if len(req.AppendTo(nil)) < short+n {
		return nil
	}
	return kmsg.NewRequestFormatter().AppendRequest(nil, req, 1)
}

// fillRequest sets every text and puts one element into every list of structs.
func fillRequest(v reflect.Value, text string) {
	setDefaults(v)
	for i := range v.NumField() {
		f := v.Field(i)
		switch {
		case f.Kind() == reflect.String:
			f.SetString(text)
		case f.Kind() == reflect.Pointer && f.Type().Elem().Kind() == reflect.String:
			f.Set(reflect.ValueOf(&text))
		case f.Kind() == reflect.Slice && f.Type().Elem().Kind() == reflect.Struct:
			f.Set(reflect.MakeSlice(f.Type(), 1, 1))
			fillRequest(f.Index(0), text)
		}
	}
}

// lengthen gives the array at path n elements, of different names where that does
// not make as many topics.
func lengthen(v reflect.Value, path []int, n int, key int16) {
	f := v.Field(path[0])
	if len(path) > 1 {
		lengthen(f.Index(0), path[1:], n, key)
		return
	}
	list := reflect.MakeSlice(f.Type(), n, n)
	for i := range n {
		text := "t"
		if key != int16(kmsg.CreateTopics) {
			text = fmt.Sprint(i)
		}
		switch e := list.Index(i); e.Kind() {
		case reflect.Struct:
			fillRequest(e, text)
		case reflect.String:
			e.SetString(text)
		}
	}
	f.Set(list)
}
