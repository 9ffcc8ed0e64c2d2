package config

import "math"

// Keys with an effect: listeners and connections.
var (
	Listeners = define(familyNetwork, Key[[]string]{
		Name: "listeners", Default: []string{"PLAINTEXT://:9092"},
		Doc: "The addresses to listen on, as NAME://host:port; an empty host is every interface.",
	})
	AdvertisedListeners = define(familyNetwork, Key[[]string]{
		Name: "advertised.listeners", Null: true, Check: NoEmpty(),
		Doc: "The address that clients of each listener are told. Without it each client is told the one it connected to: clients on this machine, and those that come through the default gateway to a published container port, localhost.",
	})
	ListenerSecurityProtocolMap = define(familyNetwork, Key[string]{
		Name: "listener.security.protocol.map", Default: "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT", Importance: Low,
		Doc: "The security protocol of each listener name.",
	})
	InterBrokerListenerName = define(familyNetwork, Key[string]{
		Name: "inter.broker.listener.name", Null: true, Importance: Medium,
		Doc: "The listener that brokers use among themselves.",
	})
	SecurityInterBrokerProtocol = define(familyNetwork, Key[string]{
		Name: "security.inter.broker.protocol", Default: "PLAINTEXT", Check: OneOf("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"), Importance: Medium,
		Doc: "The protocol that brokers use among themselves when no listener is named for it.",
	})
	EarlyStartListeners = define(familyNetwork, Key[[]string]{
		Name: "early.start.listeners", NoEffect: true, Null: true, Check: NoEmpty(),
		Doc: "Listeners that Kafka opens before the broker is ready. All are opened when it is ready here.",
	})
	MaxConnections = define(familyNetwork, Key[int32]{
		Name: "max.connections", Default: math.MaxInt32, Check: AtLeast(0), Importance: Medium, Scope: ClusterWide,
		Doc: "The most connections at a time, over all listeners; clipped below the limit of open files.",
	})
	MaxConnectionsPerIP = define(familyNetwork, Key[int32]{
		Name: "max.connections.per.ip", Default: math.MaxInt32, Check: AtLeast(0), Importance: Medium, Scope: ClusterWide,
		Doc: "The most connections from one address.",
	})
	MaxConnectionsPerIPOverrides = define(familyNetwork, Key[string]{
		Name: "max.connections.per.ip.overrides", Importance: Medium, Scope: ClusterWide,
		Doc: "Other limits for some addresses, as address:number,address:number.",
	})
	MaxConnectionCreationRate = define(familyNetwork, Key[int32]{
		Name: "max.connection.creation.rate", NoEffect: true, Default: math.MaxInt32, Check: AtLeast(0), Importance: Medium, Scope: ClusterWide,
		Doc: "The most new connections a second.",
	})
	ConnectionsMaxIdleMs = define(familyNetwork, Key[int64]{
		Name: "connections.max.idle.ms", Default: 600000, Importance: Medium,
		Doc: "Close a connection on which nothing happened for this long.",
	})
	SocketRequestMaxBytes = define(familyNetwork, Key[int32]{
		Name: "socket.request.max.bytes", Default: 104857600, Check: AtLeast(1),
		Doc: "The largest request that is read.",
	})
	SocketSendBufferBytes = define(familyNetwork, Key[int32]{
		Name: "socket.send.buffer.bytes", NoEffect: true, Default: 102400,
		Doc: "SO_SNDBUF of each connection; -1 is the system's choice.",
	})
	SocketReceiveBufferBytes = define(familyNetwork, Key[int32]{
		Name: "socket.receive.buffer.bytes", NoEffect: true, Default: 102400,
		Doc: "SO_RCVBUF of each connection; -1 is the system's choice.",
	})
	SocketListenBacklogSize = define(familyNetwork, Key[int32]{
		Name: "socket.listen.backlog.size", NoEffect: true, Default: 50, Check: AtLeast(1), Importance: Medium,
		Doc: "How many connections may wait to be accepted.",
	})
	QueuedMaxRequestBytes = define(familyNetwork, Key[int64]{
		Name: "queued.max.request.bytes", Default: 268435456, Importance: Medium,
		Doc: "The memory for requests that are being read or served; when it is used up, reading stops until some are answered. -1, Kafka's no limit, is the default here. The largest request must fit: for less than 100 MiB set socket.request.max.bytes lower as well. What the lists in a request, and the answer, will take is counted before they are laid out; a request that would take more than 256 MiB by itself ends its connection.",
	})
)
