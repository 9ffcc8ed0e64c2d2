package txn

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/barnabas-mq/barnabas/storage"
)

// TestMachine runs the scripts of testdata: events in, records, effects and
// answers out.
func TestMachine(t *testing.T) {
	datadriven.Walk(t, "testdata/machine", func(t *testing.T, path string) {
		h := newHarness(DefaultConfig())
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			h.out.Reset()
			h.run(t, d)
			if h.out.Len() == 0 {
				return "ok\n"
			}
			return h.out.String()
		})
	})
}

// harness is a log, a clock, a driver and the waiting calls around one machine.
type harness struct {
	cfg    Config
	m      *Machine
	now    time.Time
	level  int16
	nextID int64
	log    []logged
	timers map[string]time.Time
	calls  map[uint64]bool
	last   uint64
	// asked are the effects that nobody has replied to, by transactional id.
	asked map[string]any
	out   strings.Builder
	// quiet leaves records, effects and answers out of the output.
	quiet bool
	// answered sees every answer.
	answered func(call uint64, response any)
}

type logged struct{ key, value []byte }

func newHarness(cfg Config) *harness {
	h := &harness{cfg: cfg, now: time.UnixMilli(0).UTC(), level: 2, nextID: 1000}
	h.reload()
	return h
}

// reload is what a restart does: the log alone survives.
func (h *harness) reload() {
	h.m = New(h.cfg)
	h.timers, h.calls, h.asked = map[string]time.Time{}, map[uint64]bool{}, map[string]any{}
	h.replayInto(h.m)
	h.event(Event{Request: Loaded{}})
}

func (h *harness) replayInto(m *Machine) {
	for i, l := range h.log {
		r, ok, err := Codec{}.Decode(l.key, l.value)
		if err != nil || !ok {
			panic(fmt.Sprintf("record %d of the log: ok %v, %v", i, ok, err))
		}
		m.Replay(int64(i), r)
	}
}

// call puts a request and returns its number.
func (h *harness) call(req any) uint64 {
	h.last++
	h.calls[h.last] = true
	h.event(Event{Call: h.last, Request: req})
	return h.last
}

func (h *harness) event(e Event) {
	e.Level = h.level
	out := h.m.Handle(h.now, e)
	for _, r := range out.Records {
		key, value := Codec{}.Encode(r)
		h.log = append(h.log, logged{key: key, value: value})
		h.printf("record %s\n", describeRecord(r))
		h.m.Replay(int64(len(h.log)-1), r)
	}
	for _, t := range out.Timers {
		if t.At.IsZero() {
			delete(h.timers, t.Key)
		} else {
			h.timers[t.Key] = t.At
		}
	}
	for _, a := range out.Answers {
		if a.Call == 0 {
			h.ask(a.Response)
			continue
		}
		if !h.calls[a.Call] {
			panic(fmt.Sprintf("call %d was answered twice, or never made", a.Call))
		}
		delete(h.calls, a.Call)
		h.printf("call %d: %s\n", a.Call, describeAnswer(a.Response))
		if h.answered != nil {
			h.answered(a.Call, a.Response)
		}
	}
}

func (h *harness) ask(effect any) {
	switch e := effect.(type) {
	case WriteMarkers:
		if _, twice := h.asked[e.TransactionalID]; twice {
			panic("markers of " + e.TransactionalID + " are asked for while an attempt is on its way")
		}
		h.asked[e.TransactionalID] = e
		verdict := "abort"
		if e.Commit {
			verdict = "commit"
		}
		h.printf("markers %s %d/%d %s v%d failures=%d %v\n", e.TransactionalID, e.ID, e.Epoch, verdict, e.ClientVersion, e.Failures, e.Partitions)
	case FetchProducerID:
		h.asked[e.TransactionalID] = e
		h.printf("fetch a producer id for %s\n", e.TransactionalID)
	}
}

func (h *harness) printf(format string, args ...any) {
	if !h.quiet {
		fmt.Fprintf(&h.out, format, args...)
	}
}

// tick moves the clock and fires what is due, earliest first.
func (h *harness) tick(d time.Duration) {
	end := h.now.Add(d)
	for {
		var due string
		for key, at := range h.timers {
			if !at.After(end) && (due == "" || cmp.Or(at.Compare(h.timers[due]), cmp.Compare(key, due)) < 0) {
				due = key
			}
		}
		if due == "" {
			break
		}
		if at := h.timers[due]; at.After(h.now) {
			h.now = at
		}
		delete(h.timers, due)
		h.event(Event{Request: TimerFired{Key: due}})
	}
	h.now = end
}

// written replies to the markers that were asked for; failed are the partitions
// whose marker could not be written.
func (h *harness) written(id string, failed map[storage.TopicPartition]error) {
	w := h.asked[id].(WriteMarkers)
	delete(h.asked, id)
	results := make([]error, len(w.Partitions))
	for i, tp := range w.Partitions {
		results[i] = failed[tp]
	}
	h.event(Event{Request: MarkersWritten{Asked: w, Results: results}})
}

func (h *harness) fetched(id string, err error) {
	_ = h.asked[id].(FetchProducerID)
	delete(h.asked, id)
	h.nextID++
	h.event(Event{Request: ProducerIDFetched{TransactionalID: id, ID: h.nextID, Err: err}})
}

// newID is a producer id that nobody has.
func (h *harness) newID() int64 {
	h.nextID++
	return h.nextID
}

func (h *harness) run(t *testing.T, d *datadriven.TestData) {
	id, who := "x", Producer{ID: noProducerID, Epoch: noEpoch}
	scan(t, d, "id", &id)
	scan(t, d, "pid", &who.ID)
	scan(t, d, "epoch", &who.Epoch)
	who.TransactionalID = id
	version := int16(2)
	scan(t, d, "v", &version)
	newID := int64(noProducerID)
	if d.HasArg("new") {
		newID = h.newID()
	}
	switch d.Cmd {
	case "level":
		level, err := strconv.Atoi(d.CmdArgs[0].Key)
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		h.level = int16(level)
	case "config":
		scan(t, d, "maxtimeout", &h.cfg.MaxTimeoutMs)
		h.m.cfg = h.cfg
	case "init":
		timeoutMs := int32(60_000)
		scan(t, d, "timeout", &timeoutMs)
		h.call(InitProducer{TransactionalID: id, TimeoutMs: timeoutMs, ID: who.ID, Epoch: who.Epoch, NewID: newID})
	case "add":
		h.call(AddPartitions{Producer: who, Partitions: partitions(t, d), ClientVersion: version, Patient: d.HasArg("patient")})
	case "verify":
		h.call(VerifyPartitions{Producer: who, Partitions: partitions(t, d)})
	case "commit", "abort":
		h.call(EndTxn{Producer: who, Commit: d.Cmd == "commit", ClientVersion: version, NewID: newID})
	case "describe":
		h.call(DescribeTxn{id})
	case "list":
		h.list(t, d)
	case "written":
		h.written(id, failures(t, d))
	case "fetched":
		var err error
		if d.HasArg("fail") {
			err = kerr.CoordinatorLoadInProgress
		}
		h.fetched(id, err)
	case "exhaust":
		h.exhaust(id)
	case "tick":
		wait, err := time.ParseDuration(d.CmdArgs[0].Key)
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		h.tick(wait)
	case "reload":
		h.reload()
	default:
		d.Fatalf(t, "command %s", d.Cmd)
	}
}

// exhaust makes the epoch in force the last one that may be used, as 32766 ends
// would.
func (h *harness) exhaust(id string) {
	t := *h.m.transactions[id]
	t.Epoch, t.lastEpoch = lastUsableEpoch, lastUsableEpoch-1
	r := Record{TransactionalID: id, Transaction: &t, Version: 1}
	key, value := Codec{}.Encode(r)
	h.log = append(h.log, logged{key: key, value: value})
	h.m.Replay(int64(len(h.log)-1), r)
}

func (h *harness) list(t *testing.T, d *datadriven.TestData) {
	req := ListTxns{States: map[State]struct{}{}, ProducerIDs: map[int64]struct{}{}, OlderThanMs: -1}
	scan(t, d, "older", &req.OlderThanMs)
	for _, a := range d.CmdArgs {
		switch a.Key {
		case "states":
			for _, name := range a.Vals {
				s, ok := stateOf(name)
				if !ok {
					d.Fatalf(t, "state %s", name)
				}
				req.States[s] = struct{}{}
			}
		case "pids":
			for _, v := range a.Vals {
				n, err := strconv.ParseInt(v, 10, 64)
				if err != nil {
					d.Fatalf(t, "%v", err)
				}
				req.ProducerIDs[n] = struct{}{}
			}
		case "pattern":
			req.Pattern = regexp.MustCompile("^(?:" + a.Vals[0] + ")$")
		}
	}
	h.call(req)
}

func scan[T any](t *testing.T, d *datadriven.TestData, name string, into *T) {
	if !d.HasArg(name) {
		return
	}
	switch v := any(into).(type) {
	case *int16:
		var n int
		d.ScanArgs(t, name, &n)
		*v = int16(n)
	default:
		d.ScanArgs(t, name, into)
	}
}

// partitions parses p=(t-0,u-1).
func partitions(t *testing.T, d *datadriven.TestData) (out []storage.TopicPartition) {
	for _, a := range d.CmdArgs {
		if a.Key == "p" {
			for _, v := range a.Vals {
				out = append(out, partition(t, d, v))
			}
		}
	}
	return out
}

func partition(t *testing.T, d *datadriven.TestData, name string) storage.TopicPartition {
	topic, number, ok := strings.Cut(name, "-")
	n, err := strconv.Atoi(number)
	if !ok || err != nil {
		d.Fatalf(t, "partition %q", name)
	}
	return storage.TopicPartition{Topic: topic, Partition: int32(n)}
}

// failures parses fail=(t-0:NOT_LEADER_FOR_PARTITION,...).
func failures(t *testing.T, d *datadriven.TestData) map[storage.TopicPartition]error {
	out := map[storage.TopicPartition]error{}
	for _, a := range d.CmdArgs {
		if a.Key != "fail" {
			continue
		}
		for _, v := range a.Vals {
			name, code, _ := strings.Cut(v, ":")
			err := errorNamed(code)
			if err == nil {
				d.Fatalf(t, "no error %q", code)
			}
			out[partition(t, d, name)] = err
		}
	}
	return out
}

func errorNamed(name string) error {
	for code := range int16(150) {
		if e := kerr.TypedErrorForCode(code); e != nil && e.Message == name {
			return e
		}
	}
	return nil
}

func describeRecord(r Record) string {
	t := r.Transaction
	if t == nil {
		return r.TransactionalID + " tombstone"
	}
	return fmt.Sprintf("%s v%d %s", r.TransactionalID, r.Version, describeTransaction(t))
}

func describeTransaction(t *Transaction) string {
	s := fmt.Sprintf("%s %d/%d prev=%d", t.State, t.ProducerID, t.Epoch, t.PrevProducerID)
	if t.NextProducerID != noProducerID {
		s += fmt.Sprintf(" next=%d", t.NextProducerID)
	}
	return s + fmt.Sprintf(" timeout=%d client=%d start=%d update=%d %v", t.TimeoutMs, t.ClientVersion, t.StartMs, t.UpdateMs, t.Partitions)
}

func describeAnswer(resp any) string {
	switch r := resp.(type) {
	case Outcome:
		return errorName(r.Err)
	case Produced:
		if r.Err != nil {
			return errorName(r.Err)
		}
		return fmt.Sprintf("producer %d/%d", r.ID, r.Epoch)
	case NeedProducerID:
		return "needs a producer id"
	case Verified:
		if r.Err != nil {
			return errorName(r.Err)
		}
		return fmt.Sprintf("missing %v", r.Missing)
	case Described:
		if r.Transaction == nil {
			return "none"
		}
		return describeTransaction(r.Transaction)
	case []Listed:
		var b strings.Builder
		b.WriteString("list")
		for _, l := range r {
			fmt.Fprintf(&b, " %s=%d:%s", l.TransactionalID, l.ProducerID, l.State)
		}
		return b.String()
	}
	return fmt.Sprintf("%#v", resp)
}

func errorName(err *kerr.Error) string {
	if err == nil {
		return "done"
	}
	return err.Message
}

// stateOfMachine is all that Replay rebuilds, for comparisons. The last epochs are
// in no record.
func stateOfMachine(m *Machine) string {
	var b strings.Builder
	for _, id := range slices.Sorted(maps.Keys(m.transactions)) {
		fmt.Fprintf(&b, "%s %s\n", id, describeTransaction(m.transactions[id]))
	}
	fmt.Fprintf(&b, "ongoing %v counts %v\n", slices.Sorted(maps.Keys(m.ongoing)), m.tally.ids)
	return b.String()
}
