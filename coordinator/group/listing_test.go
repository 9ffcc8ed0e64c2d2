package group

import (
	"fmt"
	"runtime"
	"testing"
	"time"
)

// A filter costs its length once, not once for each group.
func TestListWithALargeFilter(t *testing.T) {
	s := &step{Machine: New(Config{}, nil), now: time.Unix(0, 0)}
	for i := range 1000 {
		s.groups[fmt.Sprint("g", i)] = &stored{}
	}
	states := make([]string, 100_000)
	for i := range states {
		states[i] = fmt.Sprint("State", i)
	}
	states[len(states)-1] = "EMPTY"
	r := ListGroups{States: NewFilter(states), Types: NewFilter(states)}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got := len(s.list(r))
	r.Types = NewFilter(nil)
	all := len(s.list(r))
	runtime.ReadMemStats(&after)
	if got != 0 || all != 1000 {
		t.Fatalf("%d and %d groups pass", got, all)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 16<<20 {
		t.Fatalf("%d MiB to list them", took>>20)
	}
}
