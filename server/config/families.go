package config

// The families in which docs/config.md lists the keys.
const (
	familyBroker   = "Broker and topics"
	familyLog      = "Logs"
	familyNetwork  = "Listeners and connections"
	familyGroup    = "Groups and offsets"
	familyTxn      = "Transactions"
	familyOurs     = "Barnabas's own"
	familyCleaner  = "Compaction"
	familyShare    = "Share groups"
	familyStreams  = "Streams groups"
	familyTiered   = "Tiered storage"
	familySecurity = "Security"
)
