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
	f.want(f.get("b"), "[0]")
	f.clock.Advance(unwritableRetry)
	f.want(f.get("b"), "[0]")
	f.log.unwritable = nil
	f.clock.Advance(unwritableRetry)
	f.want(f.get("b"), "[2]")
}

// With LoadUsed a partition that has records is loaded at once, also where its
// checkpoint is lost or was never stored; an empty one stays cold.
func TestLoadUsed(t *testing.T) {
	f := filled(t)
	f.restart()
	f.kv.m = map[string][]byte{}
	f.rt.o.LoadUsed = true
	f.rt.Elected(0, 2)
	if f.replayed == 0 {
		t.Error("a partition with records was not loaded")
	}
	f = newFixture(t)
	f.rt.o.LoadUsed = true
	f.rt.Elected(0, 1)
	if f.rt.shards[0].shard.state != cold {
		t.Error("an empty partition was loaded")
	}
	f = newFixture(t)
	f.rt.o.LoadUsed = true
	f.openErr = errAppend
	f.rt.Elected(0, 1)
	f.openErr = nil
	f.clock.Advance(reloadMax)
	f.want(f.get("a"), "[0]")
	if f.opened < 3 {
		t.Error("a partition that could not be looked at was not tried again")
	}
}
