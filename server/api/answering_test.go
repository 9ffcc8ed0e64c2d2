package api

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestAnswersOverAllPartitionsAreLaidOutInTurn has others take all the room there is for
// them: a large one waits, a small one does not.
func TestAnswersOverAllPartitionsAreLaidOutInTurn(t *testing.T) {
	d := newDataBroker(t)
	d.addTopic("large", largeBytes/metadataRowBytes+1)
	d.addTopic("small", 1)
	dial := d.onLoops()
	if err := d.h.answering.Acquire(t.Context(), answeringMax); err != nil {
		t.Fatal(err)
	}
	all := later[*kmsg.MetadataResponse](dial(), 9, kmsg.NewPtrMetadataRequest())
	dirs := later[*kmsg.DescribeLogDirsResponse](dial(), 4, kmsg.NewPtrDescribeLogDirsRequest())
	c, one := dial(), kmsg.NewPtrMetadataRequest()
	one.Topics = []kmsg.MetadataRequestTopic{{Topic: kmsg.StringPtr("small")}}
	for range 100 {
		if r := askAs[*kmsg.MetadataResponse](c, 9, one); len(r.Topics) != 1 {
			t.Fatalf("%d topics", len(r.Topics))
		}
	}
	select {
	case <-all:
		t.Error("the metadata of all did not wait")
	case <-dirs:
		t.Error("the folder of all did not wait")
	default:
	}
	d.h.answering.Release(answeringMax)
	if r := soon(t, all); len(r.Topics) != 2 {
		t.Errorf("%d topics", len(r.Topics))
	}
	soon(t, dirs)
}
