// The franz-go row with the first release of version 1: GOFLAGS="-modfile=clients/franz/old.mod -tags=old".
module github.com/barnabas-mq/barnabas/compat-tests

go 1.26.0

require (
	github.com/twmb/franz-go v1.0.0
	github.com/twmb/franz-go/pkg/kmsg v0.0.0-20210901051457-3c197a133ddd
)

require (
	github.com/klauspost/compress v1.13.5 // indirect
	github.com/pierrec/lz4/v4 v4.1.8 // indirect
	github.com/twmb/go-rbtree v1.0.0 // indirect
	golang.org/x/crypto v0.0.0-20210817164053-32db794688a5 // indirect
)
