package batch

import (
	"encoding/binary"
	"fmt"
	"io"
)

// Prepare validates a batch and rewrites what the topic's configuration asks
// for: the codec, the timestamp type and the largest timestamp. The header is
// rewritten in v's own bytes; only recompression makes a new batch. When
// nothing has to change v is returned as it is. v must belong to the caller.
func Prepare(v View, o Options) (View, Summary, error) {
	s, err := Validate(v, o)
	if err != nil {
		return v, s, err
	}
	if o.Recompress && o.Codec != v.Codec() {
		if v, err = recompress(v, o); err != nil {
			return v, s, err
		}
	}
	if o.LogAppendTime {
		s.MaxTimestampMs, s.MaxTimestampDelta = o.NowMs, 0
		v.SetMaxTimestamp(LogAppendTime, o.NowMs)
	} else {
		v.SetMaxTimestamp(CreateTime, s.MaxTimestampMs)
	}
	return v, s, nil
}

// recompress copies the records into a new batch in another codec. The records
// themselves and the rest of the header stay as they are.
func recompress(v View, o Options) (View, error) {
	limit := o.MaxMessageBytes
	if limit == 0 {
		limit = HeaderSize + o.maxDecodedBytes()
	}
	w := &appendWriter{b: make([]byte, HeaderSize, HeaderSize+len(v.records())), max: limit}
	if err := copyRecords(w, v, o); err != nil {
		return v, fmt.Errorf("recompress from %v to %v: %w", v.Codec(), o.Codec, err)
	}
	out := View(w.b)
	copy(out, v[:HeaderSize])
	binary.BigEndian.PutUint32(out[posLength:], uint32(len(out)-LogOverhead))
	binary.BigEndian.PutUint16(out[posAttributes:], uint16(v.Attributes()&^attrCodec|int16(o.Codec)))
	out.updateCRC()
	return out, nil
}

func copyRecords(w *appendWriter, v View, o Options) error {
	if v.Codec() == None {
		return compressInto(w, o.Codec, o.Level, v.records())
	}
	d, r, err := openRecords(v, o.maxDecodedBytes())
	if err != nil {
		return err
	}
	defer d.close()
	return compressFrom(w, o.Codec, o.Level, io.LimitReader(r, int64(o.maxDecodedBytes())))
}
