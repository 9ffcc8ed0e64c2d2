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

	serve      func(*Handlers, *Call, kmsg.Request)
	newRequest func() kmsg.Request
}

// requestBytesMax bounds every request but Produce. A group leader's SyncGroup
// and an OffsetCommit of tens of thousands of partitions are the largest that
// real clients send, at a few MiB.
const requestBytesMax = 8 << 20

// Table lists every API that is served, by key. A handler must not read it (that
// is an initialization cycle): Handlers has a copy.
var Table = []API{
	rowOf(0, true, (*Handlers).produce).large().hot().withoutFrame(),
	rowOf(0, true, (*Handlers).fetch).hot(),
	rowOf(0, false, (*Handlers).listOffsets),
	rowOf(0, true, (*Handlers).metadata),
	rowOf(0, true, (*Handlers).offsetCommit),
	rowOf(0, true, (*Handlers).offsetFetch),
	rowOf(0, true, (*Handlers).findCoordinator),
	rowOf(0, true, (*Handlers).joinGroup),
	rowOf(0, true, (*Handlers).heartbeat),
	rowOf(0, true, (*Handlers).leaveGroup),
	rowOf(0, true, (*Handlers).syncGroup),
	rowOf(0, true, (*Handlers).describeGroups),
	rowOf(0, true, (*Handlers).listGroups),
	rowOf(0, true, (*Handlers).saslHandshake),
	rowOf(0, true, (*Handlers).apiVersions),
	rowOf(0, true, (*Handlers).createTopics),
	rowOf(0, true, (*Handlers).deleteTopics),
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
	rowOf(0, false, (*Handlers).describeConfigs),
	rowOf(0, false, (*Handlers).alterConfigs),
	rowOf(0, true, (*Handlers).alterReplicaLogDirs),
	rowOf(0, false, (*Handlers).describeLogDirs),
	rowOf(0, true, (*Handlers).saslAuthenticate),
	rowOf(0, true, (*Handlers).createPartitions),
	rowOf(0, true, (*Handlers).createDelegationToken),
	rowOf(0, true, (*Handlers).renewDelegationToken),
	rowOf(0, true, (*Handlers).expireDelegationToken),
	rowOf(0, true, (*Handlers).describeDelegationToken),
	rowOf(0, true, (*Handlers).deleteGroups),
	rowOf(0, true, (*Handlers).electLeaders),
	rowOf(0, false, (*Handlers).incrementalAlterConfigs),
	rowOf(0, true, (*Handlers).alterAssignments),
	rowOf(0, true, (*Handlers).listReassignments),
	rowOf(0, true, (*Handlers).offsetDelete),
	rowOf(0, true, (*Handlers).describeClientQuotas),
	rowOf(0, false, (*Handlers).alterClientQuotas),
	rowOf(0, true, (*Handlers).describeUserScram),
	rowOf(0, true, (*Handlers).alterUserScram),
	rowOf(0, true, (*Handlers).describeQuorum),
	rowOf(0, true, (*Handlers).updateFeatures),
	rowOf(0, true, (*Handlers).describeCluster),
	rowOf(0, false, (*Handlers).describeProducers),
	rowOf(0, true, (*Handlers).unregisterBroker),
	rowOf(0, false, (*Handlers).describeTransactions),
	rowOf(0, false, (*Handlers).listTransactions),
	rowOf(0, true, (*Handlers).consumerGroupHeartbeat),
	rowOf(0, true, (*Handlers).consumerGroupDescribe),
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
		Aliases: hasBytes(reflect.TypeFor[Req]()),
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
