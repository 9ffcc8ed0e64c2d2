package batch

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
)

func hundred(codec Codec, valueBytes int) View {
	rng := rand.New(rand.NewPCG(1, 2))
	b := NewBuilder(BuilderOptions{Codec: codec, Producer: &ProducerStamp{ID: 1, BaseSequence: 5}})
	for i := range 100 {
		value := make([]byte, valueBytes)
		for j := range value {
			value[j] = "abcdefghijklmnop"[rng.IntN(16)]
		}
		b.Add(now+int64(i), nil, value)
	}
	return b.Build()
}

func BenchmarkValidate(b *testing.B) {
	for _, codec := range allCodecs {
		for _, size := range []int{100, 1000} {
			v := hundred(codec, size)
			b.Run(fmt.Sprintf("%v/100x%d", codec, size), func(b *testing.B) {
				b.ReportAllocs()
				b.SetBytes(int64(len(v)))
				for range b.N {
					if _, err := Validate(v, open); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkRecompress(b *testing.B) {
	plain := hundred(None, 1000)
	for _, codec := range allCodecs[1:] {
		b.Run(codec.String(), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(plain)))
			o := open
			o.Recompress, o.Codec = true, codec
			scratch := bytes.Clone(plain)
			for range b.N {
				if _, _, err := Prepare(scratch, o); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
