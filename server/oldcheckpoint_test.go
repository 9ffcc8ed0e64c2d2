package server

import (
	"errors"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// withOffsets is a folder whose broker was stopped after it committed offsets of a
// group, the last one 9.
func withOffsets(t *testing.T) *vfs.Mem {
	t.Helper()
	fsys := vfs.NewMem()
	n, err := Start(testEnv(fsys), load(t, testDir, "offsets.topic.num.partitions=1"))
	if err != nil {
		t.Fatal(err)
	}
	adm := kadm.NewClient(client(t, n))
	if _, err := adm.CreateTopics(within(t), 1, 1, nil, "a"); err != nil {
		t.Fatal(err)
	}
	for i := range int64(10) {
		var o kadm.Offsets
		o.AddOffset("a", 0, i, -1)
		if err := adm.CommitAllOffsets(within(t), "g", o); err != nil {
			t.Fatal(err)
		}
	}
	if err := stop(n); err != nil {
		t.Fatal(err)
	}
	return fsys
}

// Behind the last entry of the metadata log the embedded store has checkpoints of the
// groups. Damage there is not noticed, as it looks like the torn end of a write: what
// it takes with it is in the log of the groups.
func TestOffsetsSurviveDamageBehindTheMetadataLog(t *testing.T) {
	served := 0
	for _, cut := range []int{0, 1, 20, 50, 90, 150, 250, 400, 700, 1000} {
		for _, flip := range []bool{false, true} {
			fsys := withOffsets(t)
			rewrite(t, fsys, storeLog(t, fsys), func(b []byte) []byte {
				at := max(len(b)-cut, 0)
				if flip && at < len(b) {
					b[at] ^= 1
					return b
				}
				return b[:at]
			})
			n, err := Start(testEnv(fsys), load(t, testDir, "offsets.topic.num.partitions=1"))
			if errors.Is(err, errShortLog) {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			served++
			got, err := kadm.NewClient(client(t, n)).FetchOffsets(within(t), "g")
			if o, ok := got.Lookup("a", 0); err != nil || !ok || o.At != 9 {
				t.Errorf("%d bytes damaged: %v, %v, %v", cut, o.At, ok, err)
			}
			if err := stop(n); err != nil {
				t.Fatal(err)
			}
		}
	}
	if served < 4 {
		t.Errorf("only %d starts", served)
	}
}
