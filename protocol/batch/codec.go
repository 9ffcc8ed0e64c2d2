package batch

import (
	"fmt"
	"strings"
)

// Codec is how a batch's records are compressed, in the numbers of the batch
// attributes.
type Codec int8

// The codecs, and Producer for "as the producer sent it".
const (
	None   Codec = 0
	Gzip   Codec = 1
	Snappy Codec = 2
	LZ4    Codec = 3
	Zstd   Codec = 4
	// Producer, as a topic's codec, keeps what the producer sent.
	Producer Codec = -1
)

var codecNames = map[Codec]string{
	None: "none", Gzip: "gzip", Snappy: "snappy", LZ4: "lz4", Zstd: "zstd", Producer: "producer",
}

// String is Kafka's name of the codec.
func (c Codec) String() string {
	if name, ok := codecNames[c]; ok {
		return name
	}
	return fmt.Sprintf("codec %d", int8(c))
}

// Known says that c is a codec that records can be compressed with.
func (c Codec) Known() bool { return c >= None && c <= Zstd }

// ParseCodec reads a value of compression.type; "uncompressed" is Kafka's older
// word for none.
func ParseCodec(name string) (Codec, bool) {
	name = strings.ToLower(name)
	if name == "uncompressed" {
		return None, true
	}
	for c, n := range codecNames {
		if n == name {
			return c, true
		}
	}
	return None, false
}
