// The kafka-go row with a client of 2020: GOFLAGS="-modfile=clients/kafkago/old.mod -tags=old".
module github.com/barnabas-mq/barnabas/compat-tests

go 1.26.0

require (
	github.com/segmentio/kafka-go v0.4.0
	github.com/twmb/franz-go/pkg/kmsg v1.15.1
)

require (
	github.com/golang/snappy v0.0.1 // indirect
	github.com/klauspost/compress v1.9.8 // indirect
	github.com/pierrec/lz4 v2.0.5+incompatible // indirect
)
