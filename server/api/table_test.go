package api

import (
	"reflect"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func countedErrors(resp kmsg.Response) map[int16]int {
	counts := map[int16]int{}
	v := reflect.ValueOf(resp).Elem()
	planOf(v.Type()).walk(v, func(code int16) { counts[code]++ })
	return counts
}

func TestTable(t *testing.T) {
	if !slices.IsSortedFunc(Table, func(a, b API) int { return int(a.Key) - int(b.Key) }) {
		t.Error("the table is not sorted by key")
	}
	seen := map[int16]bool{}
	for _, row := range Table {
		if seen[row.Key] {
			t.Errorf("%s is there twice", row.Name)
		}
		seen[row.Key] = true
		req := kmsg.RequestForKey(row.Key)
		if row.Min < 0 || row.Min > row.Max || row.Max > req.MaxVersion() {
			t.Errorf("%s: versions %d-%d, the codec's newest is %d", row.Name, row.Min, row.Max, req.MaxVersion())
		}
		if row.newRequest().Key() != row.Key || row.Name != kmsg.NameForKey(row.Key) {
			t.Errorf("%s: wrong request or name", row.Name)
		}
		if apiNotes[row.Key] == "" {
			t.Errorf("%s has no line in apiNotes, of which docs/apis.md is made", row.Name)
		}
	}
}

func TestAliasesAreFound(t *testing.T) {
	for key, want := range map[int16]bool{1: false, 3: false, 11: true, 14: true, 17: false, 36: true} {
		if got := hasBytes(reflect.TypeOf(kmsg.RequestForKey(key)).Elem()); got != want {
			t.Errorf("%s: %v", kmsg.NameForKey(key), got)
		}
	}
}
