package metadata

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// ErrNewer says that the bytes were written by a newer version of Barnabas.
var ErrNewer = errors.New("written by a newer version")

var errCorrupt = errors.New("metadata bytes are corrupt")

// writer appends; it cannot fail.
type writer struct{ buf []byte }

func (w *writer) uint(v uint64) { w.buf = binary.AppendUvarint(w.buf, v) }
func (w *writer) int(v int64)   { w.buf = binary.AppendVarint(w.buf, v) }
func (w *writer) id(v [16]byte) { w.buf = append(w.buf, v[:]...) }
func (w *writer) str(v string)  { w.uint(uint64(len(v))); w.buf = append(w.buf, v...) }
func (w *writer) endpoint(e Endpoint) {
	w.str(e.Listener)
	w.str(e.Host)
	w.int(int64(e.Port))
	w.int(int64(e.SecurityProtocol))
}

func (w *writer) bool(v bool) {
	if v {
		w.buf = append(w.buf, 1)
	} else {
		w.buf = append(w.buf, 0)
	}
}

// optBool writes nil, false or true.
func (w *writer) optBool(v *bool) {
	w.bool(v != nil)
	if v != nil {
		w.bool(*v)
	}
}

func (w *writer) optStr(v *string) {
	w.bool(v != nil)
	if v != nil {
		w.str(*v)
	}
}

func (w *writer) float(v float64) {
	w.buf = binary.BigEndian.AppendUint64(w.buf, math.Float64bits(v))
}

// ids writes a list of node ids; nil and empty differ.
func (w *writer) ids(v []int32) {
	if v == nil {
		w.uint(0)
		return
	}
	w.uint(uint64(len(v)) + 1)
	for _, id := range v {
		w.int(int64(id))
	}
}

// reader takes bytes apart. After the first error every read gives zero values;
// every length is checked against the bytes left before anything is allocated.
type reader struct {
	buf []byte
	err error
}

func (r *reader) fail(what string) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: %s, %d bytes before the end", errCorrupt, what, len(r.buf))
	}
	r.buf = nil
}

func (r *reader) uint() uint64 {
	v, n := binary.Uvarint(r.buf)
	if n <= 0 {
		r.fail("bad number")
		return 0
	}
	r.buf = r.buf[n:]
	return v
}

func (r *reader) int() int64 {
	v, n := binary.Varint(r.buf)
	if n <= 0 {
		r.fail("bad number")
		return 0
	}
	r.buf = r.buf[n:]
	return v
}

func (r *reader) int32() int32 {
	v := r.int()
	if int64(int32(v)) != v {
		r.fail("number out of range")
		return 0
	}
	return int32(v)
}

func (r *reader) int16() int16 {
	v := r.int()
	if int64(int16(v)) != v {
		r.fail("number out of range")
		return 0
	}
	return int16(v)
}

func (r *reader) int8(what string) int8 {
	v := r.int()
	if int64(int8(v)) != v {
		r.fail(what + " out of range")
		return 0
	}
	return int8(v)
}

func (r *reader) float() float64 {
	if len(r.buf) < 8 {
		r.fail("bad float")
		return 0
	}
	v := math.Float64frombits(binary.BigEndian.Uint64(r.buf))
	if math.IsNaN(v) {
		r.fail("not a number")
		return 0
	}
	r.buf = r.buf[8:]
	return v
}

func (r *reader) bool() bool {
	if len(r.buf) == 0 || r.buf[0] > 1 {
		r.fail("bad flag")
		return false
	}
	v := r.buf[0] == 1
	r.buf = r.buf[1:]
	return v
}

func (r *reader) optBool() *bool {
	if !r.bool() {
		return nil
	}
	return new(r.bool())
}

func (r *reader) optStr() *string {
	if !r.bool() {
		return nil
	}
	return new(r.str())
}

func (r *reader) id() (id [16]byte) {
	if len(r.buf) < len(id) {
		r.fail("bad id")
		return id
	}
	r.buf = r.buf[copy(id[:], r.buf):]
	return id
}

func (r *reader) str() string { return string(r.bytes()) }

// bytes is a length and that many bytes, aliasing the input.
func (r *reader) bytes() []byte {
	n := r.uint()
	if n > uint64(len(r.buf)) {
		r.fail("length beyond the end")
		return nil
	}
	out := r.buf[:n]
	r.buf = r.buf[n:]
	return out
}

// count is the length of a list whose elements take at least minBytes each.
func (r *reader) count(minBytes int) int {
	n := r.uint()
	if n > uint64(len(r.buf)/minBytes) {
		r.fail("count beyond the end")
		return 0
	}
	return int(n)
}

func (r *reader) ids() []int32 {
	n := r.uint()
	if n == 0 {
		return nil
	}
	n--
	if n > uint64(len(r.buf)) {
		r.fail("count beyond the end")
		return nil
	}
	out := make([]int32, n)
	for i := range out {
		out[i] = r.int32()
	}
	return out
}

func (r *reader) endpoint() Endpoint {
	return Endpoint{Listener: r.str(), Host: r.str(), Port: r.int32(), SecurityProtocol: r.int16()}
}

// appendRecord writes kind, version and a length-framed body.
func appendRecord(w *writer, rec Record) {
	_, version := newRecord(rec.kind())
	var body writer
	rec.encode(&body)
	w.uint(uint64(rec.kind()))
	w.uint(version)
	w.uint(uint64(len(body.buf)))
	w.buf = append(w.buf, body.buf...)
}

// readRecord is the reverse of appendRecord.
func readRecord(r *reader) Record {
	kind, version, body := recordKind(r.uint()), r.uint(), r.bytes()
	if r.err != nil {
		return nil
	}
	rec, newest := newRecord(kind)
	if rec == nil || version > newest {
		r.err = fmt.Errorf("metadata record of type %d version %d: %w", kind, version, ErrNewer)
		return nil
	}
	in := reader{buf: body}
	rec.decode(&in, version)
	if in.err == nil && len(in.buf) > 0 {
		in.fail("bytes after the record")
	}
	if in.err != nil {
		r.err = fmt.Errorf("metadata record of type %d: %w", kind, in.err)
		return nil
	}
	return rec
}

const batchFormat = 0

// minRecordBytes is a record's kind, version and length.
const minRecordBytes = 3

// EncodeBatch is the bytes of one decision: its records, and the term of the
// leader that made it. A batch whose term differs from its log entry's was
// decided by a leader that has lost its place, and is dropped.
func EncodeBatch(term uint64, records []Record) []byte {
	w := writer{buf: []byte{batchFormat}}
	w.uint(term)
	w.uint(uint64(len(records)))
	for _, rec := range records {
		appendRecord(&w, rec)
	}
	return w.buf
}

// DecodeBatch is the reverse of EncodeBatch.
func DecodeBatch(data []byte) (term uint64, records []Record, err error) {
	_, r, err := formatReader(data, batchFormat)
	if err != nil {
		return 0, nil, fmt.Errorf("metadata batch: %w", err)
	}
	term = r.uint()
	n := r.count(minRecordBytes)
	records = make([]Record, 0, n)
	for range n {
		rec := readRecord(r)
		if r.err != nil {
			break
		}
		records = append(records, rec)
	}
	if r.err == nil && len(r.buf) > 0 {
		r.fail("bytes after the last record")
	}
	if r.err != nil {
		return 0, nil, fmt.Errorf("metadata batch: %w", r.err)
	}
	return term, records, nil
}

// formatReader reads the format byte, which is at most newest, and what follows it.
func formatReader(data []byte, newest byte) (format byte, r *reader, err error) {
	if len(data) == 0 {
		return 0, nil, fmt.Errorf("%w: empty", errCorrupt)
	}
	if data[0] > newest {
		return 0, nil, fmt.Errorf("format %d: %w", data[0], ErrNewer)
	}
	return data[0], &reader{buf: data[1:]}, nil
}
