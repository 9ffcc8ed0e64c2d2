package api

import (
	"reflect"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// API is one row of Table.
type API struct {
	Key, Min, Max int16
	// Name is Kafka's name of the API, as in metric labels.
	Name string
	// Inline says that the handler never blocks: it may run on an event loop.
	Inline bool
	// Large admits requests up to socket.request.max.bytes; others may be up to
	// requestBytesMax.
	Large bool
	// Hot rows are not searched for error codes when they reply: their handlers
	// call CountError.
	Hot bool
	// Aliases says that the decoded request points into its frame, so that the
	// frame is kept for as long as the request lives. It is false for Produce,
	// whose handler is done with the records when it returns.
	Aliases bool
	// ElementBytes is what the work on each element of the request's arrays, and
	// the answer to it, take in memory beside the decoded element.
	ElementBytes int
	// Waits says that the answer may have to wait for other clients' requests.
	Waits bool

	serve      func(*Handlers, *Call, kmsg.Request)
	newRequest func() kmsg.Request
}

// requestBytesMax bounds every request but Produce. A group leader's SyncGroup
// and an OffsetCommit of tens of thousands of partitions are the largest that
// real clients send, at a few MiB.
const requestBytesMax = 8 << 20

// elementBytes is an upper estimate for most APIs, of which the test of hostile
// lists in the folder above is the judge.
const elementBytes = 512

// Table lists every API that is served, by key. A handler must not read it (that
// is an initialization cycle): Handlers has a copy.
var Table = []API{
	rowOf(0, true, (*Handlers).produce).large().hot().withoutFrame().waits().perElement(640),
	rowOf(0, true, (*Handlers).fetch).hot().waits(),
	rowOf(0, false, (*Handlers).listOffsets),
	rowOf(0, true, (*Handlers).metadata),
	rowOf(0, true, (*Handlers).offsetCommit),
	rowOf(0, true, (*Handlers).offsetFetch).perElement(1 << 10),
	rowOf(0, true, (*Handlers).findCoordinator).perElement(1 << 10),
	rowOf(0, true, (*Handlers).joinGroup).waits(),
	rowOf(0, true, (*Handlers).heartbeat),
	rowOf(0, true, (*Handlers).leaveGroup),
	rowOf(0, true, (*Handlers).syncGroup).waits(),
	rowOf(0, true, (*Handlers).describeGroups).perElement(2 << 10),
	rowOf(0, true, (*Handlers).listGroups),
	rowOf(0, true, (*Handlers).saslHandshake),
	rowOf(0, true, (*Handlers).apiVersions),
	rowOf(0, true, (*Handlers).createTopics),
	rowOf(0, true, (*Handlers).deleteTopics).perElement(1 << 10),
	rowOf(0, false, (*Handlers).deleteRecords),
	rowOf(0, true, (*Handlers).initProducerID),
	rowOf(0, false, (*Handlers).offsetForLeaderEpoch),
	rowOf(0, false, (*Handlers).addPartitionsToTxn),
	rowOf(0, true, (*Handlers).addOffsetsToTxn),
	rowOf(0, true, (*Handlers).endTxn),
	rowOf(1, false, (*Handlers).writeTxnMarkers),
	rowOf(0, true, (*Handlers).txnOffsetCommit),
	rowOf(0, true, (*Handlers).describeACLs),
	rowOf(0, true, (*Handlers).createACLs),
	rowOf(0, true, (*Handlers).deleteACLs),
	rowOf(0, false, (*Handlers).describeConfigs).perElement(2 << 10),
	rowOf(0, false, (*Handlers).alterConfigs).perElement(1 << 10),
	rowOf(0, true, (*Handlers).alterReplicaLogDirs),
	rowOf(0, false, (*Handlers).describeLogDirs),
	rowOf(0, true, (*Handlers).saslAuthenticate),
	rowOf(0, true, (*Handlers).createPartitions),
	rowOf(0, true, (*Handlers).createDelegationToken),
	rowOf(0, true, (*Handlers).renewDelegationToken),
	rowOf(0, true, (*Handlers).expireDelegationToken),
	rowOf(0, true, (*Handlers).describeDelegationToken),
	rowOf(0, true, (*Handlers).deleteGroups).perElement(1 << 10),
	rowOf(0, true, (*Handlers).electLeaders),
	rowOf(0, false, (*Handlers).incrementalAlterConfigs).perElement(1 << 10),
	rowOf(0, true, (*Handlers).alterAssignments).perElement(1 << 10),
	rowOf(0, true, (*Handlers).listReassignments),
	rowOf(0, true, (*Handlers).offsetDelete),
	rowOf(0, true, (*Handlers).describeClientQuotas),
	rowOf(0, false, (*Handlers).alterClientQuotas).perElement(1 << 10),
	rowOf(0, true, (*Handlers).describeUserScram).perElement(1 << 10),
	rowOf(0, true, (*Handlers).alterUserScram).perElement(1 << 10),
	rowOf(0, true, (*Handlers).describeQuorum).perElement(1 << 10),
	rowOf(0, true, (*Handlers).updateFeatures),
	rowOf(0, true, (*Handlers).describeCluster),
	rowOf(0, false, (*Handlers).describeProducers).perElement(1 << 10),
	rowOf(0, true, (*Handlers).unregisterBroker),
	rowOf(0, false, (*Handlers).describeTransactions).perElement(1 << 10),
	rowOf(0, false, (*Handlers).listTransactions),
	rowOf(0, true, (*Handlers).consumerGroupHeartbeat),
	rowOf(0, true, (*Handlers).consumerGroupDescribe).perElement(2 << 10),
	rowOf(0, true, (*Handlers).getTelemetrySubscriptions),
	rowOf(0, false, (*Handlers).pushTelemetry).withoutFrame(),
	rowOf(0, false, (*Handlers).listConfigResources),
	rowOf(0, false, (*Handlers).describeTopicPartitions),
	rowOf(0, true, (*Handlers).addRaftVoter),
	rowOf(0, true, (*Handlers).removeRaftVoter),
	rowOf(0, true, (*Handlers).unregisterController),
}

// rowOf makes a row from a handler; key and types come from the request type.
// Every version that kmsg knows from min on is served.
func rowOf[Req any, PReq interface {
	*Req
	kmsg.Request
}, Resp any](min int16, inline bool, handle func(*Handlers, *Call, *Req, *Resp)) API {
	newReq := func() kmsg.Request {
		r := PReq(new(Req))
		if d, ok := any(r).(interface{ Default() }); ok {
			d.Default()
		}
		return r
	}
	probe := newReq()
	return API{
		Key: probe.Key(), Min: min, Max: probe.MaxVersion(),
		Name: kmsg.NameForKey(probe.Key()), Inline: inline, newRequest: newReq,
		ElementBytes: elementBytes,
		Aliases:      hasBytes(reflect.TypeFor[Req]()),
		serve: func(h *Handlers, c *Call, req kmsg.Request) {
			c.resp = req.ResponseKind()
			handle(h, c, (*Req)(req.(PReq)), any(c.resp).(*Resp))
		},
	}
}

// large admits requests as large as the listener does.
func (a API) large() API {
	a.Large = true
	return a
}

// perElement is for an API whose work on each element, or answer to it, is larger
// than that of most.
func (a API) perElement(sizeBytes int) API {
	a.ElementBytes = sizeBytes
	return a
}

// waits marks an API whose answer may have to wait for other clients' requests.
func (a API) waits() API {
	a.Waits = true
	return a
}

// hot marks an API whose responses are too many or too long to be searched.
func (a API) hot() API {
	a.Hot = true
	return a
}

// withoutFrame says that the handler is done with every []byte of its request
// when it returns.
func (a API) withoutFrame() API {
	a.Aliases = false
	return a
}

// hasBytes says that a request type has a []byte somewhere, which the decoder
// points into the frame.
func hasBytes(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice:
		return t.Elem().Kind() == reflect.Uint8 || hasBytes(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if hasBytes(t.Field(i).Type) {
				return true
			}
		}
	}
	return false
}
