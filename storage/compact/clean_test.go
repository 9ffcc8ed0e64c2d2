package compact

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/barnabas-mq/barnabas/protocol/batch"
)

// memLog is a log in memory: segments, and the aborted transactions by the segment
// that has the marker.
type memLog struct {
	segments []*memSegment
	next     int64
	open     map[int64]int64 // first offset of open transactions, by producer
	seq      map[int64]int32
}

type memSegment struct {
	base    int64
	data    []byte
	aborted []AbortedTxn
	infos   []Batch
}

func (s *memSegment) ReadAt(p []byte, off int64) (int, error) {
	return bytes.NewReader(s.data).ReadAt(p, off)
}
func (s *memSegment) Name() string      { return fmt.Sprintf("%d.log", s.base) }
func (s *memSegment) BaseOffset() int64 { return s.base }
func (s *memSegment) SizeBytes() int64  { return int64(len(s.data)) }

func (s *memSegment) Append(b []byte, infos []Batch) error {
	s.data, s.infos = append(s.data, b...), append(s.infos, infos...)
	return nil
}

func (s *memSegment) Abort(t AbortedTxn) error {
	s.aborted = append(s.aborted, t)
	return nil
}

func (l *memLog) Aborted(from, to int64) (list []AbortedTxn, err error) {
	for _, s := range l.segments {
		for _, t := range s.aborted {
			if t.LastOffset >= from && t.FirstOffset < to {
				list = append(list, t)
			}
		}
	}
	return list, nil
}

func newMemLog() *memLog { return &memLog{open: map[int64]int64{}, seq: map[int64]int32{}} }

func (l *memLog) roll() {
	if n := len(l.segments); n == 0 || l.segments[n-1].base < l.next {
		l.segments = append(l.segments, &memSegment{base: l.next})
	}
}

func (l *memLog) add(v batch.View) {
	s := l.segments[len(l.segments)-1]
	s.data = append(s.data, v...)
	l.next = v.NextOffset()
}

// marker ends a producer's transaction.
func (l *memLog) marker(pid int64, commit bool, ts int64) {
	key, value := make([]byte, 4), make([]byte, 6)
	if commit {
		binary.BigEndian.PutUint16(key[2:], markerCommit)
	}
	b := batch.NewBuilder(batch.BuilderOptions{BaseOffset: l.next, Transactional: true, Control: true,
		Producer: &batch.ProducerStamp{ID: pid, BaseSequence: batch.NoSequence}})
	b.Add(ts, key, value)
	first, open := l.open[pid]
	if !commit && open {
		s := l.segments[len(l.segments)-1]
		s.aborted = append(s.aborted, AbortedTxn{ProducerID: pid, FirstOffset: first, LastOffset: l.next, LastStableOffset: l.next + 1})
	}
	delete(l.open, pid)
	l.add(b.Build())
}

func codecOf(t *testing.T, d *datadriven.TestData, name string) batch.Codec {
	c, ok := batch.ParseCodec(name)
	if !ok {
		d.Fatalf(t, "no codec %q", name)
	}
	return c
}

// write appends what a script says, a line each:
//
//	roll                                    a new segment begins
//	gap N                                   N offsets are skipped
//	commit|abort PID [TS]                   a marker
//	[pid=N] [txn] [ts=N] [codec] [append=N] k=v k=- -=v ...
//
// A value of "-" is null, a key of "-" as well.
func (l *memLog) write(t *testing.T, d *datadriven.TestData) {
	l.roll()
	for _, line := range strings.Split(d.Input, "\n") {
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		number := func(i int, fallback int64) int64 {
			if i >= len(f) {
				return fallback
			}
			n, err := strconv.ParseInt(f[i], 10, 64)
			if err != nil {
				d.Fatalf(t, "%s: %v", line, err)
			}
			return n
		}
		switch f[0] {
		case "roll":
			l.segments = append(l.segments, &memSegment{base: l.next})
		case "gap":
			l.next += number(1, 0)
		case "commit", "abort":
			l.marker(number(1, 0), f[0] == "commit", number(2, 0))
		default:
			l.records(t, d, f)
		}
	}
}

func (l *memLog) records(t *testing.T, d *datadriven.TestData, f []string) {
	o := batch.BuilderOptions{BaseOffset: l.next}
	ts := int64(0)
	n := 0
	var records [][2][]byte
	for _, w := range f {
		k, v, pair := strings.Cut(w, "=")
		value, _ := strconv.ParseInt(v, 10, 64)
		switch {
		case k == "pid":
			o.Producer = &batch.ProducerStamp{ID: value, BaseSequence: l.seq[value]}
		case k == "txn":
			o.Transactional = true
		case k == "ts":
			ts = value
		case k == "append":
			o.AppendTimeMs = value
		case !pair:
			o.Codec = codecOf(t, d, w)
		default:
			records = append(records, [2][]byte{nullable(k), nullable(v)})
			n++
		}
	}
	b := batch.NewBuilder(o)
	for i, r := range records {
		b.Add(ts+int64(i), r[0], r[1])
	}
	if o.Producer != nil {
		l.seq[o.Producer.ID] += int32(n)
		if _, open := l.open[o.Producer.ID]; o.Transactional && !open {
			l.open[o.Producer.ID] = l.next
		}
	}
	l.add(b.Build())
}

func nullable(s string) []byte {
	if s == "-" {
		return nil
	}
	return []byte(s)
}

func text(b []byte) string {
	if b == nil {
		return "-"
	}
	return string(b)
}

// print shows the log batch by batch.
func (l *memLog) print(t *testing.T) string {
	var out strings.Builder
	for _, s := range l.segments {
		fmt.Fprintf(&out, "segment %d", s.base)
		for _, a := range s.aborted {
			fmt.Fprintf(&out, " aborted %d: %d-%d", a.ProducerID, a.FirstOffset, a.LastOffset)
		}
		fmt.Fprintln(&out)
		for rest := s.data; len(rest) > 0; {
			v, after, err := batch.Next(rest)
			if err != nil {
				t.Fatal(err)
			}
			rest = after
			printBatch(t, &out, v)
		}
	}
	return out.String()
}

func printBatch(t *testing.T, out io.Writer, v batch.View) {
	if v.CRC() != v.ComputeCRC() {
		t.Fatalf("batch %d has a wrong checksum", v.BaseOffset())
	}
	fmt.Fprintf(out, "  %d-%d", v.BaseOffset(), v.LastOffset())
	if v.HasProducerID() {
		fmt.Fprintf(out, " pid=%d seq=%d", v.ProducerID(), v.BaseSequence())
	}
	if v.Codec() != batch.None {
		fmt.Fprintf(out, " %v", v.Codec())
	}
	if v.HasDeleteHorizon() {
		fmt.Fprintf(out, " horizon=%d", v.BaseTimestamp())
	}
	fmt.Fprintf(out, " max=%d", v.MaxTimestamp())
	switch {
	case v.NumRecords() == 0:
		fmt.Fprint(out, " empty")
	case v.IsControl():
		fmt.Fprint(out, " marker")
	}
	err := batch.Records(v, 0, func(r batch.Record) error {
		if v.IsControl() {
			fmt.Fprintf(out, " %d@%d", r.Offset, r.TimestampMs)
			return nil
		}
		fmt.Fprintf(out, " %d:%s=%s@%d", r.Offset, text(r.Key), text(r.Value), r.TimestampMs)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(out)
}

// cleanOptions are those of a scripted round.
type cleanOptions struct {
	dirty, end, now, retention int64
	keys                       int
	segmentBytes               int64
	last                       map[int64]LastRecord
}

// clean does a round over all segments before end and returns what it did.
func (l *memLog) clean(o cleanOptions) (cleanedTo int64, st Stats, err error) {
	r := &Round{FirstDirty: o.dirty, End: o.end, NowMs: o.now, DeleteRetentionMs: o.retention, Aborted: l.Aborted,
		LastRecord: func(id int64) (LastRecord, bool) { last, ok := o.last[id]; return last, ok }}
	c := NewCleaner(0, func(int) error { return nil })
	m := NewOffsetMap(Slots(int64(o.keys), 1<<30, 0.9), 0.9)
	m.max = o.keys
	n, from := 0, 0
	for n < len(l.segments) && l.segments[n].base < o.end {
		n++
	}
	for from+1 < n && l.segments[from+1].base <= o.dirty {
		from++
	}
	if err := c.Map(r, asSources(l.segments[from:n]), 0, m); err != nil {
		return 0, c.Stats, err
	}
	cleanedTo = m.Latest() + 1
	for n > 0 && l.segments[n-1].base >= cleanedTo {
		n--
	}
	var list []Segment
	for _, s := range l.segments[:n] {
		list = append(list, Segment{BaseOffset: s.base, SizeBytes: s.SizeBytes()})
	}
	end := l.next
	if n < len(l.segments) {
		end = l.segments[n].base
	}
	txns := NewTransactions()
	at := 0
	for _, count := range Group(list, end, Limits{SizeBytes: o.segmentBytes, IndexBytes: 1 << 20}) {
		next := end
		if at+count < len(l.segments) {
			next = l.segments[at+count].base
		}
		if err := l.cleanGroup(c, r, at, count, next, m, txns); err != nil {
			return 0, c.Stats, err
		}
		at++ // the group is one segment now
	}
	return cleanedTo, c.Stats, nil
}

func (l *memLog) cleanGroup(c *Cleaner, r *Round, at, count int, next int64, m *OffsetMap, txns *Transactions) error {
	group := l.segments[at : at+count]
	if count == 1 {
		if same, err := c.Unchanged(r, group[0], next, m, txns); same || err != nil {
			return err
		}
	}
	into := &memSegment{base: group[0].base}
	if err := c.CleanGroup(r, asSources(group), next, m, txns, into); err != nil {
		return err
	}
	l.segments = append(l.segments[:at:at], append([]*memSegment{into}, l.segments[at+count:]...)...)
	return nil
}

func asSources(segments []*memSegment) []Source {
	list := make([]Source, len(segments))
	for i, s := range segments {
		list[i] = s
	}
	return list
}

// TestClean runs the scripts in testdata: each is a log, and rounds over it.
func TestClean(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		l := newMemLog()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "new":
				l = newMemLog()
				l.write(t, d)
				return l.print(t)
			case "append":
				l.write(t, d)
				return l.print(t)
			case "clean":
				return scriptedClean(t, d, l)
			}
			d.Fatalf(t, "no command %s", d.Cmd)
			return ""
		})
	})
}

func scriptedClean(t *testing.T, d *datadriven.TestData, l *memLog) string {
	o := cleanOptions{end: l.next, keys: 1000, segmentBytes: 1 << 20, last: map[int64]LastRecord{}}
	for _, a := range d.CmdArgs {
		for _, v := range a.Vals {
			id, offset, pair := strings.Cut(v, ":")
			n, err := strconv.ParseInt(id, 10, 64)
			if err != nil {
				d.Fatalf(t, "%s: %v", a.Key, err)
			}
			switch a.Key {
			case "dirty":
				o.dirty = n
			case "end":
				o.end = n
			case "now":
				o.now = n
			case "retention":
				o.retention = n
			case "keys":
				o.keys = int(n)
			case "segment":
				o.segmentBytes = n
			case "last":
				last, _ := strconv.ParseInt(offset, 10, 64)
				if !pair {
					last = -1
				}
				o.last[n] = LastRecord{Offset: last}
			default:
				d.Fatalf(t, "no option %s", a.Key)
			}
		}
	}
	to, st, err := l.clean(o)
	if err != nil {
		return fmt.Sprintf("error: %v\n", err)
	}
	return fmt.Sprintf("cleaned to %d, %d of %d records left, %d bytes written\n%s", to, st.RecordsWritten, st.RecordsRead, st.BytesWritten, l.print(t))
}
