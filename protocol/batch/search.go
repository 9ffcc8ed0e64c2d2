package batch

// OffsetForTimestamp finds the first record of v at or after fromOffset whose
// timestamp is at least targetMs: the exact record, not the batch's end.
func OffsetForTimestamp(v View, targetMs, fromOffset int64, maxBytes int) (offset, timestampMs int64, found bool, err error) {
	if v.MaxTimestamp() < targetMs || v.LastOffset() < fromOffset {
		return 0, 0, false, nil
	}
	err = walkHeads(v, maxBytes, func(off, ts int64) bool {
		if ts >= targetMs && off >= fromOffset {
			offset, timestampMs, found = off, ts, true
		}
		return found
	})
	return offset, timestampMs, found, err
}

// OffsetOfMaxTimestamp finds the first record that has the batch's largest
// timestamp. It isn't found in a batch whose records compaction took away.
func OffsetOfMaxTimestamp(v View, maxBytes int) (offset, timestampMs int64, found bool, err error) {
	err = walkHeads(v, maxBytes, func(off, ts int64) bool {
		if !found || ts > timestampMs {
			offset, timestampMs, found = off, ts, true
		}
		return ts == v.MaxTimestamp()
	})
	return offset, timestampMs, found, err
}

// walkHeads calls fn with every record's offset and timestamp until it returns
// true.
func walkHeads(v View, maxBytes int, fn func(offset, timestampMs int64) (stop bool)) error {
	if maxBytes <= 0 {
		maxBytes = DefaultMaxDecodedBytes
	}
	c := cursor{b: v.records()}
	if v.Codec() != None {
		d, r, err := openRecords(v, maxBytes)
		if err != nil {
			return err
		}
		defer d.close()
		c = d.cursor(r, maxBytes)
	}
	w := walker{v: v, c: &c}
	var r skimmed
	for range v.NumRecords() {
		if err := w.next(&r); err != nil {
			return err
		}
		if fn(v.BaseOffset()+int64(r.offsetDelta), w.timestamp(r.timestampDelta)) {
			return nil
		}
	}
	return nil
}
