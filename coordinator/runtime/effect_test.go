package runtime

import (
	"errors"
	"testing"
)

// An effect is asked for once its record is committed, and what came of it goes
// to the machine that asked.
func TestEffectAndReply(t *testing.T) {
	f := newFixture(t)
	f.rt.Elected(0, 3)
	f.log.held = true
	f.submit(event{set: []string{"a"}, value: 1, effect: "do"})
	if len(f.effects) != 0 {
		t.Fatal("the effect was asked for before its record was committed")
	}
	f.log.commit()
	if len(f.effects) != 1 || f.effects[0].name != "do" || f.effects[0].epoch != 3 {
		t.Fatalf("effects %+v", f.effects)
	}
	f.effects[0].reply(event{set: []string{"b"}, value: 2})
	f.want(f.get("a", "b"), "[1 2]")
}

func TestReplyToAnEarlierMachineIsIgnored(t *testing.T) {
	f := newFixture(t)
	f.rt.Elected(0, 1)
	f.submit(event{effect: "do"})
	f.rt.Elected(0, 2)
	f.want(f.get("b"), "[0]")
	f.effects[0].reply(event{set: []string{"b"}, value: 2})
	f.want(f.get("b"), "[0]")
	f.rt.Close()
	f.effects[0].reply(event{set: []string{"b"}, value: 2})
}

// A reply that may write waits for a log that takes no appends; nobody else
// would ever say it again.
func TestReplyWaitsForTheLog(t *testing.T) {
	f := newFixture(t)
	f.rt.Elected(0, 1)
	f.submit(event{effect: "do"})
	f.log.unwritable = errors.New("the disk is full")
	f.effects[0].reply(event{set: []string{"b"}, value: 2})
	f.want(f.get("b"), "[1000]")
	f.clock.Advance(unwritableRetry)
	f.want(f.get("b"), "[1000]")
	f.log.unwritable = nil
	f.clock.Advance(unwritableRetry)
	f.want(f.get("b"), "[2]")
}

// With LoadUsed a partition that has records is loaded at once, also where its
// checkpoint is lost or was never stored; an empty one stays cold.
func TestLoadUsed(t *testing.T) {
	for _, written := range []bool{true, false} {
		f := filled(t)
		f.restart()
		f.kv.m = map[string][]byte{}
		f.opened = 0
		f.rt.o.LoadUsed, f.rt.o.Written = true, func(int32) bool { return written }
		f.rt.Elected(0, 2)
		if loaded := f.opened > 0; loaded != written {
			t.Errorf("written %v, loaded %v", written, loaded)
		}
	}
}
