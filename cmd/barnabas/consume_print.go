package main

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kgo"
)

// printer writes records and knows when there are enough.
type printer struct {
	w                            *bufio.Writer
	json, keys, offsets, headers bool
	limit, printed               int
	isolation                    string
	// ends, when not nil, are the offsets still to reach.
	ends endOffsets
}

func (p *printer) done() bool {
	return p.limit > 0 && p.printed >= p.limit || p.ends != nil && len(p.ends) == 0
}

func (p *printer) print(r *kgo.Record) error {
	p.ends.reached(r.Topic, r.Partition, r.Offset+1)
	if r.Attrs.IsControl() {
		return nil
	}
	p.printed++
	if p.json {
		return p.printJSON(r)
	}
	return p.printText(r)
}

func (p *printer) printText(r *kgo.Record) error {
	if p.offsets {
		fmt.Fprintf(p.w, "%s-%d@%d\t", r.Topic, r.Partition, r.Offset)
	}
	if p.headers {
		for i, h := range r.Headers {
			if i > 0 {
				p.w.WriteByte(',')
			}
			fmt.Fprintf(p.w, "%s=%s", h.Key, h.Value)
		}
		p.w.WriteByte('\t')
	}
	if p.keys {
		p.w.Write(orNull(r.Key))
		p.w.WriteByte('\t')
	}
	p.w.Write(orNull(r.Value))
	return p.w.WriteByte('\n')
}

// orNull prints a key or value that is none, such as a tombstone's, as Kafka's console
// consumer does: an empty one is another thing.
func orNull(b []byte) []byte {
	if b == nil {
		return []byte("null")
	}
	return b
}

// recordView is one record of -o json. Bytes that are not UTF-8 come as base64
// in the *_base64 fields; null stays null.
type recordView struct {
	Topic       string       `json:"topic"`
	Partition   int32        `json:"partition"`
	Offset      int64        `json:"offset"`
	Timestamp   string       `json:"timestamp"`
	Key         *string      `json:"key"`
	KeyBase64   string       `json:"key_base64,omitempty"`
	Value       *string      `json:"value"`
	ValueBase64 string       `json:"value_base64,omitempty"`
	Headers     []headerView `json:"headers"`
}

type headerView struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

func (p *printer) printJSON(r *kgo.Record) error {
	v := recordView{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Timestamp: r.Timestamp.UTC().Format(time.RFC3339Nano), Headers: []headerView{}}
	v.Key, v.KeyBase64 = jsonText(r.Key)
	v.Value, v.ValueBase64 = jsonText(r.Value)
	for _, h := range r.Headers {
		v.Headers = append(v.Headers, headerView{h.Key, string(h.Value)})
	}
	return json.NewEncoder(p.w).Encode(v)
}

func jsonText(b []byte) (text *string, b64 string) {
	if b == nil {
		return nil, ""
	}
	if !utf8.Valid(b) {
		return nil, base64.StdEncoding.EncodeToString(b)
	}
	s := string(b)
	return &s, ""
}
